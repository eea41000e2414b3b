"""Kernels of sequentially correlated prompts: how tokens and query resemble each other, in three numbers."""

from dataclasses import dataclass, field
from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import Floats, check, one_whole
from icltheory.prompts.correlations import Correlations, Estimated, Explicit, Exponential, PowerLaw
from icltheory.prompts.kernel_estimates import estimate, jackknife
from icltheory.prompts.regimes import Regime, Statistics, judge

Query = Literal["independent", "next"] | ArrayLike
Triple = tuple[float, float, float]


@dataclass(frozen=True)
class Kernel:
    r"""Correlations between the l tokens of a prompt, and between them and the query.

    .. math:: E\,x_a x_b^\top = K_{ab}\, I/d , \qquad K_{aa} = 1 , \qquad E\,x_{l+1} x_a^\top = k_a\, I/d .

    Make one with `exponential`, `power_law`, `independent`, `from_matrix` or `from_sequences`. A query is
    ``"independent"`` (k = 0), ``"next"`` (the chain goes on: :math:`k_a = K_{a,l+1}`) or the vector k itself.

    Attributes
    ----------
    name : str
        The kernel in words.
    context_length : int
        l, the tokens before the query.

    References
    ----------
    Letey, Lu, Pehlevan, Zavatone-Veth, "Sequential Correlations Change In-Context Learning: Effective Context Length
    and Architectural Mismatch", HiLD at ICML 2026.

    Examples
    --------
    >>> from icltheory.prompts.kernels import Kernel
    >>> chain = Kernel.exponential(5.0, context_length=128)
    >>> round(chain.k2, 3), round(float(chain.effective_length(rho=0.01)), 2), chain.regime("next").name
    (4.97, 25.96, 'weak')
    """

    name: str
    correlations: Correlations = field(repr=False)

    @classmethod
    def exponential(cls, xi: float, context_length: int) -> "Kernel":
        r"""Return :math:`K_{ab} = e^{-|a-b|/\xi}`, an autoregressive chain.

        Parameters
        ----------
        xi : float
            Correlation length in tokens, >= 0; 0 gives independent tokens, ``math.inf`` identical ones.
        context_length : int
            l.

        Raises
        ------
        ValueError, TypeError
            Naming the argument, its value and what is allowed.

        Examples
        --------
        >>> Kernel.exponential(2.0, 3).matrix().round(3).tolist()
        [[1.0, 0.607, 0.368], [0.607, 1.0, 0.607], [0.368, 0.607, 1.0]]
        """
        value, length = _not_negative("xi", xi, "correlation length"), _length(context_length)
        return cls(f"exponential, xi = {value:g}, {length} tokens", Exponential(value, length))

    @classmethod
    def power_law(cls, gamma: float, context_length: int) -> "Kernel":
        r"""Return :math:`K_{ab} = (1+|a-b|)^{-\gamma}`.

        Parameters
        ----------
        gamma : float
            Exponent >= 0; 0 gives identical tokens, ``math.inf`` independent ones.
        context_length : int
            l.

        Raises
        ------
        ValueError, TypeError
            Naming the argument, its value and what is allowed.

        Examples
        --------
        >>> Kernel.power_law(1.0, 3).query_vector("next").round(3).tolist()
        [0.25, 0.333, 0.5]
        """
        value, length = _not_negative("gamma", gamma, "exponent"), _length(context_length)
        return cls(f"power law, gamma = {value:g}, {length} tokens", PowerLaw(value, length))

    @classmethod
    def independent(cls, context_length: int) -> "Kernel":
        """Return K = I of l tokens; its next token is independent as well.

        Examples
        --------
        >>> Kernel.independent(4).statistics("next")   # doctest: +ELLIPSIS
        Statistics(k0=0.0, k1=0.0, k2=1.0, ...)
        """
        length = _length(context_length)
        return cls(f"independent, {length} tokens", Exponential(0.0, length))

    @classmethod
    def from_matrix(
        cls, matrix: ArrayLike, *, query: ArrayLike | None = None, includes_query: bool = False
    ) -> "Kernel":
        r"""Return the kernel of a correlation matrix.

        Parameters
        ----------
        matrix : array of shape (l, l), or (l + 1, l + 1) with `includes_query`
            Symmetric, positive semidefinite, with ones on the diagonal.
        query : array of shape (l,), optional
            k, the correlations of the next token with the context: what ``query="next"`` will mean.
        includes_query : bool
            The last row and column of the matrix are those of the query.

        Raises
        ------
        ValueError, TypeError
            With the entry, the eigenvalue or the variance that no tokens can have.

        Examples
        --------
        >>> pair = Kernel.from_matrix([[1.0, 0.5], [0.5, 1.0]], query=[0.25, 0.5])
        >>> pair.k0, pair.k1, pair.k2
        (0.3125, 0.4375, 1.25)
        """
        source = Explicit.of(matrix)
        if includes_query:
            if query is not None:
                raise ValueError("give query or includes_query=True, not both")
            if source.length < 2:
                raise ValueError("matrix must have a context besides the query, got shape (1, 1)")
            source = Explicit(source.matrix[:-1, :-1], source.matrix[-1, :-1])
        kernel = cls(f"matrix, {source.length} tokens", source)
        return kernel if query is None else cls(kernel.name, Explicit(source.matrix, kernel.query_vector(query)))

    @classmethod
    def from_sequences(cls, tokens: ArrayLike, *, context_length: int | None = None) -> "Kernel":
        r"""Estimate a stationary kernel from sequences of tokens.

        The sequences are taken to be draws of one stationary law of mean zero; tokens may have any scale. With m
        tokens in each, the estimate is the mean over sequences and over all pairs at a distance,

        .. math:: \hat c_j = \Big\langle \frac{1}{m-j} \sum_a x_a \cdot x_{a+j} \Big\rangle \Big/ \hat c_0' ,

        (:math:`\hat c_0'` being the numerator at j = 0). `statistics` are then estimated with a jackknife that leaves
        out sequences (in up to 100 groups): it removes the bias that noise in :math:`\hat c` brings to their squares,
        for :math:`k_0` and :math:`k_2` entirely but for the scale, for :math:`k_1` to O(1/n^2), and gives standard
        errors. The estimated matrix itself need not be positive semidefinite.

        Parameters
        ----------
        tokens : array of shape (n, m, d)
            n >= 2 independent sequences.
        context_length : int, optional
            l <= m, the default. A next query takes lag l, and so l < m.

        Raises
        ------
        ValueError, TypeError
            Naming the argument, its value and what is allowed.

        Examples
        --------
        >>> import numpy as np
        >>> kernel = Kernel.from_sequences(np.random.default_rng(0).standard_normal((200, 11, 8)), context_length=10)
        >>> found = kernel.statistics("next")
        >>> bool(abs(found.k2 - 1) < 3 * found.k2_error < 0.01)
        True
        """
        length = None if context_length is None else _length(context_length)
        source = estimate(tokens, length)
        return cls(f"estimated from {len(np.asarray(tokens))} sequences, {source.length} tokens", source)

    @property
    def context_length(self) -> int:
        """l, the tokens before the query."""
        return self.correlations.length

    @property
    def follows(self) -> bool:
        """Whether the next token's correlations are known, so that ``query="next"`` means something."""
        return self.correlations.following() is not None

    @property
    def k2(self) -> float:
        r""":math:`\frac1l \mathrm{tr}\,K^2`, from 1 (independent tokens) to l (identical ones)."""
        return self.statistics("independent").k2

    @property
    def k0(self) -> float:
        r""":math:`k^\top k` of the next token."""
        return self.statistics("next").k0

    @property
    def k1(self) -> float:
        r""":math:`k^\top K k` of the next token."""
        return self.statistics("next").k1

    def statistics(self, query: Query = "independent") -> Statistics:
        """Return k0, k1 and k2, with error bars if the kernel is an estimate.

        Parameters
        ----------
        query : {"independent", "next"} or array of shape (l,)

        Raises
        ------
        ValueError, TypeError
            As in `query_vector`.
        """
        (k0, k1, k2), (k0_error, k1_error, k2_error) = _measure(self.correlations, self.query_vector(query), query)
        return Statistics(k0=k0, k1=k1, k2=k2, k0_error=k0_error, k1_error=k1_error, k2_error=k2_error)

    def effective_length(self, rho: ArrayLike) -> Floats:
        r"""Return the length of independent context that is worth as much: :math:`l (1+\rho)/(k_2+\rho)`.

        Parameters
        ----------
        rho : array_like
            Label-noise variance.

        Examples
        --------
        >>> Kernel.exponential(2.0, 128).effective_length([0.0, 0.01]).round(2).tolist()
        [59.55, 59.86]
        """
        noise = check("rho", rho)
        return np.asarray(self.context_length * (1.0 + noise) / (self.k2 + noise))

    def regime(self, query: Query = "independent") -> Regime:
        """Return whether the statistics are of order 1, as the theory takes them to be, with the reason in words.

        Parameters
        ----------
        query : {"independent", "next"} or array of shape (l,)

        Raises
        ------
        ValueError, TypeError
            As in `query_vector`.

        Examples
        --------
        >>> Kernel.exponential(100.0, 128).regime().name
        'strong'
        >>> print(Kernel.power_law(0.6, 100_000).regime("next").reason)
        k2 converges, but k1 grows without bound for gamma <= 2/3
        """
        k, half = self.query_vector(query), max(self.context_length // 2, 1)
        now, before = (_measure(self.correlations.last(m), k[-m:], query)[0] for m in (self.context_length, half))
        return judge(self.correlations, now, before, half, query if isinstance(query, str) else "vector")

    def query_vector(self, query: Query) -> Floats:
        r"""Return k, the correlations of the query with the l tokens.

        Parameters
        ----------
        query : {"independent", "next"} or array of shape (l,)
            A vector must leave the query a variance that is not negative, :math:`1 - k^\top K^{-1} k \ge 0`.

        Raises
        ------
        ValueError, TypeError
            For an unknown name, a kernel whose next token is not known, or a vector that no query can have.

        Examples
        --------
        >>> Kernel.exponential(2.0, 3).query_vector("next").round(3).tolist()
        [0.223, 0.368, 0.607]
        """
        length = self.context_length
        if isinstance(query, str):
            if query not in ("independent", "next"):
                raise ValueError(f'query must be "independent", "next" or a vector, got {query!r}')
            return np.zeros(length) if query == "independent" else _next(self.correlations)
        k = np.asarray(query)
        if k.dtype.kind not in "iuf":
            raise TypeError(f'query must be "independent", "next" or a vector of numbers, got {query!r}')
        if k.shape != (length,) or not np.all(np.isfinite(k)):
            raise ValueError(f"query must be {length} finite numbers, one a token, got {query!r}")
        k = k.astype(np.float64)
        self.correlations.require_possible(k)
        return k

    def matrix(self) -> Floats:
        """Return K, shape (l, l); MemoryError, before it is made, if there is no room for it."""
        return self.correlations.dense()

    def with_length(self, context_length: int) -> "Kernel":
        """Return the same correlations among another number of tokens.

        Raises
        ------
        ValueError, TypeError
            For a kernel given as a matrix, or a length beyond what was estimated.
        """
        length = _length(context_length)
        if isinstance(self.correlations, Explicit):
            raise ValueError(
                "another length needs a stationary kernel, and this one was given as a matrix: give that of the other "
                "length itself"
            )
        return Kernel(self.name.rsplit(",", 1)[0] + f", {length} tokens", self.correlations.last(length))


def _measure(source: Correlations, k: Floats, query: Query) -> tuple[Triple, Triple]:
    """Return (k0, k1, k2), free of bias if the kernel is an estimate, and their standard errors."""
    values = source.statistics(k)
    if not isinstance(source, Estimated):
        return values, (0.0, 0.0, 0.0)
    # a next query is as noisy as the kernel, and left out with it
    follows = isinstance(query, str) and query == "next"
    left_out = [each.statistics(_next(each) if follows else k) for each in source.left_out]
    best, error = jackknife(np.array(values), np.array(left_out), source.shares)
    return tuple(best.tolist()), tuple(error.tolist())


def require_kernel(query: Query) -> None:
    """Raise an error unless the query means something without a kernel: independent tokens have independent queries."""
    if not (isinstance(query, str) and query in ("independent", "next")):
        raise ValueError(f'query needs a kernel unless it is "independent" or "next", got {query!r}')


def _next(source: Correlations) -> Floats:
    """Return the next token's correlations, or raise an error that says how to make them known."""
    k = source.following()
    if k is None:
        remedy = (
            "give from_matrix the query, or includes_query=True"
            if isinstance(source, Explicit)
            else "give from_sequences a context_length below the length of the sequences"
        )
        raise ValueError(f'query="next" is not known to this kernel: {remedy}')
    return k.copy()


def _length(value: int) -> int:
    return one_whole("context_length", value, "tokens before the query")


def _not_negative(name: str, value: float, meaning: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be one number, got {value!r}")
    if not value >= 0:
        raise ValueError(f"{name} must be >= 0, got {value:g} ({meaning}; inf is allowed)")
    return float(value)
