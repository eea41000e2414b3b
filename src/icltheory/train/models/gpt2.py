"""A decoder in the style of GPT-2."""

import torch
from torch import Tensor, nn
from torch.nn import functional

_STD = 0.02  # of the initial weights, as in GPT-2


class DecoderBlock(nn.Module):
    r"""Causal attention and an MLP, each behind a LayerNorm and inside a residual.

    .. math:: h \to h + \mathrm{attention}(\mathrm{LN}(h)), \qquad h \to h + \mathrm{MLP}(\mathrm{LN}(h))
    """

    def __init__(self, width: int, *, heads: int, mlp_ratio: float) -> None:
        super().__init__()
        self.heads = heads
        hidden = max(1, round(mlp_ratio * width))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.rise, self.fall = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, h: Tensor) -> Tensor:
        """Map (b, t, width) to the same."""
        parts = self.project(self.norm1(h)).chunk(3, dim=2)
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in parts)  # (b, heads, t, width/heads)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + self.out(mixed.transpose(1, 2).flatten(2))
        risen = functional.gelu(self.rise(self.norm2(h)), approximate="tanh")  # (b, t, hidden)
        result: Tensor = h + self.fall(risen)
        return result


class Decoder(nn.Module):
    r"""GPT-2's decoder on embedded tokens: learned positions, L blocks, a last LayerNorm; no dropout.

    With the same weights this is Hugging Face's ``GPT2Model``.

    Parameters
    ----------
    positions : int
        Largest number of tokens.
    width, layers, heads : int
    mlp_ratio : float
        Hidden units of the MLPs per unit of width.
    """

    def __init__(self, positions: int, *, width: int, layers: int, heads: int, mlp_ratio: float = 4.0) -> None:
        super().__init__()
        self.positions = nn.Parameter(_STD * torch.randn(positions, width))
        self.blocks = nn.ModuleList([DecoderBlock(width, heads=heads, mlp_ratio=mlp_ratio) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2 and name != "positions":
                inner = name.endswith(("out.weight", "fall.weight"))  # those that write into the residual stream
                nn.init.normal_(parameter, std=_STD / (2.0 * layers) ** 0.5 if inner else _STD)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, inputs_embeds: Tensor) -> Tensor:
        """Map (b, t, width) to the same."""
        t = inputs_embeds.shape[1]
        if t > len(self.positions):
            raise ValueError(f"the decoder has positions for {len(self.positions)} tokens, got {t}")
        h = inputs_embeds + self.positions[:t]  # (b, t, width)
        for block in self.blocks:
            h = block(h)
        result: Tensor = self.norm(h)
        return result
