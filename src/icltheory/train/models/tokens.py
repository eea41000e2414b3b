"""How prompts are laid out as tokens."""

import torch
from torch import Tensor
from torch.nn import functional


def pairs(x: Tensor, y: Tensor, query: Tensor) -> Tensor:
    r"""Return tokens :math:`(x_i, y_i)`, and :math:`(x_{l+1}, 0)` for the query.

    Parameters
    ----------
    x, y, query : tensors of shapes (b, l, d), (b, l), (b, d)

    Returns
    -------
    tensor of shape (b, l + 1, d + 1)
    """
    xs = torch.cat([x, query[:, None]], dim=1)  # (b, l+1, d)
    ys = functional.pad(y, (0, 1))  # (b, l+1)
    return torch.cat([xs, ys[:, :, None]], dim=2)


def interleaved(x: Tensor, y: Tensor, query: Tensor) -> Tensor:
    r"""Return tokens :math:`(0, x_1), (y_1, 0), (0, x_2), \dots, (0, x_{l+1})`.

    Parameters
    ----------
    x, y, query : tensors of shapes (b, l, d), (b, l), (b, d)

    Returns
    -------
    tensor of shape (b, 2 l + 1, d + 1)
    """
    b, length, d = x.shape
    tokens = x.new_zeros(b, 2 * length + 1, d + 1)
    tokens[:, 0:-1:2, 1:] = x
    tokens[:, 1::2, 0] = y
    tokens[:, -1, 1:] = query
    return tokens
