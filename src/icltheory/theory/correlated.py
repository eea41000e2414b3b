"""Linear attention on prompts whose tokens are correlated with each other, and perhaps with the query."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import Booleans, Floats, check
from icltheory.prompts.kernels import Query
from icltheory.theory.kernel_statistics import Kernels, statistics_of
from icltheory.theory.linear_attention import LinearAttentionRisk, linear_attention
from icltheory.theory.rational import captured, check_target
from icltheory.theory.task_spectrum import Traces, resolvent, traces

_ROUNDING = 1e-9  # relative, by which k2 may fall below 1, and k1 below k0^2
_LARGEST = 1e20


def correlated_context(
    *,
    tau: ArrayLike,
    alpha: ArrayLike,
    kappa: ArrayLike,
    rho: ArrayLike,
    ridge: ArrayLike = 0.0,
    k0: ArrayLike,
    k1: ArrayLike,
    k2: ArrayLike,
    test_alpha: ArrayLike | None = None,
    test_k0: ArrayLike | None = None,
    test_k1: ArrayLike | None = None,
    test_k2: ArrayLike | None = None,
) -> LinearAttentionRisk:
    r"""Predict ICL, IDG and training error of linear attention on correlated prompts, as d -> infinity.

    Tokens have :math:`E\,x_a x_b^\top = K_{ab} I/d` with :math:`K_{aa} = 1`, and the query
    :math:`E\,x_{l+1} x_a^\top = k_a I/d`; label noise is independent. The prompts enter by three numbers of order 1,

    .. math:: k_2 = \frac1l \mathrm{tr}\,K^2 , \qquad k_0 = k^\top k , \qquad k_1 = k^\top K k ,

    through :math:`x = (k_2+\rho)/\alpha`, :math:`b = k_0/\alpha`, :math:`s = (k_1+\rho k_0)/\alpha^2`. As the query
    overlaps the context, :math:`x_{l+1} \cdot x_a \approx k_a`, the model gains a term
    :math:`\frac1\alpha \sum_a k_a y_a\, \mathrm{trd}\,\Gamma`, of variance s and covariance b with the target:

    .. math::
        \langle \Gamma, \Gamma \rangle_{A,R} &= \mathrm{trd}\,\Gamma R \Gamma + 2 b\, \mathrm{trd}(A\Gamma)\,
        \mathrm{trd}\,\Gamma + s\, (\mathrm{trd}\,\Gamma)^2 , \qquad
        \langle \mathrm{target}, \Gamma \rangle_A = \mathrm{trd}\,\Gamma (A + b I) .

    With :math:`R = A_k + x`, xi as in `linear_attention` at this x, :math:`\nu = x + \xi`, and
    :math:`G = (A_k + \nu)^{-1}`, :math:`t_{ij} = \mathrm{trd}\,A_k^i G^j`, :math:`\delta = s - b^2 \ge 0`, the mean of
    the fit and what its error is made of are

    .. math::
        \bar\Gamma &= 1 - b t - h G , \qquad D = 1 + (2b + b^2)\, t_{11} + \delta\, t_{01} , \qquad
        h = (\nu + \delta)/D , \qquad t = \mathrm{trd}\,\bar\Gamma = (1 + b)\, t_{11}/D , \\
        v &= \mathrm{trd}\,\bar\Gamma^2 - t^2 = h^2 (t_{02} - t_{01}^2) , \\
        e &= [\rho + h^2 t_{12} + x v + (x + \delta)\, t^2] / [1 - \mathrm{trd}(R^2 G^2)/\tau] .

    Then, with a subscript t for what belongs to the test prompts, and :math:`\beta = (b_t - b)\, t`,

    .. math::
        e_{IDG} &= \rho + h^2 (t_{12} - t_{11}^2) + (h\, t_{11} - \beta)^2 + x_t v + (x_t + \delta_t)\, t^2
                   + \tfrac{e}{\tau}\, \mathrm{trd}\, R (A_k + x_t) G^2 \\
        e_{ICL} &= \rho + (h\, t_{01} - \beta)^2 + (1 + x_t) v + (x_t + \delta_t)\, t^2
                   + \tfrac{e}{\tau}\, (1 + x_t)\, \mathrm{trd}\, R G^2 \\
        e_{train} &= e\, (\lambda/\xi)^2 .

    With an independent query, :math:`k_0 = k_1 = 0`, it is `linear_attention` at the effective context length
    :math:`l (1+\rho)/(k_2+\rho)`.

    Parameters
    ----------
    tau, alpha, kappa, rho, ridge : array_like
        As in `linear_attention`.
    k0, k1, k2 : array_like
        Statistics of the training prompts, see `icltheory.prompts.Kernel`. The theory takes them to be of order 1:
        `Kernel.regime` says whether they are.
    test_alpha, test_k0, test_k1, test_k2 : array_like, optional
        Context length/d and statistics of the test prompts; each is by default that of training. ``test_alpha`` may
        be ``math.inf``.

    Returns
    -------
    LinearAttentionRisk
        Arrays of the broadcast shape: `icl` and `idg` on test prompts, `train` on those of training.
        At ``tau == 1`` and ``ridge == 0`` both errors are ``inf``.

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed; also for statistics that no prompts have:
        k1 < k0^2, or k1 > 0 = k0.

    References
    ----------
    Letey, Lu, Pehlevan, Zavatone-Veth, "Sequential Correlations Change In-Context Learning: Effective Context Length
    and Architectural Mismatch", HiLD at ICML 2026. The closed form in t and h is derived here.

    Examples
    --------
    >>> import icltheory as icl
    >>> chain = icl.Kernel.exponential(2.0, context_length=128).statistics("next")
    >>> law = icl.theory.correlated_context(
    ...     tau=4.0, alpha=4.0, kappa=10.0, rho=0.01, k0=[0.0, chain.k0], k1=[0.0, chain.k1], k2=chain.k2
    ... )
    >>> law.icl.round(4)   # a query that is independent of the context, and one that continues it
    array([0.4921, 0.4402])
    """
    statistics = _statistics(k0, k1, k2)
    rho, ridge = check("rho", rho), check("ridge", ridge)
    tau, alpha, kappa = check("tau", tau), check("alpha", alpha), check("kappa", kappa)
    test_statistics = _statistics(
        k0 if test_k0 is None else test_k0,
        k1 if test_k1 is None else test_k1,
        k2 if test_k2 is None else test_k2,
        prefix="test_",
    )
    lengths = alpha if test_alpha is None else check("test_alpha", test_alpha)
    tau, alpha, kappa, rho, ridge, lengths, *both = np.broadcast_arrays(
        tau, alpha, kappa, rho, ridge, lengths, *statistics, *test_statistics
    )
    fit = _fit(tau, kappa, rho, ridge, _Query.of(alpha, rho, *both[:3]))
    return _risk(fit, rho, _Query.of(lengths, rho, *both[3:]))


def query_gain(
    *,
    tau: ArrayLike,
    alpha: ArrayLike,
    kappa: ArrayLike,
    rho: ArrayLike,
    ridge: ArrayLike = 0.0,
    kernel: Kernels | None = None,
    query: Query = "next",
    k0: ArrayLike | None = None,
    k1: ArrayLike | None = None,
    k2: ArrayLike | None = None,
    target: str = "icl",
) -> Floats:
    r"""Return what a query that continues the context is worth: the error with an independent one minus that with it.

    .. math:: \Delta = e(k_0 = k_1 = 0) - e(k_0, k_1) ,

    training and test alike; see `correlated_context`. For the next token of an exponential chain it is never negative
    (no exception among 10^5 random points, whatever xi and l). In general it may be, as the labels of resembling tokens
    enter as a plain sum, whose variance s includes their noise and all that they share. Without ridge above the
    threshold, :math:`\lambda = 0`, :math:`\tau > 1`, and to first order in small overlaps,

    .. math:: \Delta_{IDG} = \frac{t_{11}^2\, (2 b x - s)}{1 - 1/\tau} , \qquad
              2 b x - s = [(2 k_2 + \rho)\, k_0 - k_1]/\alpha^2 .

    There :math:`k_1 \le (2 k_2 + \rho)\, k_0` is enough for a gain whatever the size of the overlaps. It fails for a
    query along the strongest correlations of the context, such as the next token after a long context whose
    correlations decay like a power of less than about .8.

    Parameters
    ----------
    tau, alpha, kappa, rho, ridge : array_like
        As in `correlated_context`.
    kernel, query : optional
        As in `linear_attention`; the query is by default the next token.
    k0, k1, k2 : array_like
        Statistics in place of a kernel.
    target : {"icl", "idg"}
        Error on fresh or on the pretraining tasks.

    Returns
    -------
    array
        Of the broadcast shape; at ``tau == 1`` and ``ridge == 0``, where both errors diverge, infinite with the sign
        of its residue.

    Raises
    ------
    ValueError, TypeError
        As in `correlated_context`.

    Warns
    -----
    CorrelationWarning
        If a kernel's correlations are not weak.

    Examples
    --------
    >>> import icltheory as icl
    >>> at = dict(tau=4.0, alpha=4.0, kappa=10.0, rho=0.01)
    >>> icl.theory.query_gain(**at, kernel=[icl.Kernel.exponential(xi, 128) for xi in (0.0, 2.0, 5.0)]).round(4)
    array([0.    , 0.0519, 0.1874])
    >>> s = icl.Kernel.power_law(0.7, 1280).statistics("next")
    >>> round(float(icl.theory.query_gain(**at, k0=s.k0, k1=s.k1, k2=s.k2)), 4)
    -0.0124
    """
    which = check_target(target)
    if (kernel is None) == (k0 is None or k1 is None or k2 is None):
        raise TypeError("give a kernel, or k0, k1 and k2")
    statistics = statistics_of(kernel, query) if kernel is not None else _statistics(k0, k1, k2)  # type: ignore[arg-type]
    tau, alpha, kappa, rho, ridge, *k = np.broadcast_arrays(
        check("tau", tau),
        check("alpha", alpha),
        check("kappa", kappa),
        check("rho", rho),
        check("ridge", ridge),
        *statistics,
    )
    with_it = _fit(tau, kappa, rho, ridge, _Query.of(alpha, rho, *k))
    without = _fit(tau, kappa, rho, ridge, _Query.of(alpha, rho, np.zeros_like(k[0]), np.zeros_like(k[1]), k[2]))
    less_bias = without.bias - with_it.bias
    in_distribution = np.divide(
        less_bias,
        with_it.denominator,
        out=np.where(less_bias == 0, 0.0, np.copysign(np.inf, less_bias)),
        where=with_it.denominator > 0,
    )
    if which == "idg":
        return np.asarray(in_distribution)
    on_top = (without.h**2 - with_it.h**2) * with_it.t.excess
    return np.asarray(in_distribution + on_top + with_it.amplified(in_distribution))


@dataclass(frozen=True)
class _Query:
    r"""Effective context length/d, x, b and :math:`\delta = s - b^2` of one kind of prompts."""

    alpha: Floats
    x: Floats
    b: Floats
    delta: Floats

    @classmethod
    def of(cls, alpha: Floats, rho: Floats, k0: Floats, k1: Floats, k2: Floats) -> "_Query":
        return cls(
            alpha=alpha * ((1.0 + rho) / (k2 + rho)),
            x=(k2 + rho) / alpha,
            b=k0 / alpha,
            delta=(np.maximum(k1 - k0**2, 0.0) + rho * k0) / alpha / alpha,
        )


@dataclass(frozen=True)
class _Fit:
    """The mean of the fitted Gamma, 1 - b t - h G, and the size of its fluctuations."""

    query: _Query
    u: Floats  # 1/tau
    xi: Floats
    converged: Booleans
    shrink: Floats  # lambda/xi = 1 - trd(R G)/tau
    denominator: Floats  # 1 - trd(R^2 G^2)/tau
    t: Traces
    t11: Floats
    h: Floats
    mean: Floats  # trd Gamma
    variance: Floats  # trd Gamma^2 - (trd Gamma)^2
    apart: Floats  # t01 - t11, which vanishes like 1/kappa
    within: Floats  # t12 - t11^2, which does too
    bias: Floats  # error of the mean fit on the prompts of training

    @property
    def error(self) -> Floats:
        """Error in distribution: the size of the noise that the fit has to average."""
        return np.divide(self.bias, self.denominator, out=np.full_like(self.bias, np.inf), where=self.denominator > 0)

    def amplified(self, error: Floats) -> Floats:
        """Return by how much the fluctuations cost more on fresh tasks than on those of pretraining."""
        spread = self.t.noise_excess + self.query.x * self.t.excess
        return np.multiply(self.u * error, spread, out=np.zeros_like(spread), where=spread != 0)


def _fit(tau: Floats, kappa: Floats, rho: Floats, ridge: Floats, query: _Query) -> _Fit:
    r"""Solve for t and :math:`\mathrm{trd}\,A_k \Gamma`, in closed form, by identities of the Marchenko-Pastur law.

    They are, with :math:`\nu t_{11} = (1 - t_{11})(1 - t_{11}/\kappa)`: :math:`t_{01} - t_{11} = t_{01} t_{11}/\kappa`,
    :math:`t_{01} t_{21} - t_{11}^2 = t_{01} t_{11}/\kappa`, :math:`t_{12} - t_{11}^2 = t_{12} t_{11}^2/\kappa` and
    :math:`t_{02} - t_{01}^2 = t_{12} t_{01}^2/\kappa`. Nothing below is a difference of nearly equal terms.
    """
    x, b, delta, u = query.x, query.b, query.delta, 1.0 / tau
    # the equation for xi knows the prompts by x alone: that of independent tokens at the effective context length
    law = linear_attention(tau=tau, alpha=query.alpha, kappa=kappa, rho=rho, ridge=ridge)
    xi = law.effective_ridge
    nu = x + xi
    t, t11, t01 = traces(nu, kappa), captured(nu, kappa), resolvent(nu, kappa)[0]
    d = 1.0 + b * (2.0 + b) * t11 + delta * t01
    h, mean = (nu + delta) / d, (1.0 + b) * t11 / d
    variance = h**2 * (t01**2 * t.t12 / kappa)
    shrink = np.where(xi > 0, ridge / np.where(xi > 0, xi, 1.0), np.maximum(1.0 - u, 0.0))
    return _Fit(
        query=query,
        u=u,
        xi=xi,
        converged=law.converged,
        shrink=shrink,
        denominator=shrink + u * xi * (t.t12 + x * t.t02),
        t=t,
        t11=t11,
        h=h,
        mean=mean,
        variance=variance,
        apart=t01 * t11 / kappa,
        within=t.t12 * t11**2 / kappa,
        bias=rho + h**2 * t.t12 + x * variance + (x + delta) * mean**2,
    )


def _risk(fit: _Fit, rho: Floats, test: _Query) -> LinearAttentionRisk:
    """Assemble the errors on test prompts; every sum but the gap's has positive terms only."""
    t, x, h, error = fit.t, fit.query.x, fit.h, fit.error
    beta = (test.b - fit.query.b) * fit.mean
    fluctuation = fit.u * error * (t.t22 + (x + test.x) * t.t12 + x * test.x * t.t02)
    idg = (
        rho
        + h**2 * fit.within
        + (h * fit.t11 - beta) ** 2
        + test.x * fit.variance
        + (test.x + test.delta) * fit.mean**2
        + fluctuation
    )
    # ICL minus IDG, term by term, so that its 1/kappa decay keeps its digits
    gap = h**2 * t.excess - 2.0 * beta * h * fit.apart + fit.amplified(error)
    train = np.multiply(error, fit.shrink**2, out=np.zeros_like(error), where=fit.shrink > 0)
    return LinearAttentionRisk(
        icl=np.asarray(idg + gap),
        idg=np.asarray(idg),
        train=train,
        gap=np.asarray(gap),
        effective_ridge=np.asarray(fit.xi),
        converged=np.asarray(fit.converged),
    )


