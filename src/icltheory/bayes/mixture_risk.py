"""Prompts drawn from a mixture of laws, and the least mean squared error that any predictor can have on them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from icltheory.bayes.inputs import MAX_BYTES, pieces
from icltheory.bayes.mixture_posterior import Laws, check_laws, mixture
from icltheory.points import RNG, Floats, generator, one_whole


@dataclass(frozen=True, kw_only=True)
class MixturePrompts:
    """A batch of b prompts of l labelled tokens and a query, each written by one law.

    Attributes
    ----------
    x : array of shape (b, l, token)
    y : array of shape (b, l, label)
    query : array of shape (b, token)
    target : array of shape (b, label)
        The query's label, which is to be predicted from x, y and query.
    law : integer array of shape (b,)
        Which of the laws wrote the prompt.
    """

    x: NDArray[Any]
    y: NDArray[Any]
    query: NDArray[Any]
    target: NDArray[Any]
    law: NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class BayesRisk:
    """The least mean squared error after 0, 1, ..., l examples, estimated from prompts.

    Attributes
    ----------
    error, standard_error : array of shape (l + 1,)
        Entry m belongs to m examples. All come from the same prompts, so that they are correlated.
    n_prompts : int
    """

    error: Floats
    standard_error: Floats
    n_prompts: int


def draw_mixture(
    laws: Laws, context_length: int, *, n_prompts: int, prior: ArrayLike | None = None, rng: RNG = None
) -> MixturePrompts:
    """Draw prompts from a mixture: a law from the prior for each, then its examples and its query from that law.

    Parameters
    ----------
    laws : mapping from names to Law, or sequence of Law
        Each with a `sample` method.
    context_length : int
        Examples in a prompt, l >= 1; the query is not counted.
    n_prompts : int
    prior : array of shape (k,), optional
        Weights of the laws, >= 0, of any sum; equal by default.
    rng : int, SeedSequence, BitGenerator, Generator or None
        Source of randomness; 0 is a seed.

    Raises
    ------
    ValueError, TypeError
        Naming the argument or the law, what was given and what is allowed.
    NotImplementedError
        For a law without `sample`.

    Examples
    --------
    >>> import icltheory as icl
    >>> laws = [icl.bayes.LinearGaussian([w], 0.1) for w in (-1.0, 0.0, 1.0)]
    >>> prompts = icl.bayes.draw_mixture(laws, 5, n_prompts=3, rng=0)
    >>> prompts.x.shape, prompts.y.shape, prompts.query.shape, prompts.target.shape
    ((3, 5, 1), (3, 5), (3, 1), (3,))
    """
    named, probabilities = check_laws(laws, prior)
    length = one_whole("context_length", context_length, "examples in a prompt")
    source = generator(rng)
    law = source.choice(len(named), size=one_whole("n_prompts", n_prompts, "prompts to draw"), p=probabilities)
    tokens, labels = [], []
    for j, (name, own) in enumerate(named.items()):
        count = int(np.sum(law == j))
        if not count:
            continue
        n = count * (length + 1)
        x, y = map(np.asarray, own.sample(n, source))
        if x.shape[:1] != (n,) or y.shape[:1] != (n,):
            raise ValueError(
                f"law {name}: sample({n}, rng) must return {n} tokens and labels, got {x.shape}, {y.shape}"
            )
        tokens.append(x.reshape(count, length + 1, *x.shape[1:]))
        labels.append(y.reshape(count, length + 1, *y.shape[1:]))
    place = np.argsort(np.argsort(law, kind="stable"))  # from the order of the laws to that of the prompts
    x, y = np.concatenate(tokens)[place], np.concatenate(labels)[place]
    return MixturePrompts(x=x[:, :-1], y=y[:, :-1], query=x[:, -1], target=y[:, -1], law=law)


def bayes_risk(
    laws: Laws, context_length: int, *, prior: ArrayLike | None = None, n_prompts: int = 1000, rng: RNG = None
) -> BayesRisk:
    r"""Estimate the Bayes risk of a mixture after each number of examples.

    .. math:: e_m = E\,|y - \hat y_m|^2 = E\,\mathrm{Var}[\,y \mid x_1, y_1, \dots, x_m, y_m, x\,] ,

    the expectation over prompts drawn from the mixture. The right-hand side is averaged: no label noise of the query
    is in it, so that it varies less than squared errors do. With many laws that are themselves draws from a law of
    tasks it tends to the risk of learning from all tasks.

    Parameters
    ----------
    laws, context_length, prior, rng
        As in `draw_mixture`.
    n_prompts : int, default 1000
        Prompts to average over, >= 2; the standard error falls as its square root.

    Raises
    ------
    ValueError, TypeError
        Naming the argument or the law; also for laws of infinite variance.
    NotImplementedError
        For a law without `sample`.

    Examples
    --------
    >>> import icltheory as icl
    >>> laws = [icl.bayes.LinearGaussian([w], 0.1) for w in (-1.0, 0.0, 1.0)]
    >>> risk = icl.bayes.bayes_risk(laws, 4, n_prompts=2000, rng=0)
    >>> risk.error.round(2), float(risk.standard_error.max().round(2))
    (array([0.76, 0.31, 0.18, 0.14, 0.12]), 0.02)
    """
    count = one_whole("n_prompts", n_prompts, "prompts to average over")
    if count < 2:
        raise ValueError("n_prompts must be >= 2, got 1 (one prompt has no standard error)")
    prompts = draw_mixture(laws, context_length, n_prompts=count, prior=prior, rng=rng)
    bytes_each = 24 * len(laws) * (prompts.x.shape[1] + 1)
    errors = np.concatenate(
        [
            mixture(
                prompts.x[some], prompts.y[some], prompts.query[some], laws, prior=prior, at="prefixes"
            ).expected_error
            for some in pieces(count, max(1, MAX_BYTES // bytes_each))
        ]
    )
    if not np.all(np.isfinite(errors)):
        raise ValueError("laws must have finite variances for a mean squared error, got an infinite expected error")
    spread = errors.std(axis=0, ddof=1) / np.sqrt(count)
    return BayesRisk(error=errors.mean(axis=0), standard_error=spread, n_prompts=count)
