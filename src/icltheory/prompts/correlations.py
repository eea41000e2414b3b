"""Correlations between tokens: what each family of them knows, and the sums over pairs of tokens that theory needs."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import Floats
from icltheory.resources import require_memory

ROUNDING = 1e-10  # absolute, forgiven in a correlation, an eigenvalue and a variance
_SOLVED = 1e-8  # relative residual forgiven in the check of a solution
_TINY = 1e-300  # a correlation length that is as good as 0, but may be divided by


class Correlations(ABC):
    """Correlations between l tokens: sums over pairs of them, and which queries they allow."""

    length: int

    @abstractmethod
    def last(self, length: int) -> "Correlations":
        """Return the correlations among the last so many tokens."""

    @abstractmethod
    def squares(self) -> float:
        r"""Return :math:`\mathrm{tr}\,K^2`."""

    @abstractmethod
    def times(self, v: Floats) -> Floats:
        """Return K v."""

    @abstractmethod
    def following(self) -> Floats | None:
        """Return the correlations of the next token with all, or None if they are unknown."""

    @abstractmethod
    def require_possible(self, k: Floats) -> None:
        """Raise a ValueError unless a query can have the correlations k."""

    @abstractmethod
    def dense(self) -> Floats:
        """Return K, shape (l, l)."""

    def statistics(self, k: Floats) -> tuple[float, float, float]:
        r"""Return :math:`k_0 = k^\top k`, :math:`k_1 = k^\top K k` and :math:`k_2 = \frac1l \mathrm{tr}\,K^2`."""
        k0 = float(k @ k)
        return k0, float(k @ self.times(k)) if k0 > 0 else 0.0, self.squares() / self.length


class Stationary(Correlations):
    """:math:`K_{ab} = c_{|a-b|}`: sums over pairs take O(l) or, by FFT, O(l log l)."""

    @abstractmethod
    def lags(self) -> Floats:
        """Return c_0, ..., c_l (the last may be missing)."""

    @abstractmethod
    def explained(self, k: Floats) -> float:
        """Return k^T K^{-1} k, the share of a query's variance that the context explains; inf if k is not in K."""

    def squares(self) -> float:
        """Return tr K^2 = l + 2 sum_{0<j<l} (l - j) c_j^2."""
        c = self.lags()[: self.length]
        weights = 2.0 * np.arange(len(c), 0.0, -1.0)
        weights[0] = len(c)
        return float(weights @ c**2)

    def times(self, v: Floats) -> Floats:
        """Return K v, by a circular convolution of length 2l."""
        c = self.lags()[: self.length]
        circle = np.concatenate([c, [0.0], c[:0:-1]])
        product: Floats = np.fft.irfft(np.fft.rfft(circle) * np.fft.rfft(v, len(circle)), len(circle))[: len(c)]
        return product

    def following(self) -> Floats | None:
        """Return the next token's correlations, or None."""
        c = self.lags()
        return c[self.length : 0 : -1] if len(c) > self.length else None

    def require_possible(self, k: Floats) -> None:
        """Raise a ValueError unless a query can have the correlations k."""
        rest = 1.0 - self.explained(k)
        if rest < -ROUNDING * self.length:
            raise ValueError(f"query must leave itself a variance 1 - k^T K^-1 k >= 0 given the context, got {rest:g}")

    def dense(self) -> Floats:
        """Return K."""
        size = self.length
        require_memory(16.0 * size**2, f"the {size} x {size} matrix of a kernel", "the statistics do not need it")
        index = np.arange(size)
        matrix: Floats = self.lags()[np.abs(np.subtract.outer(index, index))]
        return matrix


@dataclass(frozen=True)
class Exponential(Stationary):
    r""":math:`c_j = e^{-j/\xi}`; xi = 0 are independent tokens, xi = inf identical ones."""

    xi: float
    length: int

    def lags(self) -> Floats:
        """Return c_0, ..., c_l."""
        return np.asarray(np.exp(-np.arange(self.length + 1.0) / max(self.xi, _TINY)))

    def last(self, length: int) -> "Exponential":
        """Return the correlations among the last so many tokens."""
        return Exponential(self.xi, length)

    def explained(self, k: Floats) -> float:
        r"""Whiten: :math:`(x_a - r x_{a-1})/\sqrt{1-r^2}` are independent, as the chain is autoregressive."""
        if self.xi == np.inf:
            return _explained_by_one(k)
        rate = 1.0 / max(self.xi, _TINY)
        r, innovation = np.exp(-rate), -np.expm1(-2.0 * rate)
        return float(k[0] ** 2 + np.sum((k[1:] - r * k[:-1]) ** 2) / innovation)


@dataclass(frozen=True)
class PowerLaw(Stationary):
    r""":math:`c_j = (1+j)^{-\gamma}`: positive definite for gamma > 0, being convex and decreasing to 0."""

    gamma: float
    length: int

    def lags(self) -> Floats:
        """Return c_0, ..., c_l."""
        return (1.0 + np.arange(self.length + 1.0)) ** -self.gamma

    def last(self, length: int) -> "PowerLaw":
        """Return the correlations among the last so many tokens."""
        return PowerLaw(self.gamma, length)

    def explained(self, k: Floats) -> float:
        """Solve with Levinson's recursion: O(l^2) time, O(l) memory."""
        from scipy.linalg import solve_toeplitz

        if self.gamma == 0:
            return _explained_by_one(k)
        try:
            solution: Floats = solve_toeplitz(self.lags()[:-1], k)
            miss = float(np.abs(self.times(solution) - k).max())
        except np.linalg.LinAlgError:  # a gamma so small that the tokens are all but identical
            miss = np.inf
        if not miss <= _SOLVED * float(np.abs(k).max()):
            raise ArithmeticError(
                f"the query cannot be checked against {self}: a linear solve left a residual of {miss:g}; "
                "give the same kernel as a matrix"
            )
        return float(k @ solution)


