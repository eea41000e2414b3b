"""The Bayes estimator for tasks that are all possible: ridge regression on the prompt's own examples."""

import math
from typing import Any

from icltheory.bayes.inputs import MAX_BYTES, Array, At, Inputs, by_blocks, check_options, like, pieces

_SINGULAR = 1e-7  # a factor's smallest diagonal entry against its largest: below, tokens depend on each other
_ROUNDING = 2.2e-16


def ridge(
    X: Array,
    y: Array,
    x_query: Array,
    rho: float,
    *,
    at: At = "query",
    max_bytes: int = MAX_BYTES,
) -> Array:
    r"""Predict labels by the posterior mean under Gaussian tasks: ridge regression with the right penalty.

    With :math:`w \sim N(0, I_d)` and :math:`y_i = \langle w, x_i\rangle + N(0, \rho)`, whatever the law of the tokens,

    .. math:: \hat y = \langle \hat w, x\rangle , \qquad
              \hat w = (X^\top X + \rho I)^{-1} X^\top y = X^\top (X X^\top + \rho I)^{-1} y .

    At rho = 0 it is the limit: the interpolating w of least norm, or least squares.

    All prefixes come in one pass. For L the Cholesky factor of :math:`X X^\top + \rho I`, the leading blocks of L
    belong to the prefixes, so that the prediction after m examples is a cumulative sum,
    :math:`\sum_{i \le m} (L^{-1} X x)_i (L^{-1} y)_i`. After every d examples the posterior so far, kept as a
    triangular square root, becomes the prior of the next d: l examples cost O(l d^2). Factors come from QR
    decompositions, never from squared matrices, so that the result keeps its digits down to rho = 0.

    Parameters
    ----------
    X : array of shape (..., l, d)
        Context tokens, of any array library; any leading shape, l >= 0.
    y : array of shape (..., l)
        Their labels.
    x_query : array of shape (..., d)
        The query token, the (l+1)-th of the prompt.
    rho : float
        Noise variance, >= 0; the penalty.
    at : {"query", "prefixes", "next"}
        Predict the query's label from all l examples; from the first m, for m = 0, ..., l; or, for each m, the label
        of token m + 1 from the m examples before it, as an autoregressive model does (the query is token l + 1).
    max_bytes : int, default 2**28
        Memory for the work on a block of prompts; one prompt at a time is the least.

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
    Lu, Letey, Zavatone-Veth, Maiti, Pehlevan, PNAS 122(28), 2025 (arXiv:2405.11751); Raventos, Paul, Chen, Ganguli,
    2023 (arXiv:2306.15063): the estimator that models approach as the number of pretraining tasks grows.

    Examples
    --------
    >>> import icltheory as icl
    >>> icl.bayes.ridge([[1.0, 0.0], [0.0, 2.0]], [1.0, 2.0], [1.0, 1.0], 0.5, at="prefixes").round(4)
    array([0.    , 0.6667, 1.5556])
    """
    prompts = Inputs.of(X, y, x_query)
    noise, budget = check_options(rho, at, max_bytes)
    _, length, d = prompts.x.shape
    rows = length + d if at == "query" else 2 * d
    bytes_each = 8.0 * (3 * rows * (d + 1) + 6 * d * d + 4 * (length + d))
    return by_blocks(prompts, bytes_each, budget, lambda block: _predict(block, noise, at), at)


