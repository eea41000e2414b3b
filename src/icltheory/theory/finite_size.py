"""A theory of linear attention at finite d: the sizes that people simulate, without drawing a random number."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import Floats, check, one_whole, ratios
from icltheory.prompts.kernels import Kernel, Query
from icltheory.prompts.tasks import TaskLaw, check_law, moments_of_tasks
from icltheory.theory.feature_scale import Prompt, ScaleLaw, scale_law, third_and_fourth
from icltheory.theory.kernel_statistics import Kernels, all_kernels, context_lengths, of_both
from icltheory.theory.linear_attention import LinearAttentionRisk
from icltheory.theory.mean_spectrum import TaskSpectrum, mean_spectrum, spectrum_of
from icltheory.theory.prompt_resolvent import PromptMoments, fresh, seen, systematic_error, traces

_WIDTH = 1e-9  # relative half-width of the interval on which the effective ridge is certified


def finite_size(
    *,
    d: int,
    tau: ArrayLike | None = None,
    alpha: ArrayLike | None = None,
    kappa: ArrayLike | None = None,
    rho: ArrayLike,
    ridge: ArrayLike = 0.0,
    context_length: ArrayLike | None = None,
    n_sequences: ArrayLike | None = None,
    n_tasks: ArrayLike | None = None,
    tasks: TaskLaw | ArrayLike = "sphere",
    test_context_length: int | None = None,
    kernel: Kernels | None = None,
    query: Query = "independent",
    test_kernel: Kernels | None = None,
) -> LinearAttentionRisk:
    r"""Predict ICL, IDG and training error at finite d, to about one per cent where d is a few dozen.

    Three things set d = 40 apart from d -> infinity: there are d(d+1) parameters; prompts of l examples have moments
    with terms in 1/l; and the size of the features varies from sequence to sequence. All enter a deterministic
    equivalent of ridge regression whose features are Gaussian up to a random scale s, of mean 1. With the exact
    moments :math:`R = E\,r r^\top,\ A = E\,w r^\top` of the pretraining prompts, :math:`G = (R+\xi)^{-1}`,
    :math:`T = \frac dn \mathrm{tr}\,RG`, and :math:`\varphi, \xi \ge 0` that solve

    .. math:: E\,\frac{s}{\varphi + s} = T , \qquad \xi\, T \varphi = \lambda ,

    the error beyond that of the best linear predictor :math:`\Gamma_0 = A R^{-1}` is

    .. math::
        v = \frac{b + D_2 w_2}{1 - D_2 w_3}, \qquad
        w_2 = \frac1{T^2} E\frac{s\,\epsilon^2}{(\varphi+s)^2}, \quad
        w_3 = \frac1{T^2} E\frac{s^2}{(\varphi+s)^2}, \quad D_2 = \frac dn \mathrm{tr}\,(RG)^2 ,

    with b that of :math:`\bar\Gamma = AG` and :math:`\epsilon^2` the squared residual of :math:`\Gamma_0`, which goes
    with s. On test prompts with moments (A_t, R_t)

    .. math:: e = \rho + E\frac{|w|^2}d - \frac2d \mathrm{tr}\,\bar\Gamma A_t^\top
              + \frac1d \mathrm{tr}\,\bar\Gamma R_t \bar\Gamma^\top + (w_2 + w_3 v) \frac dn \mathrm{tr}\,R G R_t G ,

    and the training error is :math:`\varphi^2 E[(\epsilon^2 + s v)/(\varphi+s)^2]`. The law of s and the spectrum of
    the tasks, averaged over their draws, are taken to relative order 1/d; with correlated tokens s fluctuates more,
    by a variance of up to about :math:`2\,\mathrm{tr}\,K^4/(\mathrm{tr}\,K^2)^2`. With s = 1 and d -> infinity this is
    `linear_attention`. Left out are smaller effects of that order, such as correlations between sequences of the same
    task; measured, what remains is below 1/d, and with correlated tokens mostly below 1 % (docs/finite_size.md).

    The theory is of balanced tasks (see `icltheory.simulate.linear_attention`); choosing tasks at random raises the
    IDG error by a term of order k/n. About 5 ms a point, 12 ms with a kernel.

    Parameters
    ----------
    d : int
        Token dimension.
    tau, alpha, kappa : array_like
        n/d^2, l/d and k/d, rounded to the nearest sizes. ``kappa`` may be ``math.inf``.
    rho, ridge : array_like
        Label-noise variance, and the penalty lambda (0 is the ridgeless limit).
    context_length, n_sequences, n_tasks : array_like
        Sizes in place of ratios.
    tasks : {"sphere", "gaussian"} or array of shape (k, d)
        Law of the tasks, over whose draws the result is averaged; or the pretraining tasks themselves, in which case
        ``kappa`` and ``n_tasks`` are left out, and fresh tasks are on the sphere.
    test_context_length : int, optional
        Examples in a prompt of both tests; default that of training.
    kernel : Kernel or list of Kernel, optional
        Correlations of the tokens of a prompt; the default is independent tokens. A list of m kernels is an axis of
        length m, which broadcasts with the other arguments. Its context length is the prompts', which then need not
        be given. They enter by :math:`k_2 = \frac1l \mathrm{tr}\,K^2` in the moments, and by tr K^3 and tr K^4 in the
        law of s, at a cost of O(l^3): half a second at l = 2000.
    query : "independent"
        Only queries that are independent of the context.
    test_kernel : Kernel or list of Kernel, optional
        Correlations, and context length, in both tests; default those of training.

    Returns
    -------
    LinearAttentionRisk
        Arrays of the broadcast shape. At n = d(d+1) and ``ridge == 0`` the errors are ``inf``.

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed; also for a query that is correlated with the context.

    Warns
    -----
    CorrelationWarning
        If a kernel's correlations are not weak: s then fluctuates by its own size, and the theory is a rough guide.

    References
    ----------
    This project's own. The starting point is Lu et al., PNAS 122(28), 2025 (arXiv:2405.11751), and for correlated
    tokens Letey, Lu, Pehlevan, Zavatone-Veth, HiLD at ICML 2026.

    Examples
    --------
    >>> import icltheory as icl
    >>> at = dict(tau=1.5, alpha=1.0, kappa=1.0, rho=0.01, ridge=1e-6)
    >>> float(icl.theory.finite_size(d=40, **at).icl.round(2))   # simulated: 1.94 +- .03
    1.9
    >>> float(icl.theory.linear_attention(**at).icl.round(2))
    1.64
    >>> chain = icl.Kernel.exponential(5.0, context_length=128)   # simulated: .82; the limit d -> infinity: .77
    >>> float(icl.theory.finite_size(d=32, tau=4.0, kappa=10.0, rho=0.01, kernel=chain, tasks="gaussian").icl.round(2))
    0.81
    """
    law, given = _tasks(tasks, d)
    if given is not None:
        if kappa is not None or n_tasks is not None:
            raise ValueError("give tasks or their number (kappa, n_tasks), not both: given tasks are counted")
        n_tasks = len(given)
    _require_independent(query)
    if kernel is not None and alpha is None and context_length is None:
        context_length = context_lengths(kernel)
    realised = ratios(
        d=d,
        tau=tau,
        alpha=alpha,
        kappa=kappa,
        context_length=context_length,
        n_sequences=n_sequences,
        n_tasks=n_tasks,
    )
    tested = _tested(kernel, test_kernel, test_context_length)
    found = of_both(realised[1], d, kernel, query, tested, None)
    length = found["test_alpha"] * d
    if test_context_length is not None:
        length = np.asarray(float(one_whole("test_context_length", test_context_length, "examples")))
    arguments = np.broadcast_arrays(
        *realised,
        check("rho", rho),
        check("ridge", ridge),
        found["k2"],
        *_third_and_fourth(kernel, found["k2"]),
        length,
        found["test_k2"],
    )
    if np.any(np.isinf(arguments[0])):
        raise ValueError("tau must be finite at finite d, got inf (tau = n/d^2)")
    dimension = int(d)
    results = np.empty((5, *arguments[0].shape))
    for index in np.ndindex(arguments[0].shape):
        t, a, k, noise, penalty, k2, k3, k4, test_length, test_k2 = (float(values[index]) for values in arguments)
        size = np.round(k * dimension)
        prompt = Prompt(
            d=dimension,
            context_length=np.round(a * dimension),
            n_tasks=size,
            rho=noise,
            spectrum=mean_spectrum(law, dimension, size, noise)
            if given is None
            else spectrum_of(moments_of_tasks(given), noise),
            k2=k2,
            k3=k3,
            k4=k4,
        )
        n = np.round(t * dimension**2)
        results[(slice(None), *index)] = _predict(prompt, n, law, penalty, np.round(test_length), test_k2)
    return _risk(results, arguments[2])


def _risk(results: Floats, kappa: Floats) -> LinearAttentionRisk:
    """Name the results."""
    icl, idg, train, xi, converged = (np.asarray(values) for values in results)
    finite = np.isfinite(icl)
    unseen = np.isfinite(kappa)  # fresh tasks throughout: no gap at any error
    gap = np.subtract(icl, idg, out=np.where(unseen, np.inf, 0.0), where=finite)
    return LinearAttentionRisk(
        icl=icl, idg=idg, train=train, gap=gap, effective_ridge=xi, converged=np.asarray(converged == 1.0)
    )


def _tasks(tasks: TaskLaw | ArrayLike, d: int) -> tuple[TaskLaw, Floats | None]:
    """Return the law of fresh tasks, and the pretraining tasks if they are given."""
    if isinstance(tasks, str):
        return check_law(tasks), None
    given = np.asarray(tasks)
    if given.dtype.kind not in "iuf" or given.ndim != 2 or given.shape[1] != d:
        what = f"{given.dtype} of shape {given.shape}"
        raise ValueError(f"tasks must be a law or an array of numbers of shape (k, {d}), got {what}")
    if not np.all(np.isfinite(given)):
        raise ValueError(f"tasks must be finite, got {given[~np.isfinite(given)][0]}")
    return "sphere", given.astype(np.float64)


def _require_independent(query: Query) -> None:
    if not (isinstance(query, str) and query == "independent"):
        raise ValueError(
            f'query must be "independent" at finite d, got {query!r}; theory.linear_attention(kernel=..., query=...) '
            "has the limit d -> infinity for any other, simulate.linear_attention is exact"
        )


def _tested(kernel: Kernels | None, test_kernel: Kernels | None, length: int | None) -> Kernels | None:
    """Return the kernels of the tests, if they are not those of training."""
    if length is None or (kernel is None and test_kernel is None):
        return test_kernel
    length = one_whole("test_context_length", length, "examples")
    if test_kernel is not None:
        lengths = context_lengths(test_kernel)
        if np.any(lengths != length):
            raise ValueError(f"test_kernel must have the context length of the tests, {length}, got {lengths.tolist()}")
        return test_kernel
    if isinstance(kernel, Kernel):
        return kernel if kernel.context_length == length else kernel.with_length(length)
    return [each if each.context_length == length else each.with_length(length) for each in kernel or ()]


def _third_and_fourth(kernel: Kernels | None, k2: Floats) -> tuple[Floats, Floats]:
    """Return k3 and k4 of the kernels, of the shape of their k2."""
    if kernel is None:
        return np.ones(()), np.ones(())
    many = zip(all_kernels("kernel", kernel), np.atleast_1d(k2), strict=True)
    k3, k4 = np.array([third_and_fourth(each, float(value)) for each, value in many]).T.reshape(2, *k2.shape)
    return k3, k4


@dataclass(frozen=True, kw_only=True)
class _Fit:
    """The fit at its effective ridge."""

    xi: float
    share: float  # T
    phi: float
    law: ScaleLaw
    certified: bool


def _predict(
    prompt: Prompt, n: float, law: TaskLaw, ridge: float, test_length: float, test_k2: float
) -> tuple[float, float, float, float, bool]:
    """Return ICL, IDG and training error, the effective ridge, and whether it is certified."""
    d, rho, tasks = prompt.d, prompt.rho, prompt.spectrum
    train = seen(tasks, d, prompt.context_length, rho, prompt.k2)
    floor = rho + systematic_error(tasks, train, train, 0.0, d)
    fit = _fit(prompt, n, train, ridge, floor)
    s, p = fit.law.scale, fit.law.probability / (fit.phi + fit.law.scale) ** 2
    w2, w3 = float(p @ (s * fit.law.residual)) / fit.share**2, float(p @ s**2) / fit.share**2
    captured = d / n * _sandwich(tasks, train, train, fit.xi)
    room = 1.0 - captured * w3
    if room <= 1e-12:
        return math.inf, math.inf, 0.0, fit.xi, fit.certified
    bias = rho + systematic_error(tasks, train, train, fit.xi, d) - floor
    excess = (bias + captured * w2) / room
    signal_squared = 1.0 + (2.0 * d / d**2 if law == "gaussian" else 0.0)
    tests = (
        fresh(signal_squared, tasks, d, test_length, rho, test_k2),
        seen(tasks, d, test_length, rho, test_k2),
    )
    icl, idg = (
        rho
        + systematic_error(tasks, train, test, fit.xi, d)
        + (w2 + w3 * excess) * d / n * _sandwich(tasks, train, test, fit.xi)
        for test in tests
    )
    left = fit.phi**2 * float(p @ (fit.law.residual + s * excess))
    return icl, idg, left, fit.xi, fit.certified


def _fit(prompt: Prompt, n: float, train: PromptMoments, ridge: float, floor: float) -> _Fit:
    r"""Solve for the effective ridge.

    As :math:`T\varphi = E\,s\varphi/(\varphi+s) \le E\,s = 1`, it is at least the ridge; and at least the value at
    which T = 1, below the threshold.
    """
    d, tasks = prompt.d, prompt.spectrum

    def share(xi: float) -> float:
        return d / n * traces(tasks, train, train, xi)[0]

    def fit(xi: float, certified: bool = False) -> _Fit:
        captured = min(share(xi), 1.0)
        law = scale_law(prompt, xi, captured * n / d**2, floor)
        return _Fit(xi=xi, share=captured, phi=_phi(law, captured), law=law, certified=certified)

    def equation(xi: float) -> float:
        state = fit(xi)
        return xi * state.share * state.phi - ridge

    lowest, sure = (0.0, True) if n >= d * (d + 1) else _root(lambda xi: 1.0 - share(xi), 0.0, 1.0)
    if ridge == 0:
        return fit(lowest, sure)
    low = max(ridge, lowest)
    return fit(*_root(equation, low, 2.0 * low))


def _root(increasing: Callable[[float], float], low: float, high: float) -> tuple[float, bool]:
    """Return the root above `low`, by Brent's method, and whether the sign was seen to change around it."""
    from scipy.optimize import brentq

    while increasing(high) < 0:
        high *= 4.0
    if increasing(low) >= 0:  # the root is at the bound, to rounding
        return low, True
    root = float(brentq(increasing, low, high, xtol=1e-300, rtol=1e-13))
    return root, increasing(root * (1 - _WIDTH)) <= 0 <= increasing(root * (1 + _WIDTH))


def _phi(law: ScaleLaw, share: float) -> float:
    """Solve E[s/(phi + s)] = share; the left side is convex and decreasing: Newton's steps from 0 never overshoot."""
    phi = 0.0
    for _ in range(200):
        part = law.scale / (phi + law.scale)
        step = (law.probability @ part - share) / (law.probability @ (part / (phi + law.scale)))
        if step <= 1e-14 * phi:
            return phi
        phi += float(step)
    raise ArithmeticError(f"the equation for phi did not converge at a captured share of {share:g}")


def _sandwich(tasks: TaskSpectrum, train: PromptMoments, test: PromptMoments, xi: float) -> float:
    """Return tr R G R_test G = tr R_test G - xi tr R_test G^2."""
    first, second = traces(tasks, train, test, xi)
    return first - xi * second
