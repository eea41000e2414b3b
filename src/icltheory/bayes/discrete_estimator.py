"""The Bayes estimator for a finite list of tasks, dMMSE: the posterior mean over the pretraining tasks."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from icltheory.bayes.inputs import (
    MAX_BYTES,
    Array,
    At,
    Inputs,
    by_blocks,
    check_options,
    double,
    finite,
    like,
    numbers,
    one_library,
    pieces,
)
from icltheory.resources import require_memory

_PASSES = 6  # arrays of prompts x tasks that a block keeps at a time
_TASKS = 1024  # tasks in a block: long enough rows for vector units, short enough to leave room for many prompts
_HOST_BLOCK = 1 << 16  # entries of such an array: what stays in a core's cache while it is passed over
_LEAST = -700.0  # exp underflows soon below, where numpy takes twenty times as long over it
_DEVICE_BLOCK = 1 << 24  # on an accelerator, where a block must keep all units busy


def discrete(
    X: Array,
    y: Array,
    x_query: Array,
    tasks: Array,
    rho: float,
    *,
    prior: Array | None = None,
    at: At = "query",
    max_bytes: int = MAX_BYTES,
) -> Array:
    r"""Predict labels by the posterior mean over a list of tasks (dMMSE).

    For a task that is one of :math:`w_1, \dots, w_k` with prior weights :math:`\pi_j`, and Gaussian label noise,

    .. math:: \hat y = \sum_j p_j \langle w_j, x\rangle , \qquad
              p_j \propto \pi_j \exp\Big(-\frac{1}{2\rho} \sum_i (y_i - \langle w_j, x_i\rangle)^2\Big) ,

    whatever the law of the tokens. At rho = 0 it is the limit: the task that fits best (the prior decides between
    equals).

    Weights are summed with their largest factored out, over blocks of tasks and of prompts, in double precision: no
    array of prompts x examples x tasks is ever made, and nothing overflows or vanishes at any rho.

    Parameters
    ----------
    X : array of shape (..., l, d)
        Context tokens, of any array library; any leading shape, l >= 0.
    y : array of shape (..., l)
        Their labels.
    x_query : array of shape (..., d)
        The query token, the (l+1)-th of the prompt.
    tasks : array of shape (k, d)
        The possible tasks, k >= 1.
    rho : float
        Noise variance, >= 0.
    prior : array of shape (k,), optional
        Weights of the tasks, >= 0, of any sum; equal by default.
    at : {"query", "prefixes", "next"}
        Predict the query's label from all l examples; from the first m, for m = 0, ..., l; or, for each m, the label
        of token m + 1 from the m examples before it, as an autoregressive model does (the query is token l + 1).
    max_bytes : int, default 2**28
        Memory for the work on a block of prompts and tasks, beyond the arguments and the result.

    Returns
    -------
    array of shape (...,) or (..., l + 1)
        In double precision, of the library and on the device of X. Column m uses m examples.

    Raises
    ------
    ValueError, TypeError
        Naming the argument, what was given and what is allowed.

    References
    ----------
    Raventos, Paul, Chen, Ganguli, 2023 (arXiv:2306.15063), where it is called the discrete minimum mean squared error
    estimator; Lu, Letey, Zavatone-Veth, Maiti, Pehlevan, PNAS 122(28), 2025 (arXiv:2405.11751).

    Examples
    --------
    >>> import icltheory as icl
    >>> X, y, tasks = [[1.0, 0.0], [0.0, 2.0]], [1.0, 2.1], [[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]]
    >>> icl.bayes.discrete(X, y, [1.0, 1.0], tasks, 0.5, at="prefixes").round(4)
    array([0.6667, 0.9909, 1.964 ])
    """
    prompts = Inputs.of(X, y, x_query)
    noise, budget = check_options(rho, at, max_bytes)
    family = _Family.of(prompts, tasks, prior, noise)
    tasks_at_once, bytes_each = family.block(budget)
    _, length, d = prompts.x.shape
    if at != "query" or length <= d:
        return by_blocks(prompts, bytes_each, budget, lambda block: family.mean(block, at, tasks_at_once), at)
    bytes_each += 24.0 * length * (d + 1)  # their factorisation
    return by_blocks(prompts, bytes_each, budget, lambda block: family.mean(_shortened(block), at, tasks_at_once), at)


def posterior(
    X: Array,
    y: Array,
    tasks: Array,
    rho: float,
    *,
    prior: Array | None = None,
    at: Literal["query", "prefixes"] = "query",
) -> Array:
    r"""Return the posterior weights :math:`p_j` of `discrete` on the tasks.

    Parameters
    ----------
    X, y, tasks, rho, prior
        As in `discrete`.
    at : {"query", "prefixes"}
        After all l examples, or after the first m, for m = 0, ..., l.

    Returns
    -------
    array of shape (..., k) or (..., l + 1, k)
        Non-negative, of sum 1; those before any example are the prior.

    Raises
    ------
    ValueError, TypeError
        Naming the argument, what was given and what is allowed.
    MemoryError
        If the result would not fit, with the estimate.

    Examples
    --------
    >>> import icltheory as icl
    >>> X, y, tasks = [[1.0, 0.0], [0.0, 2.0]], [1.0, 2.1], [[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]]
    >>> icl.bayes.posterior(X, y, tasks, 0.5).round(4)
    array([0.982, 0.018, 0.   ])
    """
    prompts = Inputs.of(X, y, None)
    if at not in ("query", "prefixes"):
        raise ValueError(f'at must be "query" or "prefixes", got {at!r}')
    family = _Family.of(prompts, tasks, prior, check_options(rho, at, MAX_BYTES)[0])
    b, length, _ = prompts.x.shape
    columns = 1 if at == "query" else length + 1
    require_memory(
        8.0 * b * family.w.shape[0] * (2 * columns + _PASSES),
        f"posterior weights ({b} prompts, {family.w.shape[0]} tasks, {columns} numbers of examples)",
        "give fewer prompts at a time",
    )
    found = [family.weights(cost) for m, cost in family.costs(prompts, slice(None)) if at == "prefixes" or m == length]
    return prompts.shaped([found[0] if at == "query" else family.xp.stack(found, axis=1)])


@dataclass(frozen=True)
class _Family:
    """The tasks with their prior, and how well each fits each prompt."""

    xp: Any
    w: Array  # (k, d)
    prior: Array  # (k,), the largest 1
    rho: float

    @classmethod
    def of(cls, prompts: Inputs, tasks: Array, prior: Array | None, rho: float) -> "_Family":
        xp, d = prompts.xp, prompts.x.shape[-1]
        w = numbers("tasks", tasks)
        one_library(X=prompts.x, tasks=w)
        if w.ndim != 2 or w.shape[0] < 1 or w.shape[1] != d:
            raise ValueError(f"tasks must have shape (k, d) with k >= 1 and d = {d} as in X, got {tuple(w.shape)}")
        w = double(xp, w)
        finite(xp, "tasks", w)
        k = w.shape[0]
        if prior is None:
            return cls(xp, w, like(xp, w, "ones", (k,)), rho)
        given = numbers("prior", prior)
        one_library(X=prompts.x, prior=given)
        weights = double(xp, given)
        if tuple(weights.shape) != (k,):
            raise ValueError(f"prior must have shape (k,) = {(k,)}, a weight for each task, got {tuple(weights.shape)}")
        finite(xp, "prior", weights)
        if bool(xp.any(weights < 0)) or not bool(xp.any(weights > 0)):
            raise ValueError("prior must be >= 0, and > 0 for at least one task")
        return cls(xp, w, weights / xp.max(weights), rho)

    def block(self, budget: int) -> tuple[int, float]:
        """Return how many tasks to take at a time, and the bytes to count for each prompt."""
        from array_api_compat import is_numpy_array

        entries = min(budget // (8 * _PASSES), _HOST_BLOCK if is_numpy_array(self.w) else _DEVICE_BLOCK)
        tasks = max(1, min(self.w.shape[0], _TASKS, entries))
        return tasks, budget / max(1, entries // tasks)

    def costs(self, prompts: Inputs, some: slice) -> Iterator[tuple[int, Array]]:
        """Yield m and the squared residuals of the tasks on the first m examples, (b, k), for m = 0, ..., l.

        Each array is the one before, added to in place. A task without prior weight costs infinity from the start.
        """
        xp, w, prior = self.xp, self.w[some, :], self.prior[some]
        b, length, _ = prompts.x.shape
        nothing = like(xp, prior, "zeros", (b, prior.shape[0]))
        cost = xp.where(prior > 0, nothing, nothing + math.inf)
        yield 0, cost
        for m in range(length):
            residual = _products(xp, prompts.x[:, m, :], w)
            residual -= prompts.y[:, m][:, None]
            residual *= residual
            cost += residual
            yield m + 1, cost

    def weights(self, cost: Array) -> Array:
        """Return the posterior weights of all tasks."""
        xp = self.xp
        weight = self.prior * self._likelihood(cost - xp.min(cost, axis=-1, keepdims=True))
        return weight / xp.sum(weight, axis=-1, keepdims=True)

    def mean(self, prompts: Inputs, at: At, tasks_at_once: int) -> Array:
        """Return the posterior means for a block of prompts, from running sums over blocks of tasks."""
        xp, (b, length, _) = self.xp, prompts.x.shape
        wanted = (length,) if at == "query" else tuple(range(length + 1))
        zeros = like(xp, prompts.x, "zeros", (b,))
        least = dict.fromkeys(wanted, zeros + math.inf)
        total: dict[int, Array] = dict.fromkeys(wanted, zeros)
        sums: dict[int, Array] = dict.fromkeys(wanted, zeros)
        for some in pieces(self.w.shape[0], tasks_at_once):
            prior = self.prior[some]
            prediction = _products(xp, prompts.query, self.w[some, :])
            for m, cost in self.costs(prompts, some):
                if m not in least:
                    continue
                if at == "next":
                    token = prompts.x[:, m, :] if m < length else prompts.query
                    prediction = _products(xp, token, self.w[some, :])
                lowest = xp.minimum(least[m], xp.min(cost, axis=-1))
                # no task of any weight so far: any finite offset will do
                offset = xp.where(xp.isfinite(lowest), lowest, zeros)
                faded = self._likelihood(least[m] - offset)
                weight = prior * self._likelihood(cost - offset[:, None])
                total[m] = total[m] * faded + xp.sum(weight, axis=-1)
                weight *= prediction
                sums[m] = sums[m] * faded + xp.sum(weight, axis=-1)
                least[m] = lowest
        means = [sums[m] / total[m] for m in wanted]
        return means[0] if at == "query" else xp.stack(means, axis=1)

    def _likelihood(self, excess: Array) -> Array:
        """Return exp(-excess/2 rho), at rho = 0 its limit; what would underflow is taken as 1e-304."""
        if self.rho == 0:
            return self.xp.astype(excess == 0, self.xp.float64)
        exponent = excess * (-0.5 / self.rho)
        return self.xp.exp(self.xp.maximum(exponent, like(self.xp, exponent, "full", (), _LEAST)))


def _shortened(prompts: Inputs) -> Inputs:
    """Return prompts of d examples that set the tasks apart just as these do, if these have more.

    With X = Q R, |y - X w|^2 is |Q^T y - R w|^2 plus a constant.
    """
    xp, d = prompts.xp, prompts.x.shape[2]
    triangle = xp.linalg.qr(xp.concat([prompts.x, prompts.y[:, :, None]], axis=2))[1]
    return Inputs(xp, triangle[:, :d, :d], triangle[:, :d, d], prompts.query, prompts.shape)


def _products(xp: Any, tokens: Array, tasks: Array) -> Array:
    return xp.matmul(tokens, xp.matrix_transpose(tasks))
