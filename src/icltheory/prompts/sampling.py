"""Exact sampling of prompt summaries: all that linear attention sees of a prompt, at a cost free of its length."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import Floats, Point
from icltheory.prompts.tasks import TaskLaw, task_sampler

Assignment = Literal["random", "balanced"]
ASSIGNMENTS = ("random", "balanced")

_BLOCK = 4096  # sequences drawn at a time: bounds the temporaries, not the result


@dataclass(frozen=True, kw_only=True)
class Summaries:
    r"""A data set of n prompts as linear attention sees them: :math:`H = x\,r^\top`, target y.

    Attributes
    ----------
    query : array of shape (n, d)
        x, the query token.
    context : array of shape (n, d + 1)
        r = :math:`\left[\frac{d}{l}\sum_i y_i x_i,\ \frac1l\sum_i y_i^2\right]`.
    target : array of shape (n,)
        y, the query's label (noise included).
    tasks : array of shape (k, d) or None
        The pretraining tasks; None if every prompt has a fresh one.
    """

    query: Floats
    context: Floats
    target: Floats
    tasks: Floats | None


def sample_summaries(
    point: Point,
    law: TaskLaw,
    rng: np.random.Generator,
    assignment: Assignment = "random",
    *,
    covariance: ArrayLike | None = None,
    tasks: ArrayLike | None = None,
) -> Summaries:
    r"""Draw the pretraining set of a point without ever drawing a context token.

    Split every token along its task, :math:`u = w/|w|`, and orthogonal to it. With :math:`g, e \sim N(0, I_l)` the
    labels are :math:`y_i = |w| g_i/\sqrt d + \sqrt\rho\,e_i` and

    .. math:: \sum_i y_i x_i = \Big(\sum_i y_i g_i/\sqrt d\Big)\,u + \frac{|y|}{\sqrt d}\,(I - u u^\top) z ,
              \qquad z \sim N(0, I_d) .

    Only the Gram matrix of (g, e) enters, a 2 x 2 Wishart matrix: Bartlett's decomposition draws it in O(1). Equal
    in law to token-by-token sampling; O(d) a sequence, whatever the context length.

    Each kind of variate has a random stream of its own, so that the draws do not depend on the block size.

    Parameters
    ----------
    point : Point
    law : {"sphere", "gaussian"}
        Law of the tasks.
    rng : numpy.random.Generator
    assignment : {"random", "balanced"}
        Each prompt uses one of the k tasks: chosen independently and uniformly, or so that all tasks have equally many
        prompts (to within one), in random order. The published runs are balanced; the two differ by O(1/d).
    covariance : array of shape (d,) or (d, d), optional
        Of Gaussian tasks, see `draw_tasks`; the default is the identity.
    tasks : array of shape (k, d), optional
        The pretraining tasks, in place of draws from the law. All other random numbers are the same as without it.

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed.
    """
    if assignment not in ASSIGNMENTS:
        raise ValueError(f"assignment must be one of {ASSIGNMENTS}, got {assignment!r}")
    if tasks is not None and covariance is not None:
        raise ValueError("give tasks or covariance, not both: given tasks are not drawn")
    draw = task_sampler(law, point.d, covariance=covariance)
    d, n, length, k = point.d, point.n_sequences, point.context_length, point.n_tasks
    task_stream, choice, query_stream, orthogonal, normal, gamma, noise = rng.spawn(7)
    if tasks is not None:
        seen: Floats | None = _given(tasks, point)
    else:
        seen = None if np.isinf(k) else draw(int(k), task_stream)
    if seen is not None:
        balanced = assignment == "balanced"
        used = choice.permutation(np.arange(n) % len(seen)) if balanced else choice.integers(len(seen), size=n)
    query, context, target = np.empty((n, d)), np.empty((n, d + 1)), np.empty(n)
    for rows, size in _blocks(n):
        w = draw(size, task_stream) if seen is None else seen[used[rows]]
        norm = np.sqrt(np.einsum("ij,ij->i", w, w))
        y_squared, along = _label_sums(norm / np.sqrt(d), length, point.rho, normal, gamma)
        u = w / np.where(norm > 0, norm, 1.0)[:, None]  # u = 0 serves a task without signal: all of z is then noise
        z = orthogonal.standard_normal((size, d))
        spread = np.sqrt(y_squared / d)
        # (d/l) [along/sqrt(d) u + spread (z - (u.z) u)]
        coefficient = along / np.sqrt(d) - spread * np.einsum("ij,ij->i", u, z)
        z *= spread[:, None]
        z += coefficient[:, None] * u
        np.multiply(z, d / length, out=context[rows, :d])
        context[rows, d] = y_squared / length
        query[rows] = query_stream.standard_normal((size, d)) / np.sqrt(d)
        target[rows] = np.einsum("ij,ij->i", w, query[rows]) + np.sqrt(point.rho) * noise.standard_normal(size)
    return Summaries(query=query, context=context, target=target, tasks=seen)


def _given(tasks: ArrayLike, point: Point) -> Floats:
    """Return given pretraining tasks as a float array, if they are the right number of finite vectors."""
    value, shape = np.asarray(tasks), (point.n_tasks, point.d)
    if value.dtype.kind not in "iuf":
        raise TypeError(f"tasks must be an array of real numbers, got {tasks!r}")
    if value.shape != shape:
        raise ValueError(f"tasks must have shape (n_tasks, d) = {shape}, got {value.shape}")
    if not np.all(np.isfinite(value)):
        row = int(np.argmin(np.isfinite(value).all(axis=1)))
        raise ValueError(f"tasks must be finite, got {value[row]} in row {row}")
    return value.astype(np.float64)


def _label_sums(
    signal: Floats, length: int, rho: float, normal: np.random.Generator, gamma: np.random.Generator
) -> tuple[Floats, Floats]:
    r"""Draw :math:`(\sum_i y_i^2, \sum_i y_i g_i)` for :math:`y_i = m g_i + \sqrt\rho e_i`, with m the signal's sd.

    Bartlett: :math:`g \cdot g` is chi-squared with l degrees of freedom, :math:`g \cdot e = |g| z` with z standard
    normal, and :math:`e \cdot e = z^2` plus a chi-squared variate with l - 1 degrees of freedom.
    """
    z = normal.standard_normal(len(signal))
    chi2 = 2.0 * gamma.standard_gamma((length / 2.0, (length - 1) / 2.0), size=(len(signal), 2))
    gg, ge, ee = chi2[:, 0], np.sqrt(chi2[:, 0]) * z, z**2 + chi2[:, 1]
    noise = np.sqrt(rho)
    return signal**2 * gg + 2 * noise * signal * ge + rho * ee, signal * gg + noise * ge


def _blocks(n: int) -> Iterator[tuple[slice, int]]:
    for start in range(0, n, _BLOCK):
        stop = min(start + _BLOCK, n)
        yield slice(start, stop), stop - start
