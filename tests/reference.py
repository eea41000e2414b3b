"""Slow, obvious twins of the library's fast paths: token-by-token prompts, materialised features, dense fits."""

import numpy as np


def token_prompts(tasks, length, rho, rng):
    """Draw one full prompt for each row of tasks: tokens (n, l + 1, d) and labels (n, l + 1), the query last."""
    n, d = tasks.shape
    tokens = rng.standard_normal((n, length + 1, d)) / np.sqrt(d)
    labels = np.einsum("nld,nd->nl", tokens, tasks) + np.sqrt(rho) * rng.standard_normal((n, length + 1))
    return tokens, labels


def summarise(tokens, labels):
    """Reduce prompts to (query, context summary r, target)."""
    d, length = tokens.shape[2], tokens.shape[1] - 1
    x, y = tokens[:, :-1], labels[:, :-1]
    context = np.column_stack([d / length * np.einsum("nl,nld->nd", y, x), (y**2).mean(axis=1)])
    return tokens[:, -1], context, labels[:, -1]


def features(query, context):
    """Form the matrix F: one row vec(x r^T) a prompt."""
    return np.array([np.outer(x, r).ravel() for x, r in zip(query, context, strict=True)])


def dense_fit(query, context, target, penalty):
    """Fit ridge regression by the SVD of the materialised features; at penalty 0 the minimum-norm solution."""
    u, s, vt = np.linalg.svd(features(query, context), full_matrices=False)
    weights = s / (s**2 + penalty)
    return (vt.T @ (weights * (u.T @ target))).reshape(query.shape[1], context.shape[1])
