"""Laws of an example (x, y): what a mixture of laws needs to know of each, and two that come with it."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from icltheory.bayes.inputs import double, finite, numbers
from icltheory.points import Floats, check


class Law(ABC):
    r"""A law of independent examples :math:`(x_i, y_i)`, to write your own: a subclass with three methods.

    Tokens and labels are numbers, vectors, words, anything that fits into numpy arrays. All methods take arrays of
    tokens of any leading shape, here written (...), followed by the shape of one token, if it has one.

    Examples
    --------
    Counts whose rate is :math:`e^{w x}`:

    >>> import math
    >>> import numpy as np
    >>> import icltheory as icl
    >>> class Counts(icl.bayes.Law):
    ...     def __init__(self, w):
    ...         self.w = w
    ...
    ...     def log_likelihood(self, x, y):
    ...         return y * self.w * x - self.mean(x) - np.vectorize(math.lgamma)(y + 1.0)
    ...
    ...     def mean(self, x):
    ...         return np.exp(self.w * x)
    ...
    ...     def variance(self, x):
    ...         return self.mean(x)
    >>> answer = icl.bayes.mixture([0.5, 1.0], [1, 3], 1.0, [Counts(0.0), Counts(1.0), Counts(2.0)])
    >>> answer.weights.round(4), round(float(answer.mean), 4)
    (array([0.2255, 0.7   , 0.0745]), 2.6789)
    """

    @abstractmethod
    def log_likelihood(self, x: NDArray[Any], y: NDArray[Any]) -> Floats:
        r"""Return :math:`\log p(y \mid x)`, natural logarithm, of shape (...); -inf where it cannot be."""

    @abstractmethod
    def mean(self, x: NDArray[Any]) -> Floats:
        r"""Return :math:`E[y \mid x]`, of shape (...) followed by that of one label, if it has one.

        For a label that is one of V things give their probabilities, (..., V): the mean of the label written one-hot.
        """

    @abstractmethod
    def variance(self, x: NDArray[Any]) -> Floats:
        r"""Return :math:`\mathrm{Var}[y \mid x]`, entry by entry, of the shape of the mean."""

    def log_density(self, x: NDArray[Any]) -> Floats | float:  # noqa: ARG002 (others look at the token)
        r"""Return :math:`\log p(x)` of the tokens, of shape (...), up to a constant that all laws share.

        Tokens are evidence where laws differ in them. By default they do not: 0.
        """
        return 0.0

    def sample(self, n: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return n independent examples: tokens, of shape (n, ...), and labels, as `log_likelihood` takes them.

        Needed to draw prompts only.
        """
        raise NotImplementedError(
            f"{type(self).__name__} needs a method sample(n, rng) -> (x, y), n independent examples, to draw prompts"
        )


@dataclass(frozen=True, eq=False)
class LinearGaussian(Law):
    r"""Linear regression with Gaussian noise: :math:`y = \langle w, x\rangle + N(0, \rho)`.

    A finite mixture of them is dMMSE, `icltheory.bayes.discrete`, which is faster and takes the limit rho = 0.

    Attributes
    ----------
    w : array of shape (d,)
        The task.
    rho : float
        Noise variance, > 0.

    Raises
    ------
    ValueError, TypeError
        Naming the argument, what was given and what is allowed.

    Examples
    --------
    >>> import icltheory as icl
    >>> law = icl.bayes.LinearGaussian([1.0, 2.0], 0.5)
    >>> law.mean([[1.0, 1.0], [0.0, 3.0]]), law.variance([1.0, 1.0])
    (array([3., 6.]), array(0.5))
    """

    w: Floats
    rho: float

    def __post_init__(self) -> None:
        rho = check("rho", self.rho)
        if rho.ndim:
            raise TypeError(f"rho must be one number, got an array of shape {rho.shape}")
        if rho == 0:
            raise ValueError("rho must be > 0, got 0 (no density without noise); icl.bayes.discrete takes that limit")
        object.__setattr__(self, "w", _task(self.w))
        object.__setattr__(self, "rho", float(rho))

    def log_likelihood(self, x: ArrayLike, y: ArrayLike) -> Floats:
        r"""Return :math:`-\frac{1}{2\rho}(y - \langle w, x\rangle)^2 - \frac12 \log 2\pi\rho`."""
        residual = _labels(y) - self.mean(x)
        found: Floats = -0.5 * (residual**2 / self.rho + np.log(2.0 * np.pi * self.rho))
        return found

    def mean(self, x: ArrayLike) -> Floats:
        r"""Return :math:`\langle w, x\rangle`."""
        return _signal(x, self.w)

    def variance(self, x: ArrayLike) -> Floats:
        """Return rho."""
        return np.full(np.shape(x)[:-1], self.rho)

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        r"""Draw examples with tokens :math:`x \sim N(0, I_d/d)`."""
        x = _tokens(n, self.w.size, rng)
        return x, x @ self.w + np.sqrt(self.rho) * rng.standard_normal(n)


