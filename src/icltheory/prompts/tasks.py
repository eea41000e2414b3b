"""Regression tasks: how they are drawn, and the moments by which the exact test error knows them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import Floats
from icltheory.prompts.covariance import check_covariance, square_root

TaskLaw = Literal["sphere", "gaussian"]


@dataclass(frozen=True, kw_only=True)
class TaskMoments:
    r"""The moments of a law of tasks w on which the mean squared error of a reduced attention model depends.

    With the signal variance :math:`s = |w|^2/d` of a task:

    Attributes
    ----------
    signal, signal_squared : float
        :math:`E\,s` and :math:`E\,s^2`.
    mean, signal_mean : array of shape (d,)
        :math:`E\,w` and :math:`E\,s\,w`.
    second, signal_second : array of shape (d, d)
        :math:`E\,w w^\top` and :math:`E\,s\,w w^\top`.
    tasks : array of shape (k, d) or None
        The tasks themselves, if the law is a list; a law without a list is symmetric: all its odd moments vanish.
    """

    signal: float
    signal_squared: float
    mean: Floats
    signal_mean: Floats
    second: Floats
    signal_second: Floats
    tasks: Floats | None


def draw_tasks(
    n_tasks: int, d: int, law: TaskLaw, rng: np.random.Generator, *, covariance: ArrayLike | None = None
) -> Floats:
    r"""Draw tasks, one a row: uniform on the sphere :math:`|w|^2 = d`, or Gaussian, :math:`w \sim N(0, C)`.

    Parameters
    ----------
    n_tasks, d : int
        Rows and columns of the answer.
    law : {"sphere", "gaussian"}
    rng : numpy.random.Generator
    covariance : array of shape (d,) or (d, d), optional
        C of Gaussian tasks: eigenvalues in the token basis, or a symmetric positive semidefinite matrix. Default: the
        identity. `icltheory.prompts.covariance` has builders.

    Raises
    ------
    ValueError, TypeError
        For an unknown law, something that is not a covariance, or a covariance with ``law="sphere"``.

    Examples
    --------
    >>> import numpy as np
    >>> from icltheory.prompts.covariance import low_rank
    >>> draw_tasks(2, 4, "gaussian", np.random.default_rng(0), covariance=low_rank(4, 1)).round(2).tolist()
    [[0.25, -0.0, 0.0, 0.0], [-1.07, 0.0, 0.0, 0.0]]
    """
    return task_sampler(law, d, covariance=covariance)(n_tasks, rng)


def task_sampler(
    law: TaskLaw, d: int, *, covariance: ArrayLike | None = None
) -> Callable[[int, np.random.Generator], Floats]:
    """Return ``draw(n_tasks, rng)``, with the covariance checked and factored once for all draws."""
    checked = check_task_covariance("covariance", covariance, d, check_law(law))
    root = None if checked is None else square_root(checked)

    def draw(n_tasks: int, rng: np.random.Generator) -> Floats:
        w = rng.standard_normal((n_tasks, d))
        if root is None:
            return _LAWS[law](w)
        coloured: Floats = w * root if root.ndim == 1 else w @ root
        return coloured

    return draw


def check_task_covariance(name: str, covariance: ArrayLike | None, d: int, law: TaskLaw) -> Floats | None:
    """Return the covariance of tasks of this law (None: the identity), or raise an error under the argument's name."""
    if covariance is None:
        return None
    if law == "sphere":
        raise ValueError(f'{name} must be None with tasks="sphere", an isotropic law; use tasks="gaussian"')
    return check_covariance(name, covariance, d)


def check_law(law: str) -> TaskLaw:
    """Return the law's name, or raise an error that lists the names."""
    if law not in _LAWS:
        raise ValueError(f"tasks must be one of {sorted(_LAWS)}, got {law!r}")
    return law  # type: ignore[return-value]


def moments_of_tasks(w: Floats) -> TaskMoments:
    """Return the moments of the uniform law on the given tasks (rows): the IDG test."""
    s = np.einsum("ij,ij->i", w, w) / w.shape[1]
    return TaskMoments(
        signal=float(s.mean()),
        signal_squared=float((s**2).mean()),
        mean=w.mean(axis=0),
        signal_mean=s @ w / len(w),
        second=w.T @ w / len(w),
        signal_second=(w * s[:, None]).T @ w / len(w),
        tasks=w,
    )


def moments_of_law(law: TaskLaw, d: int, *, covariance: ArrayLike | None = None) -> TaskMoments:
    r"""Return the moments of fresh tasks: the ICL test.

    A sphere task has s = 1. For a Gaussian task of covariance C, by Wick's theorem,

    .. math:: E\,s = \frac1d \mathrm{tr}\,C , \qquad E\,s^2 = (E\,s)^2 + \frac{2}{d^2} \mathrm{tr}\,C^2 , \qquad
              E\,w w^\top = C , \qquad E\,s\,w w^\top = (E\,s)\, C + \frac2d C^2 ,

    and odd moments vanish; with C = I it is :math:`E\,s^2 = 1 + 2/d`.
    """
    c = check_task_covariance("covariance", covariance, d, check_law(law))
    second = np.eye(d) if c is None else np.diag(c) if c.ndim == 1 else c
    signal = float(np.trace(second)) / d
    squared = second @ second if c is not None and c.ndim == 2 else second * second
    spread = 0.0 if law == "sphere" else 2.0 * float(np.vdot(second, second)) / d**2
    return TaskMoments(
        signal=signal,
        signal_squared=signal**2 + spread,
        mean=np.zeros(d),
        signal_mean=np.zeros(d),
        second=second,
        signal_second=second if law == "sphere" else signal * second + (2.0 / d) * squared,
        tasks=None,
    )


def _to_sphere(w: Floats) -> Floats:
    norm = np.sqrt(np.einsum("ij,ij->i", w, w))
    scaled: Floats = w * (np.sqrt(w.shape[1]) / norm)[:, None]
    return scaled


_LAWS: dict[str, Callable[[Floats], Floats]] = {"sphere": _to_sphere, "gaussian": lambda w: w}
