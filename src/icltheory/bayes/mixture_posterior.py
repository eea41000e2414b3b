"""In-context learning as inference: which of several laws wrote the prompt, and what that says of the query's label."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from icltheory.bayes.inputs import At
from icltheory.bayes.laws import Law
from icltheory.points import Floats
from icltheory.resources import require_memory

Laws = Mapping[str, Law] | Sequence[Law]


@dataclass(frozen=True, kw_only=True)
class MixturePosterior:
    r"""What a prompt says about the law that wrote it, and about a label under the posterior.

    With (...) the prompts' leading shape, results have the shape (...) for ``at="query"`` and (..., l + 1) for
    "prefixes" and "next", where entry m has seen m examples. It is followed by the number k of laws, or by the shape
    of one label as the laws' means have it.

    Attributes
    ----------
    names : tuple of str
        The laws' names: the keys of a mapping, else "0", "1", ...
    weights : array of shape (..., k) or (..., l + 1, k)
        Posterior probabilities of the laws, given the examples and the token whose label is asked for.
    mean, variance : array of shape (..., label) or (..., l + 1, label)
        Of the label, entry by entry.
    expected_error : array of shape (...) or (..., l + 1)
        :math:`E |y - \text{mean}|^2` given the prompt: the variance, summed over the label's entries.
    """

    names: tuple[str, ...]
    weights: Floats
    mean: Floats
    variance: Floats
    expected_error: Floats

    @property
    def most_likely(self) -> NDArray[np.str_]:
        """Name of the law of largest weight (the first of equals), without the last axis of the weights."""
        found: NDArray[np.str_] = np.array(self.names)[np.argmax(self.weights, axis=-1)]
        return found


def mixture(
    X: ArrayLike,
    y: ArrayLike,
    x_query: ArrayLike,
    laws: Laws,
    *,
    prior: ArrayLike | None = None,
    at: At = "query",
) -> MixturePosterior:
    r"""Infer the law that wrote a prompt, and predict the query's label from the posterior over laws.

    A prompt is written by one of k laws, chosen with probabilities :math:`\pi_j`: its examples :math:`(x_i, y_i)` and
    its query x with label y are independent draws from that law. Then

    .. math::
        p_j &\propto \pi_j\, p_j(x) \prod_i p_j(x_i)\, p_j(y_i \mid x_i) , \qquad
        \hat y = \sum_j p_j\, E_j[y \mid x] , \\
        \mathrm{Var}\,y &= \sum_j p_j \left( \mathrm{Var}_j[y \mid x] + (E_j[y \mid x] - \hat y)^2 \right) ,

    and no predictor has a smaller mean squared error. Weights are summed as logarithms with the largest factored out;
    a law that the prompt rules out has weight 0.

    Parameters
    ----------
    X : array of shape (..., l, token)
        Context tokens; any leading shape, l >= 0, and any shape of a token that the laws take, () included.
    y : array of shape (..., l, label)
        Their labels, as the laws' `log_likelihood` takes them.
    x_query : array of shape (..., token)
        The query token, the (l+1)-th of the prompt.
    laws : mapping from names to Law, or sequence of Law
        The possible laws, k >= 1.
    prior : array of shape (k,), optional
        Weights of the laws, >= 0, of any sum; equal by default.
    at : {"query", "prefixes", "next"}
        Predict the query's label from all l examples; from the first m, for m = 0, ..., l; or, for each m, the label
        of token m + 1 from the m examples before it, as an autoregressive model does (the query is token l + 1).

    Returns
    -------
    MixturePosterior

    Raises
    ------
    ValueError, TypeError
        Naming the argument or the law, what was given and what is allowed; where no law is left, the example after
        which that is so.
    MemoryError
        If the weights would not fit, with the estimate.

    References
    ----------
    Xie, Raghunathan, Liang, Ma, "An explanation of in-context learning as implicit Bayesian inference", 2022
    (arXiv:2111.02080), for the view. With `LinearGaussian` laws the mean is that of `icltheory.bayes.discrete`.

    Examples
    --------
    >>> import icltheory as icl
    >>> laws = {"rises": icl.bayes.Logistic([4.0]), "falls": icl.bayes.Logistic([-4.0])}
    >>> answer = icl.bayes.mixture([[0.1], [0.5]], [1, 1], [1.0], laws, at="prefixes")
    >>> answer.weights.round(3)
    array([[0.5  , 0.5  ],
           [0.599, 0.401],
           [0.917, 0.083]])
    >>> answer.mean.round(3), str(answer.most_likely[-1])
    (array([0.5  , 0.595, 0.902]), 'rises')
    """
    named, probabilities = check_laws(laws, prior)
    if at not in get_args(At):
        raise ValueError(f"at must be one of {get_args(At)}, got {at!r}")
    prompts = _Prompts.of(X, y, x_query, named, at)
    columns = 1 if at == "query" else prompts.shape[-1] + 1
    require_memory(
        24.0 * np.prod(prompts.shape[:-1]) * columns * len(named),
        f"posterior weights (prompts {prompts.shape[:-1]}, {len(named)} laws, {columns} numbers of examples)",
        "give fewer prompts at a time",
    )
    logs = np.stack([prompts.log_joint(*law) for law in named.items()])  # (k, ..., columns)
    logs[probabilities == 0] = -np.inf
    largest = np.max(logs, axis=0)
    if np.any(np.isneginf(largest)):
        raise ValueError(prompts.where_none_is_left(named, probabilities))
    weights = np.exp(logs - largest)
    # the prior is not added as a logarithm: beside large ones it would lose its digits
    weights *= probabilities.reshape(-1, *(1,) * largest.ndim)
    weights /= weights.sum(axis=0)
    mean, variance = prompts.moments(named, weights)
    column = largest.ndim - 1  # dropped again where there is one only
    wanted = (np.moveaxis(weights, 0, -1), mean, variance, variance.sum(axis=tuple(range(column + 1, variance.ndim))))
    shaped = [a.squeeze(column) if at == "query" else a for a in wanted]
    return MixturePosterior(
        names=tuple(named), weights=shaped[0], mean=shaped[1], variance=shaped[2], expected_error=shaped[3]
    )


def check_laws(laws: Laws, prior: ArrayLike | None) -> tuple[dict[str, Law], Floats]:
    """Return the laws by name and their prior probabilities, or raise an error that names what is wrong."""
    named = dict(laws) if isinstance(laws, Mapping) else {str(j): law for j, law in enumerate(laws)}
    if not named:
        raise ValueError("laws must have at least one law, got none")
    for name, law in named.items():
        if not isinstance(law, Law):
            raise TypeError(f"law {name} must be an instance of a subclass of icl.bayes.Law, got {law!r}")
    k = len(named)
    weights = np.asarray(np.ones(k) if prior is None else prior)
    if weights.dtype.kind not in "iuf" or weights.shape != (k,):
        raise ValueError(f"prior must have shape (k,) = {(k,)}, a number for each law, got {prior!r}")
    if not np.all(np.isfinite(weights) & (weights >= 0)) or not np.any(weights > 0):
        raise ValueError(f"prior must be finite and >= 0, and > 0 for at least one law, got {prior!r}")
    scaled = weights / np.max(weights)  # first, so that the sum is finite
    return named, scaled / scaled.sum()


@dataclass(frozen=True)
class _Prompts:
    """Prompts of any leading shape, and the tokens whose labels are wanted: one or l + 1 a prompt."""

    X: NDArray[Any]  # (..., l, token)
    y: NDArray[Any]  # (..., l, label)
    tokens: NDArray[Any]  # (..., 1 or l + 1, token)
    shape: tuple[int, ...]  # (..., l)
    at: At

    @classmethod
    def of(cls, X: ArrayLike, y: ArrayLike, x_query: ArrayLike, named: dict[str, Law], at: At) -> "_Prompts":
        """Find out from the first law which axes belong to a token, and check all shapes."""
        x, labels, query = np.asarray(X), np.asarray(y), np.asarray(x_query)
        name, law = next(iter(named.items()))
        shape = np.shape(law.log_likelihood(x, labels))
        n = len(shape)
        if n < 1 or x.shape[:n] != shape or labels.shape[:n] != shape:
            raise ValueError(
                f"law {name}: log_likelihood(X, y) must have the leading shape of X and y, (..., l), "
                f"got {shape} for X {x.shape} and y {labels.shape}"
            )
        if query.shape != shape[:-1] + x.shape[n:]:
            raise ValueError(
                f"x_query must have shape {shape[:-1] + x.shape[n:]}, one token for each prompt of X {x.shape}, "
                f"got {query.shape}"
            )
        tokens = np.expand_dims(query, n - 1)
        return cls(x, labels, np.concatenate([x, tokens], axis=n - 1) if at == "next" else tokens, shape, at)

    def log_joint(self, name: str, law: Law) -> Floats:
        """Return a law's log p(examples, token), the examples being those before each prediction."""
        evidence, density = self.evidence(name, law), self._log_density(name, law, self.tokens)
        if self.at == "query":
            found: Floats = evidence.sum(axis=-1, keepdims=True) + density
            return found
        total = np.zeros((*self.shape[:-1], self.shape[-1] + 1))
        np.cumsum(evidence, axis=-1, out=total[..., 1:])
        return total + density

    def evidence(self, name: str, law: Law) -> Floats:
        """Return a law's log p(x_i, y_i) of every example."""
        found = np.asarray(law.log_likelihood(self.X, self.y), dtype=np.float64)
        if found.shape != self.shape:
            raise ValueError(f"law {name}: log_likelihood(X, y) must have shape {self.shape}, got {found.shape}")
        _refuse(f"law {name}: log_likelihood", found, np.isnan(found) | np.isposinf(found), "a number or -inf")
        return found + self._log_density(name, law, self.X)

    def _log_density(self, name: str, law: Law, tokens: NDArray[Any]) -> Floats:
        found, shape = np.asarray(law.log_density(tokens), dtype=np.float64), tokens.shape[: len(self.shape)]
        if found.shape not in ((), shape):
            raise ValueError(f"law {name}: log_density must have shape {shape} here, got {found.shape}")
        _refuse(f"law {name}: log_density", found, np.isnan(found) | np.isposinf(found), "a number or -inf")
        return found

    def moments(self, named: dict[str, Law], weights: Floats) -> tuple[Floats, Floats]:
        """Return mean and variance of the labels, law by law (West's update), which cancels no digits."""
        total, mean, variance = np.zeros(()), np.zeros(()), np.zeros(())
        labels: tuple[int, ...] | None = None
        for (name, law), weight in zip(named.items(), weights, strict=True):
            own, spread = (np.asarray(f(self.tokens), dtype=np.float64) for f in (law.mean, law.variance))
            lead = self.tokens.shape[: len(self.shape)]
            labels = own.shape[len(lead) :] if labels is None else labels
            for what, found in (("mean", own), ("variance", spread)):
                if found.shape != lead + labels:
                    raise ValueError(f"law {name}: {what} must have shape {lead + labels} here, got {found.shape}")
            _refuse(f"law {name}: mean", own, ~np.isfinite(own), "finite")
            _refuse(f"law {name}: variance", spread, np.isnan(spread) | (spread < 0), ">= 0")
            share = weight.reshape(weight.shape + (1,) * len(labels))
            total = total + share
            step = own - mean
            mean = mean + step * np.divide(share, total, out=np.zeros_like(total), where=total > 0)
            inside = np.where(share > 0, spread, 0.0)  # an infinite variance has no say at weight 0
            variance = variance + share * (inside + step * (own - mean))
        return mean, variance

    def where_none_is_left(self, named: dict[str, Law], probabilities: Floats) -> str:
        """Say at which example, or that at the query, every law has probability 0."""
        left = np.zeros(self.shape, dtype=bool)
        for (name, law), p in zip(named.items(), probabilities, strict=True):
            left |= (p > 0) & np.isfinite(np.cumsum(self.evidence(name, law), axis=-1))
        if np.all(left):
            return "no law is left at the query: its token has probability 0 under every law that the examples allow"
        *prompt, i = map(int, np.argwhere(~left)[0])
        x, label = (np.array2string(a[(*prompt, i)], precision=4, threshold=6) for a in (self.X, self.y))
        where = f" of prompt {tuple(prompt)}" if prompt else ""
        return (
            f"no law is left after example {i + 1}{where}, x = {x}, y = {label}: "
            "it has probability 0 under every law that the prior and the examples before it allow"
        )


def _refuse(what: str, found: Floats, wrong: Any, allowed: str) -> None:
    """Raise an error that shows the first wrong value."""
    if np.any(wrong):
        index = tuple(map(int, np.argwhere(wrong)[0]))
        raise ValueError(f"{what} must be {allowed}, got {found[index]} at index {index}")
