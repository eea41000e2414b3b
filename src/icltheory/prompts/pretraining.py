"""The pretraining tasks of an experiment: those that belong to a seed, or those that the caller gives."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import RNG, Floats, Point, generator
from icltheory.prompts.tasks import TaskLaw, check_law, check_task_covariance, task_sampler


def pretraining_tasks(
    *,
    d: int,
    kappa: float | None = None,
    n_tasks: int | None = None,
    tasks: TaskLaw = "sphere",
    task_covariance: ArrayLike | None = None,
    rng: RNG,
) -> Floats:
    r"""Return the k pretraining tasks that belong to a seed, one a row.

    They are those on which ``simulate.linear_attention`` and ``prompts.stream_prompts`` pretrain with the same seed and
    the same d, k and law.

    Parameters
    ----------
    d : int
        Token dimension.
    kappa, n_tasks : float, int
        k/d, or k itself; finite.
    tasks : {"sphere", "gaussian"}
        Law of the tasks.
    task_covariance : array of shape (d,) or (d, d), optional
        Of Gaussian tasks.
    rng : int, SeedSequence, BitGenerator or Generator
        The pretraining's seed; kinds other than an integer are advanced.

    Returns
    -------
    array of shape (k, d)

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed.

    Examples
    --------
    >>> import icltheory as icl
    >>> w = pretraining_tasks(d=4, n_tasks=6, rng=0)
    >>> batch = next(icl.prompts.stream_prompts(d=4, n_tasks=6, alpha=1.0, n_sequences=9, rho=0.1, rng=0))
    >>> bool((w[batch.task_index] == batch.task).all())
    True
    """
    if rng is None:
        raise ValueError("rng must be the pretraining's seed, an integer, got None (unknown tasks)")
    point = Point.of(d=d, context_length=1, n_sequences=1, kappa=kappa, n_tasks=n_tasks, rho=0.0)
    if np.isinf(point.n_tasks):
        name = "kappa" if n_tasks is None else "n_tasks"
        raise ValueError(f"{name} must be finite, got inf: there is then no list of tasks")
    covariance = check_task_covariance("task_covariance", task_covariance, point.d, check_law(tasks))
    draw = task_sampler(tasks, point.d, covariance=covariance)
    # the first child of the generator draws the tasks everywhere
    return draw(int(point.n_tasks), generator(rng).spawn(1)[0])


def given_tasks(name: str, tasks: Any, d: int, n_tasks: float | None = None) -> Floats:
    """Return given tasks as a float array of shape (k, d), or raise an error under the argument's name."""
    value = np.asarray(tasks)
    if value.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be an array of real numbers, got {tasks!r}")
    if n_tasks is not None and value.shape != (n_tasks, d):
        raise ValueError(f"{name} must have shape (n_tasks, d) = {(n_tasks, d)}, got {value.shape}")
    if value.ndim != 2 or len(value) < 1 or value.shape[1] != d:
        raise ValueError(f"{name} must have shape (k, d) with k >= 1 and d = {d}, got {value.shape}")
    if not np.all(np.isfinite(value)):
        row = int(np.argmin(np.isfinite(value).all(axis=1)))
        raise ValueError(f"{name} must be finite, got {value[row]} in row {row}")
    return value.astype(np.float64)