def _predict(prompts: Inputs, rho: float, at: At) -> Array:
    """Predict for a block: by triangular factors, or by the SVD where they are singular."""
    xp, x, y, (b, length, d) = prompts.xp, prompts.x, prompts.y, prompts.x.shape
    if at == "query" and length > d:
        factor, z = _absorb(xp, *_prior(prompts, rho), x, y)
        if _singular(xp, factor):
            return _by_svd(prompts, rho, length)
        return xp.sum(_solve(xp, factor, z) * prompts.query, axis=-1)
    if at == "next":  # the query is one more token; no prediction looks at its label
        x = xp.concat([x, prompts.query[:, None, :]], axis=1)
        y = xp.concat([y, like(xp, y, "zeros", (b, 1))], axis=1)
    columns = [] if at == "next" else [like(xp, x, "zeros", (b, 1))]
    prior: tuple[Array, Array] | None = None
    for some in pieces(x.shape[1], d):
        new, labels = x[:, some, :], y[:, some]
        if prior is None:
            mean, white, query, spread = like(xp, x, "zeros", (b, d)), new, prompts.query, math.sqrt(rho)
        else:
            transposed = xp.matrix_transpose(prior[0])
            white = xp.matrix_transpose(xp.linalg.solve(transposed, xp.matrix_transpose(new)))
            mean, query, spread = _solve(xp, *prior), _solve(xp, transposed, prompts.query), 1.0
        lower = _cholesky(xp, white, spread)
        if prior is None and _singular(xp, lower):
            return _prefix_by_prefix(prompts, rho, at)
        innovation = _solve(xp, lower, labels - _apply(xp, new, mean))
        if at == "next":
            columns.append(labels - xp.linalg.diagonal(lower) * innovation)
        else:
            gains = _solve(xp, lower, _apply(xp, white, query)) * innovation
            columns.append(xp.sum(mean * prompts.query, axis=-1)[:, None] + xp.cumulative_sum(gains, axis=1))
        if some.stop < x.shape[1]:
            prior = _absorb(xp, *(_prior(prompts, rho) if prior is None else prior), new, labels)
    predictions = xp.concat(columns, axis=1)
    return predictions[:, -1] if at == "query" else predictions


def _prior(prompts: Inputs, rho: float) -> tuple[Array, Array]:
    """Return (R, z) of the penalty alone: the posterior is always the minimum of |R w - z|^2."""
    xp, (b, _, d) = prompts.xp, prompts.x.shape
    eye = like(xp, prompts.x, "eye", d)
    return xp.broadcast_to(math.sqrt(rho) * eye, (b, d, d)), like(xp, prompts.x, "zeros", (b, d))


def _absorb(xp: Any, factor: Array, z: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """Add examples to the posterior: R of the QR decomposition of [[R, z], [X, y]]."""
    d = x.shape[-1]
    rows = xp.concat([xp.concat([factor, x], axis=1), xp.concat([z, y], axis=1)[:, :, None]], axis=2)
    triangle = xp.linalg.qr(rows)[1]
    return triangle[:, :d, :d], triangle[:, :d, d]


def _cholesky(xp: Any, white: Array, spread: float) -> Array:
    """Return L, lower triangular with L L^T = V V^T + spread^2 I, without forming the product."""
    b, size, _ = white.shape
    noise = xp.broadcast_to(spread * like(xp, white, "eye", size), (b, size, size))
    return xp.matrix_transpose(xp.linalg.qr(xp.concat([xp.matrix_transpose(white), noise], axis=1))[1])


def _singular(xp: Any, triangle: Array) -> bool:
    size = xp.abs(xp.linalg.diagonal(triangle))
    return bool(xp.any(xp.min(size, axis=-1) <= _SINGULAR * xp.max(size, axis=-1)))


def _prefix_by_prefix(prompts: Inputs, rho: float, at: At) -> Array:
    """Predict after each number of examples anew: tokens that depend on each other leave no other way at rho = 0."""
    xp, length = prompts.xp, prompts.x.shape[1]
    if at == "query":
        return _by_svd(prompts, rho, length)
    columns = []
    for m in range(length + 1):
        query = prompts.x[:, m, :] if at == "next" and m < length else prompts.query
        columns.append(_by_svd(Inputs(xp, prompts.x, prompts.y, query, prompts.shape), rho, m))
    return xp.stack(columns, axis=1)


def _by_svd(prompts: Inputs, rho: float, m: int) -> Array:
    """Predict from the first m examples; directions in which the tokens do not vary at all have no say."""
    xp, d = prompts.xp, prompts.x.shape[2]
    if m == 0:
        return like(xp, prompts.x, "zeros", (prompts.x.shape[0],))
    u, s, vt = xp.linalg.svd(prompts.x[:, :m, :], full_matrices=False)
    there = s > _ROUNDING * max(m, d) * xp.max(s, axis=-1, keepdims=True)
    gain = xp.where(there, s / xp.where(there, s**2 + rho, like(xp, s, "ones", ())), like(xp, s, "zeros", ()))
    seen = _apply(xp, xp.matrix_transpose(u), prompts.y[:, :m])
    return xp.sum(gain * seen * _apply(xp, vt, prompts.query), axis=-1)


def _solve(xp: Any, matrix: Array, vector: Array) -> Array:
    return xp.linalg.solve(matrix, vector[:, :, None])[:, :, 0]


def _apply(xp: Any, matrix: Array, vector: Array) -> Array:
    return xp.matmul(matrix, vector[:, :, None])[:, :, 0]