@dataclass(frozen=True, eq=False)
class Logistic(Law):
    r"""Two classes: y is 1 with probability :math:`1/(1 + e^{-\langle w, x\rangle})`, else 0.

    Attributes
    ----------
    w : array of shape (d,)
        The task.

    Raises
    ------
    ValueError, TypeError
        For a task that is not a vector of finite numbers, or labels other than 0 and 1.

    Examples
    --------
    >>> import icltheory as icl
    >>> law = icl.bayes.Logistic([1.0, 2.0])
    >>> round(float(law.mean([1.0, 1.0])), 4), law.log_likelihood([[1.0, 1.0], [0.0, -400.0]], [0, 1]).round(4)
    (0.9526, array([  -3.0486, -800.    ]))
    """

    w: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "w", _task(self.w))

    def log_likelihood(self, x: ArrayLike, y: ArrayLike) -> Floats:
        r"""Return :math:`-\log(1 + e^{\mp\langle w, x\rangle})`, for y = 1 and 0, without overflow."""
        labels = _labels(y)
        if not np.all((labels == 0) | (labels == 1)):
            wrong = labels[(labels != 0) & (labels != 1)][0]
            raise ValueError(f"y must be 0 or 1 under a Logistic law, got {wrong:g}")
        return _log_sigmoid((2.0 * labels - 1.0) * _signal(x, self.w))

    def mean(self, x: ArrayLike) -> Floats:
        """Return the probability of 1."""
        found: Floats = np.exp(_log_sigmoid(_signal(x, self.w)))
        return found

    def variance(self, x: ArrayLike) -> Floats:
        """Return p(1 - p)."""
        signal = _signal(x, self.w)
        found: Floats = np.exp(_log_sigmoid(signal) + _log_sigmoid(-signal))
        return found

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Floats, NDArray[np.int64]]:
        r"""Draw examples with tokens :math:`x \sim N(0, I_d/d)`."""
        x = _tokens(n, self.w.size, rng)
        return x, (rng.random(n) < self.mean(x)).astype(np.int64)


def _task(value: ArrayLike) -> Floats:
    w: Floats = double(np, np.array(numbers("w", value)))
    if w.ndim != 1 or not w.size:
        raise ValueError(f"w must have shape (d,) with d >= 1, one task, got {w.shape}")
    finite(np, "w", w)
    return w


def _signal(x: ArrayLike, w: Floats) -> Floats:
    tokens: Floats = double(np, numbers("x", np.asarray(x)))
    if not tokens.ndim or tokens.shape[-1] != w.size:
        raise ValueError(f"tokens must have shape (..., d) with d = {w.size} as the task w, got {tokens.shape}")
    signal: Floats = tokens @ w
    return signal


def _labels(y: ArrayLike) -> Floats:
    labels = np.asarray(y)
    found: Floats = labels.astype(np.float64) if labels.dtype.kind == "b" else double(np, numbers("y", labels))
    return found


def _tokens(n: int, d: int, rng: np.random.Generator) -> Floats:
    x: Floats = rng.standard_normal((n, d)) / np.sqrt(d)
    return x


def _log_sigmoid(z: Floats) -> Floats:
    found: Floats = -np.logaddexp(0.0, -z)
    return found