@dataclass(frozen=True, eq=False)
class Tabulated(Stationary):
    """Correlations given lag by lag: estimates, which need not be positive semidefinite."""

    values: Floats = field(repr=False)
    length: int

    def lags(self) -> Floats:
        """Return c_0, ..., c_l."""
        return self.values[: self.length + 1]

    def last(self, length: int) -> "Tabulated":
        """Return the correlations among the last so many tokens."""
        if length > len(self.values):
            raise ValueError(f"context_length must be at most {len(self.values)}, as estimated, got {length}")
        return Tabulated(self.values, length)

    def explained(self, k: Floats) -> float:
        """Refuse to tell."""
        raise ValueError(
            'query must be "next" or "independent" for an estimated kernel, whose matrix need not be positive '
            f"semidefinite and cannot tell whether {len(k)} correlations are possible; or use Kernel.from_matrix"
        )


@dataclass(frozen=True, eq=False)
class Estimated(Tabulated):
    """An estimate that knows its noise: the same without one group of sequences after another."""

    left_out: tuple[Tabulated, ...] = field(repr=False)
    shares: Floats = field(repr=False)  # all sequences / those left out

    def last(self, length: int) -> "Estimated":
        """Return the correlations among the last so many tokens."""
        shorter = super().last(length)
        return Estimated(shorter.values, length, tuple(each.last(length) for each in self.left_out), self.shares)


@dataclass(frozen=True, eq=False)
class Explicit(Correlations):
    """Correlations given as a matrix, with those of the next token where these are known."""

    matrix: Floats = field(repr=False)
    next_token: Floats | None = field(repr=False)
    length: int = field(init=False)

    @classmethod
    def of(cls, matrix: ArrayLike) -> "Explicit":
        """Check a matrix: ValueError or TypeError with the entry or the eigenvalue that no tokens can have."""
        value = np.asarray(matrix)
        if value.dtype.kind not in "iuf":
            raise TypeError(f"matrix must be an array of real numbers, got {matrix!r}")
        if value.ndim != 2 or value.shape[0] != value.shape[1] or value.size == 0:
            raise ValueError(f"matrix must have shape (l, l), got {value.shape}")
        value = value.astype(np.float64)
        off_diagonal = ~np.eye(len(value), dtype=bool)
        for good, allowed in (
            (np.isfinite(value), "finite"),
            (np.abs(value - value.T) <= ROUNDING, "symmetric"),
            ((np.abs(value - 1.0) <= ROUNDING) | off_diagonal, "1 on its diagonal"),
        ):
            if not good.all():
                i, j = map(int, np.argwhere(~good)[0])
                mirror = f" and {value[j, i]:g} at {(j, i)}" if allowed == "symmetric" else ""
                raise ValueError(f"matrix must be {allowed}, got {value[i, j]:g} at index {(i, j)}{mirror}")
        value = 0.5 * (value + value.T)
        smallest = _negative_eigenvalue(value)
        if smallest is not None:
            raise ValueError(f"matrix must be positive semidefinite, got the eigenvalue {smallest:g}")
        value.setflags(write=False)
        return cls(value, None)

    def __post_init__(self) -> None:
        """Fill in l, as the other families hold it."""
        object.__setattr__(self, "length", len(self.matrix))

    def last(self, length: int) -> "Explicit":
        """Return the correlations among the last so many tokens."""
        k = self.next_token
        return Explicit(self.matrix[-length:, -length:], None if k is None else k[-length:])

    def squares(self) -> float:
        """Return tr K^2."""
        return float(np.vdot(self.matrix, self.matrix))

    def times(self, v: Floats) -> Floats:
        """Return K v."""
        product: Floats = self.matrix @ v
        return product

    def following(self) -> Floats | None:
        """Return the next token's correlations, or None."""
        return self.next_token

    def require_possible(self, k: Floats) -> None:
        """Raise a ValueError unless a query can have the correlations k."""
        value = _negative_eigenvalue(np.block([[self.matrix, k[:, None]], [k[None, :], np.ones((1, 1))]]))
        if value is not None:
            raise ValueError(
                f"query must make [K k; k^T 1] positive semidefinite, got the eigenvalue {value:g} "
                "(no token has these correlations with the context)"
            )

    def dense(self) -> Floats:
        """Return K."""
        return self.matrix.copy()


def _explained_by_one(k: Floats) -> float:
    """Return k^T K^+ k where all tokens are one and the same; inf unless the query treats them all alike."""
    return float(k[0] ** 2) if np.abs(k - k[0]).max() <= ROUNDING else np.inf


def _negative_eigenvalue(matrix: Floats) -> float | None:
    """Return the smallest eigenvalue if it is negative by more than rounding, else None."""
    slack = ROUNDING * len(matrix)
    try:  # a tenth of the time of eigenvalues, and enough for a matrix that is as it should be
        np.linalg.cholesky(matrix + slack * np.eye(len(matrix)))
        return None
    except np.linalg.LinAlgError:
        value = float(np.linalg.eigvalsh(matrix)[0])
        return value if value < -slack else None
