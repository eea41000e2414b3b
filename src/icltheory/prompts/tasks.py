"""Regression tasks: how they are drawn, and the moments by which the exact test error knows them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from icltheory.points import Floats

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
    second : array of shape (d, d)
        :math:`E\,w w^\top`.
    """

    signal: float
    signal_squared: float
    mean: Floats
    signal_mean: Floats
    second: Floats


def draw_tasks(n_tasks: int, d: int, law: TaskLaw, rng: np.random.Generator) -> Floats:
    r"""Draw tasks, one a row: uniform on the sphere :math:`|w|^2 = d`, or Gaussian with identity covariance."""
    w = rng.standard_normal((n_tasks, d))
    return _LAWS[check_law(law)](w)


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
    )


def moments_of_law(law: TaskLaw, d: int) -> TaskMoments:
    r"""Return the moments of fresh tasks: the ICL test. A Gaussian task has :math:`E s^2 = 1 + 2/d`."""
    return TaskMoments(
        signal=1.0,
        signal_squared=1.0 if check_law(law) == "sphere" else 1.0 + 2.0 / d,
        mean=np.zeros(d),
        signal_mean=np.zeros(d),
        second=np.eye(d),
    )


def _to_sphere(w: Floats) -> Floats:
    norm = np.sqrt(np.einsum("ij,ij->i", w, w))
    scaled: Floats = w * (np.sqrt(w.shape[1]) / norm)[:, None]
    return scaled


_LAWS: dict[str, Callable[[Floats], Floats]] = {"sphere": _to_sphere, "gaussian": lambda w: w}
