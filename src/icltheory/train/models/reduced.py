"""Linear attention, reduced to what its prediction depends on."""

import torch
from torch import Tensor, nn


class ReducedAttention(nn.Module):
    r"""Linear attention as :math:`\hat y = \langle\Gamma, H\rangle`, linear in its one matrix.

    .. math:: H = x_{l+1} \Big[\frac d l \sum_{i \le l} y_i x_i^\top, \ \frac 1 l \sum_{i \le l} y_i^2\Big]
              \in \mathbb{R}^{d \times (d+1)}

    It starts from :math:`\Gamma = 0`, from which gradient descent reaches the solution of least norm.

    Parameters
    ----------
    d : int

    References
    ----------
    Lu et al., PNAS 2025, eq. (8).
    """

    def __init__(self, d: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.zeros(d, d + 1))

    def forward(self, x: Tensor, y: Tensor, query: Tensor) -> Tensor:
        """Predict from x (b, l, d), y (b, l) and query (b, d): shape (b,)."""
        length, d = x.shape[1:]
        correlations = torch.bmm(y[:, None], x)[:, 0] * (d / length)  # (b, d)
        power = y.square().mean(1, keepdim=True)  # (b, 1)
        row = torch.cat([correlations, power], dim=1)  # (b, d+1)
        return ((query @ self.gamma) * row).sum(1)
