r"""Closed forms for the resolvent :math:`G = (R + \xi)^{-1}` of a prompt's second moment R at finite d.

In the eigenbasis of the tasks' second moment, R is diagonal but for its last row and column: an arrow matrix, whose
inverse is diagonal plus a term of rank one. Every trace is then a sum over eigenvalues.
"""

from dataclasses import dataclass

import numpy as np

from icltheory.points import Floats
from icltheory.theory.mean_spectrum import TaskSpectrum


@dataclass(frozen=True, kw_only=True)
class PromptMoments:
    r"""Second moments of prompts of one length.

    .. math:: R = E\,r r^\top = \begin{bmatrix} \mathrm{diag}(\mathtt{body}) & \mathtt{border}\, h \\
              \cdot & \mathtt{corner} \end{bmatrix}, \qquad
              A = E\,w r^\top = [\,\mathrm{diag}(\mathtt{target}),\ \mathtt{mean}\; h\,] ,

    where h is the mean label vector of the pretraining tasks (see `TaskSpectrum.label`); and E |w|^2/d, the signal.
    """

    body: Floats
    border: float
    corner: float
    target: Floats
    mean: float
    signal: float


def seen(tasks: TaskSpectrum, d: int, context_length: float, rho: float, k2: float = 1.0) -> PromptMoments:
    r"""Return the moments of prompts on the pretraining tasks, by Wick's theorem (see `icltheory.simulate.error`).

    Tokens are correlated by :math:`k_2 = \frac1l \mathrm{tr}\,K^2`, 1 for independent ones. With k2 > 1 and tasks of
    different norms the border is not exactly along h; what is left out is of order 1/l of one feature in d + 1.
    """
    power = tasks.signal_squared + 2.0 * rho * tasks.signal + rho**2
    energy = k2 * tasks.signal + rho
    return PromptMoments(
        body=(1.0 + k2 / context_length) * tasks.value + energy * d / context_length,
        border=1.0 + 2.0 / context_length * (energy / (tasks.signal + rho)),
        corner=(1.0 + 2.0 / context_length) * power + 2.0 / context_length * (k2 - 1.0) * tasks.signal_squared,
        target=tasks.value,
        mean=1.0,
        signal=tasks.signal,
    )


def fresh(
    signal_squared: float, tasks: TaskSpectrum, d: int, context_length: float, rho: float, k2: float = 1.0
) -> PromptMoments:
    """Return the moments of prompts on fresh isotropic tasks with E |w|^2/d = 1, in the eigenbasis of `tasks`.

    Tokens are correlated as in `seen`.
    """
    one = np.ones_like(tasks.value)
    return PromptMoments(
        body=one * (1.0 + k2 / context_length + (k2 + rho) * d / context_length),
        border=0.0,
        corner=(1.0 + 2.0 / context_length) * (signal_squared + 2.0 * rho + rho**2)
        + 2.0 / context_length * (k2 - 1.0) * signal_squared,
        target=one,
        mean=0.0,
        signal=1.0,
    )


def traces(tasks: TaskSpectrum, train: PromptMoments, test: PromptMoments, xi: float) -> tuple[float, float]:
    r"""Return :math:`\mathrm{tr}\,R_{test} G` and :math:`\mathrm{tr}\,R_{test} G^2` for G of the training prompts."""
    weight, label = tasks.weight, tasks.label
    g = 1.0 / (train.body + xi)
    schur = train.corner + xi - train.border**2 * float(label @ g)
    growth = 1.0 + train.border**2 * float(label @ g**2)  # d schur / d xi
    inner, inner2 = float(label @ (test.body * g**2)), float(label @ (test.body * g**3))
    cross, cross2 = float(label @ g), float(label @ g**2)
    b, c = train.border, 2.0 * test.border * train.border
    first = float(weight @ (test.body * g)) + (b * b * inner - c * cross + test.corner) / schur
    second = float(weight @ (test.body * g**2)) + (2.0 * b * b * inner2 - c * cross2) / schur
    return first, second + (b * b * inner - c * cross + test.corner) * growth / schur**2


def systematic_error(tasks: TaskSpectrum, train: PromptMoments, test: PromptMoments, xi: float, d: int) -> float:
    r"""Return the error of the predictor :math:`\bar\Gamma = A G` on test prompts, without the query's label noise.

    It is :math:`\frac1d E|w|^2 - \frac2d \mathrm{tr}\,\bar\Gamma A_{test}^\top +
    \frac1d \mathrm{tr}\,\bar\Gamma R_{test}\bar\Gamma^\top`, with

    .. math:: \bar\Gamma = \left[\mathrm{diag}(a g) - \frac{b}{\sigma} e f^\top,\ \frac{e}{\sigma}\right], \quad
              f = g h,\ e = h - b\, a g h,

    g the diagonal 1/(body + xi), b the border, a the target and sigma the Schur complement of the last entry.
    """
    weight, label = tasks.weight, tasks.label
    g = 1.0 / (train.body + xi)
    b, gain = train.border, train.target * g
    schur = train.corner + xi - b * b * float(label @ g)
    e = 1.0 - b * gain  # times h
    overlap = float(weight @ (gain * test.target)) - b / schur * float(label @ (test.target * e * g))
    overlap += test.mean / schur * float(label @ e)
    e_squared, f_h = float(label @ e**2), float(label @ g)
    power = float(weight @ (gain**2 * test.body)) - 2.0 * b / schur * float(label @ (gain * test.body * g * e))
    power += (b / schur) ** 2 * e_squared * float(label @ (test.body * g**2))
    power += 2.0 * test.border / schur * (float(label @ (gain * e)) - b / schur * e_squared * f_h)
    power += test.corner * e_squared / schur**2
    return test.signal + (power - 2.0 * overlap) / d
