"""The exact test error of any reduced attention model at finite size: no test prompt is drawn."""

import numpy as np

from icltheory.points import Floats
from icltheory.prompts.tasks import TaskMoments


def prompt_moments(tasks: TaskMoments, context_length: int, rho: float) -> tuple[Floats, Floats]:
    r"""Return :math:`A = E\,w r^\top` (d x (d+1)) and :math:`B = E\,r r^\top` ((d+1) x (d+1)) over fresh prompts.

    With a task's signal variance :math:`s = |w|^2/d`, and by Wick's theorem over the l context tokens,

    .. math::
        E[r \mid w] &= [\,w,\ s+\rho\,] \\
        E[r r^\top \mid w] &= \begin{bmatrix}
            \frac{d}{l}(s+\rho) I + (1+\frac1l) w w^\top & (1+\frac2l)(s+\rho)\,w \\
            \cdot & (1+\frac2l)(s+\rho)^2 \end{bmatrix} ,

    averaged here over the law of w. For :math:`|w|^2 = d` it is the formula of Lu et al. 2025 (with
    :math:`(1+\rho)^2` in the corner); keeping s random makes it hold for Gaussian tasks too.
    """
    d = len(tasks.mean)
    label = tasks.signal_mean + rho * tasks.mean
    a = np.column_stack([tasks.second, label])
    b = np.empty((d + 1, d + 1))
    b[:d, :d] = (1 + 1 / context_length) * tasks.second
    b[np.arange(d), np.arange(d)] += (d / context_length) * (tasks.signal + rho)
    b[:d, d] = b[d, :d] = (1 + 2 / context_length) * label
    b[d, d] = (1 + 2 / context_length) * (tasks.signal_squared + 2 * rho * tasks.signal + rho**2)
    return a, b


def exact_error(gamma: Floats, tasks: TaskMoments, context_length: int, rho: float) -> float:
    r"""Return :math:`E (y - \langle\Gamma, x r^\top\rangle)^2` over fresh prompts with tasks of the given moments.

    .. math:: e(\Gamma) = E s + \rho - \frac2d \mathrm{tr}(\Gamma A^\top) + \frac1d \mathrm{tr}(\Gamma B \Gamma^\top)

    Parameters
    ----------
    gamma : array of shape (d, d + 1)
        Any parameters, trained or not.
    tasks : TaskMoments
        Of fresh tasks for the ICL error, of the pretraining tasks for the IDG error.
    context_length : int
        Examples in a test prompt. It may differ from training: r is normalised by its own context length, so that the
        same Gamma applies, and A and B change.
    rho : float
        Label-noise variance of the test prompts.
    """
    d = len(tasks.mean)
    if gamma.shape != (d, d + 1):
        raise ValueError(f"gamma must have shape (d, d + 1) = {(d, d + 1)}, got {gamma.shape}")
    a, b = prompt_moments(tasks, context_length, rho)
    linear = np.vdot(gamma, a)
    quadratic = np.vdot(gamma @ b, gamma)
    return float(tasks.signal + rho - 2 * linear / d + quadratic / d)


def best_gamma(tasks: TaskMoments, context_length: int, rho: float) -> Floats:
    r"""Return the parameters of least error, :math:`\Gamma^\star = A B^{-1}`, shape (d, d + 1): infinite training data.

    Its `exact_error`, :math:`E s + \rho - \frac1d \mathrm{tr}(A B^{-1} A^\top)`, is the noise that no fit can undercut.

    Parameters
    ----------
    tasks, context_length, rho
        As in `exact_error`.

    Examples
    --------
    >>> from icltheory.prompts import moments_of_law
    >>> moments = moments_of_law("sphere", 2)
    >>> round(exact_error(best_gamma(moments, 4, 0.0), moments, 4, 0.0), 4)   # 1 - 1/(1 + (d + 1)/l)
    0.4286
    """
    a, b = prompt_moments(tasks, context_length, rho)
    scale = 1.0 / np.sqrt(np.diag(b))  # label energies and tasks may differ by many orders
    # least squares, as B is singular in the limit of one task and endless context; A then lies in its range
    solution = np.linalg.lstsq(scale[:, None] * b * scale, scale[:, None] * a.T, rcond=None)[0]
    best: Floats = solution.T * scale
    return best
