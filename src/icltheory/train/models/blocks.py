"""The small transformers on which Lu et al. checked their theory."""

from itertools import pairwise

from torch import Tensor, nn
from torch.nn import functional

from icltheory.train.models.tokens import pairs


class Block(nn.Module):
    r"""Causal softmax attention and a dense part, each with a residual and a LayerNorm behind it.

    .. math:: h \to \mathrm{LN}(h + \mathrm{attention}(h)), \qquad h \to \mathrm{LN}(h + f(h))

    f is :math:`\mathrm{GELU}(W h + b)` if `mlp_ratio` is None, an MLP of that hidden ratio otherwise, and left out with
    its LayerNorm if `mlp_ratio` is 0.
    """

    def __init__(self, width: int, *, heads: int, mlp_ratio: float | None) -> None:
        super().__init__()
        self.heads = heads
        self.queries, self.keys, self.values, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.norms = nn.ModuleList([nn.LayerNorm(width)])
        self.dense: nn.Module | None = None
        if mlp_ratio is None:
            self.dense = nn.Sequential(nn.Linear(width, width), nn.GELU())
        elif mlp_ratio > 0:
            hidden = max(1, round(mlp_ratio * width))
            self.dense = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))
        if self.dense is not None:
            self.norms.append(nn.LayerNorm(width))

    def forward(self, h: Tensor, *, last: bool = False) -> Tensor:
        """Map (b, t, width) to the same, or to (b, 1, width) for the last token alone, which costs O(t)."""
        asking = h[:, -1:] if last else h
        q, k, v = (self._split(part) for part in (self.queries(asking), self.keys(h), self.values(h)))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=not last)  # (b, heads, t, width/heads)
        h = self.norms[0](asking + self.out(mixed.transpose(1, 2).flatten(2)))
        return h if self.dense is None else self.norms[1](h + self.dense(h))

    def _split(self, h: Tensor) -> Tensor:
        return h.view(*h.shape[:2], self.heads, -1).transpose(1, 2)  # (b, heads, t, width/heads)


class Blocks(nn.Module):
    r"""Tokens :math:`(x_i, y_i)`, read in to some width, L blocks, and a readout at the query.

    There are no positions: apart from the causal mask the examples have no order.

    Parameters
    ----------
    d : int
    width : int or None
        Default d.
    layers, heads : int
    mlp_ratio : float or None
        See `Block`; None, the default, is the dense layer of the paper, 0 attention alone.

    References
    ----------
    Lu et al., PNAS 2025, Fig. 5 and its appendix.
    """

    def __init__(
        self, d: int, *, width: int | None = None, layers: int = 1, heads: int = 1, mlp_ratio: float | None = None
    ) -> None:
        super().__init__()
        width = width or d
        self.read_in = nn.Linear(d + 1, width)
        self.blocks = nn.ModuleList([Block(width, heads=heads, mlp_ratio=mlp_ratio) for _ in range(layers)])
        self.readout = nn.Linear(width, 1)

    def forward(self, x: Tensor, y: Tensor, query: Tensor) -> Tensor:
        """Predict from x (b, l, d), y (b, l) and query (b, d): shape (b,)."""
        h = self.read_in(pairs(x, y, query))  # (b, l+1, width)
        for block, after in pairwise([*self.blocks, None]):
            h = block(h, last=after is None)
        answer: Tensor = self.readout(h[:, -1])[:, 0]
        return answer
