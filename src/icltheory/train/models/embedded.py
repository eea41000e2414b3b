"""Any module that takes embedded tokens, as a model of in-context regression."""

from typing import Any, Literal

from torch import Tensor, nn

from icltheory.train.models.tokens import interleaved, pairs


class Embedded(nn.Module):
    r"""Read prompts in to the width of a sequence model, and its outputs out to labels.

    Parameters
    ----------
    body : torch.nn.Module
        Called as ``body(inputs_embeds=h)`` with h of shape (b, t, width), it returns a tensor of that shape, or
        something that has one as ``last_hidden_state``, as Hugging Face's models without a head do.
    d : int
        Token dimension.
    width : int
    layout : {"pairs", "interleaved"}
        See `icltheory.train.Data`.
    every : bool
        Whether to predict the label after every number of examples, (b, l + 1), rather than that of the query alone,
        (b,). Needs the interleaved layout and a causal body.

    Examples
    --------
    >>> import torch
    >>> from icltheory.train import Decoder, Embedded
    >>> model = Embedded(Decoder(21, width=16, layers=2, heads=2), d=5, width=16, layout="interleaved")
    >>> model(torch.randn(3, 10, 5), torch.randn(3, 10), torch.randn(3, 5)).shape
    torch.Size([3])
    """

    def __init__(
        self,
        body: nn.Module,
        *,
        d: int,
        width: int,
        layout: Literal["pairs", "interleaved"] = "pairs",
        every: bool = False,
    ) -> None:
        super().__init__()
        if every and layout != "interleaved":
            raise ValueError('every=True needs layout="interleaved": a token (x, y) holds the label to be predicted')
        self.body, self.layout, self.every = body, layout, every
        self.read_in, self.readout = nn.Linear(d + 1, width), nn.Linear(width, 1)

    def forward(self, x: Tensor, y: Tensor, query: Tensor) -> Tensor:
        """Predict from x (b, l, d), y (b, l) and query (b, d): shape (b,), or (b, l + 1) for every label."""
        lay = pairs if self.layout == "pairs" else interleaved
        out: Any = self.body(inputs_embeds=self.read_in(lay(x, y, query)))  # (b, t, width)
        h: Tensor = out if isinstance(out, Tensor) else out.last_hidden_state
        answers: Tensor = self.readout(h[:, ::2] if self.every else h[:, -1])[..., 0]
        return answers
