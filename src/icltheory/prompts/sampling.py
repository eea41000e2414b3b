"""Exact sampling of prompt summaries: all that linear attention sees of a prompt, at a cost free of its length."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import Floats, Point
from icltheory.prompts.kernels import Kernel, Query, require_kernel
from icltheory.prompts.label_sums import LabelSums, label_sampler
from icltheory.prompts.pretraining import given_tasks
from icltheory.prompts.tasks import TaskLaw, task_sampler

Assignment = Literal["random", "balanced"]
ASSIGNMENTS = ("random", "balanced")

_BLOCK = 4096  # sequences drawn at a time: bounds the temporaries, not the result
_BLOCK_ENTRIES = 1 << 22  # the same, in numbers drawn for their tokens


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
    kernel: Kernel | None = None,
    query: Query = "independent",
) -> Summaries:
    r"""Draw the pretraining set of a point without ever drawing a context token.

    Split every token along its task, :math:`u = w/|w|`, and orthogonal to it. Tokens have correlations K with each
    other and k with the query (K = I and k = 0 without a `kernel`). With :math:`g \sim N(0, K)`,
    :math:`e \sim N(0, I_l)` the labels are :math:`y_i = |w| g_i/\sqrt d + \sqrt\rho\,e_i` and, for z standard normal,

    .. math::
        \sum_i y_i x_i &= \frac{y^\top g}{\sqrt d}\,u + \sqrt{\frac{y^\top K y}{d}}\,(I - u u^\top) z , \\
        \sqrt d\, x_{l+1} &= \Big(k^\top K^{-1} g + \sqrt{1 - k^\top K^{-1} k}\; z_0\Big)\,u
            + (I - u u^\top) \Big(\frac{y^\top k}{\sqrt{y^\top K y}}\, z
            + \sqrt{1 - \frac{(y^\top k)^2}{y^\top K y}}\; z'\Big) .

    Only sums over g and e enter. For independent tokens these are a 2 x 2 Wishart matrix, drawn in O(1) by Bartlett's
    decomposition, so that a sequence costs O(d) whatever its context length; for others O(l + d), see `label_sampler`.
    Equal in law to token-by-token sampling.

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
    kernel : Kernel, optional
        Correlations of the tokens, for just as many as the point's context length; the default is independent tokens.
    query : {"independent", "next"} or array of shape (l,)
        Correlations of the query token with them, see `Kernel.query_vector`.

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
    sums, left = label_sampler(length, point.rho, check_kernel(kernel, query, length), query)
    task_stream, choice, query_stream, orthogonal, normal, gamma, noise = rng.spawn(7)
    if tasks is not None:
        seen: Floats | None = given_tasks("tasks", tasks, d, k)
    else:
        seen = None if np.isinf(k) else draw(int(k), task_stream)
    if seen is not None:
        balanced = assignment == "balanced"
        used = choice.permutation(np.arange(n) % len(seen)) if balanced else choice.integers(len(seen), size=n)
    query_tokens, context, target = np.empty((n, d)), np.empty((n, d + 1)), np.empty(n)
    for rows, size in _blocks(n, _BLOCK if kernel is None else max(1, min(_BLOCK, _BLOCK_ENTRIES // length))):
        w = draw(size, task_stream) if seen is None else seen[used[rows]]
        norm = np.sqrt(np.einsum("ij,ij->i", w, w))
        y = sums(norm / np.sqrt(d), normal, gamma)
        u = w / np.where(norm > 0, norm, 1.0)[:, None]  # u = 0 serves a task without signal: all of z is then noise
        z = orthogonal.standard_normal((size, d))
        last = query_stream.standard_normal((size, d))
        z_along = np.einsum("ij,ij->i", u, z)
        if left < 1.0:  # the context says something of the query
            _correlate(last, z, u, z_along, y, left)
        query_tokens[rows] = last / np.sqrt(d)
        spread = np.sqrt(y.energy / d)
        # (d/l) [along/sqrt(d) u + spread (z - (u.z) u)]
        z *= spread[:, None]
        z += (y.along / np.sqrt(d) - spread * z_along)[:, None] * u
        np.multiply(z, d / length, out=context[rows, :d])
        context[rows, d] = y.squared / length
        target[rows] = np.einsum("ij,ij->i", w, query_tokens[rows]) + np.sqrt(point.rho) * noise.standard_normal(size)
    return Summaries(query=query_tokens, context=context, target=target, tasks=seen)


def check_kernel(kernel: Kernel | None, query: Query, length: int) -> Kernel | None:
    """Return the kernel, if there is one of this many tokens; without one the query is independent."""
    if kernel is None:
        require_kernel(query)
        return None
    if kernel_length(kernel) != length:
        raise ValueError(
            f"kernel must have the context length of the prompts, {length}, got {kernel.context_length} ({kernel.name})"
        )
    return kernel


def kernel_length(kernel: Kernel) -> int:
    """Return the tokens of a kernel, or raise an error if it is something else."""
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel must be a Kernel, such as Kernel.exponential(2.0, context_length=128), got {kernel!r}")
    return kernel.context_length


def _correlate(last: Floats, z: Floats, u: Floats, z_along: Floats, y: LabelSums, left: float) -> None:
    """Turn standard normal queries into queries that have their correlations with the context, in place."""
    shared = y.overlap / np.sqrt(np.where(y.energy > 0, y.energy, 1.0))
    own = np.sqrt(np.maximum(1.0 - shared**2, 0.0))
    last_along = np.einsum("ij,ij->i", u, last)
    last *= own[:, None]
    last += shared[:, None] * z
    last += (y.query_mean + np.sqrt(left) * last_along - own * last_along - shared * z_along)[:, None] * u


def _blocks(n: int, block: int) -> Iterator[tuple[slice, int]]:
    for start in range(0, n, block):
        stop = min(start + block, n)
        yield slice(start, stop), stop - start