def _statistics(k0: ArrayLike, k1: ArrayLike, k2: ArrayLike, prefix: str = "") -> tuple[Floats, Floats, Floats]:
    """Return the three statistics as float arrays of one shape, if there are prompts that have them."""
    given = {"k0": (k0, 0.0, "k^T k"), "k1": (k1, 0.0, "k^T K k"), "k2": (k2, 1.0, "tr K^2/context length")}
    checked = []
    for name, (value, least, meaning) in given.items():
        array = np.asarray(value)
        if array.dtype.kind not in "iuf":
            raise TypeError(f"{prefix}{name} must be a number or an array of numbers, got {value!r}")
        array = array.astype(np.float64)
        bad = ~((array >= least * (1.0 - _ROUNDING)) & (array <= _LARGEST))
        if bad.any():
            raise ValueError(
                f"{prefix}{name} must be >= {least:g} and <= {_LARGEST:g}, got {array[bad][0]:g} ({name} = {meaning})"
            )
        checked.append(array)
    a, b, c = np.broadcast_arrays(*checked)
    bad = (b < a**2 * (1.0 - _ROUNDING)) | ((a == 0) & (b > 0))
    if bad.any():
        raise ValueError(
            f"{prefix}k1 must be >= k0^2, and 0 where k0 is 0, got k1 = {b[bad][0]:g} with k0 = {a[bad][0]:g} "
            "(k1 = k^T K k, k0 = k^T k, for a query that can be the next token)"
        )
    return a, b, c
