"""Softmax attention of one layer, alone or with an MLP behind it."""

import torch
from torch import Tensor, nn

from icltheory.train.models.linear import weight
from icltheory.train.models.tokens import pairs


class SoftmaxAttention(nn.Module):
    r"""One layer of softmax attention, its label entry at the query read out.

    In the notation of `LinearAttention`, with :math:`z_i` the columns of Z and q = l + 1 the query,

    .. math:: a = z_q + \sum_{i \le l+1} p_i V z_i , \qquad
              p = \mathrm{softmax}_i \Big( \frac{(K z_i)^\top Q z_q}{\sqrt{d+1}} \Big) , \qquad \hat y = a_{d+1} .

    With `mlp_ratio` m, :math:`\hat y` is the last entry of
    :math:`a + W_2\, \mathrm{GELU}(W_1 a + b_1) + b_2`, with m (d+1) hidden units. Only the query's column is computed.

    Parameters
    ----------
    d : int
    mlp_ratio : float or None
        Hidden units of an MLP per unit of d + 1; None: no MLP.
    init_scale : float
        The initial entries of K, Q and V are Gaussian with variance ``init_scale**2 / (d + 1)``.
    """

    def __init__(self, d: int, *, mlp_ratio: float | None = None, init_scale: float = 1.0) -> None:
        super().__init__()
        self.key, self.query, self.value = (weight(d + 1, init_scale) for _ in range(3))
        self.mlp = None
        if mlp_ratio:
            hidden = max(1, round(mlp_ratio * (d + 1)))
            self.mlp = nn.Sequential(nn.Linear(d + 1, hidden), nn.GELU(), nn.Linear(hidden, d + 1))

    def forward(self, x: Tensor, y: Tensor, query: Tensor) -> Tensor:
        """Predict from x (b, l, d), y (b, l) and query (b, d): shape (b,)."""
        z = pairs(x, y, query)  # (b, l+1, d+1)
        asked = z[:, -1] @ self.query.T @ self.key  # (b, d+1), K^T Q z
        scores = torch.bmm(z, asked[:, :, None]) / z.shape[2] ** 0.5  # (b, l+1, 1)
        attended = torch.bmm(scores.softmax(1).transpose(1, 2), z)[:, 0]  # (b, d+1)
        if self.mlp is None:
            return attended @ self.value[-1]  # the query's own label entry is 0
        a = z[:, -1] + attended @ self.value.T  # (b, d+1)
        answer: Tensor = (a + self.mlp(a))[:, -1]
        return answer
