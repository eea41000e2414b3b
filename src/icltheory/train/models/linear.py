"""Linear attention with its key, query and value matrices."""

import torch
from torch import Tensor, nn

from icltheory.train.models.tokens import pairs


class LinearAttention(nn.Module):
    r"""One layer of linear attention, its label entry at the query read out.

    With the prompt's tokens as columns, :math:`Z \in \mathbb{R}^{(d+1) \times (l+1)}`, the last one
    :math:`(x_{l+1}, 0)`, the prediction is the bottom right entry of

    .. math:: A = Z + \frac 1 l V Z (K Z)^\top (Q Z) .

    Only the query's column of A is computed, in O(l d), and only V's last row bears on it. If the first d entries of
    that row are zero, this is `ReducedAttention` with :math:`\Gamma = v_{22} [M_{11}^\top/d, m_{21}]` in the blocks of
    :math:`M = K^\top Q`; in general it depends on :math:`d^2 + 2d` combinations of its weights.

    Parameters
    ----------
    d : int
    init_scale : float
        The initial entries are Gaussian with variance ``init_scale**2 / (d + 1)``.

    References
    ----------
    Lu et al., PNAS 2025, eqs. (4) to (8).
    """

    def __init__(self, d: int, *, init_scale: float = 1.0) -> None:
        super().__init__()
        self.key, self.query, self.value = (weight(d + 1, init_scale) for _ in range(3))

    def forward(self, x: Tensor, y: Tensor, query: Tensor) -> Tensor:
        """Predict from x (b, l, d), y (b, l) and query (b, d): shape (b,)."""
        z = pairs(x, y, query)  # (b, l+1, d+1)
        asked = z[:, -1] @ self.query.T @ self.key  # (b, d+1), K^T Q z
        summed = torch.bmm(torch.bmm(z, asked[:, :, None]).transpose(1, 2), z)[:, 0]  # (b, d+1)
        return summed @ self.value[-1] / x.shape[1]


def weight(size: int, scale: float) -> nn.Parameter:
    """Return a square matrix of Gaussian entries which keeps the norm of a vector, times `scale`."""
    return nn.Parameter(torch.randn(size, size) * scale / size**0.5)
