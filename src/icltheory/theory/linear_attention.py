"""Exact asymptotics of in-context linear regression by linear attention, as d -> infinity."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import Booleans, Floats, Risk, check, ratios
from icltheory.prompts.kernels import Query, require_kernel
from icltheory.theory.kernel_statistics import Kernels, context_lengths, of_both
from icltheory.theory.task_spectrum import resolvent, traces

_MAX_STEPS = 200
_WIDTH = 1e-11  # relative half-width of the interval on which the effective ridge is certified


@dataclass(frozen=True, kw_only=True)
class LinearAttentionRisk(Risk[Floats]):
    """Predicted risk of linear attention; every field has the broadcast shape of the arguments.

    Attributes
    ----------
    effective_ridge : array
        xi, the ridge that the infinite-data problem would need for the same predictor.
    converged : array of bool
        True where a sign change of the fixed-point equation was found within 1e-11 (relative) around xi.
    """

    effective_ridge: Floats
    converged: Booleans


def linear_attention(
    *,
    tau: ArrayLike | None = None,
    alpha: ArrayLike | None = None,
    kappa: ArrayLike | None = None,
    rho: ArrayLike,
    ridge: ArrayLike = 0.0,
    d: int | None = None,
    context_length: ArrayLike | None = None,
    n_sequences: ArrayLike | None = None,
    n_tasks: ArrayLike | None = None,
    kernel: Kernels | None = None,
    query: Query = "independent",
    test_kernel: Kernels | None = None,
    test_query: Query | None = None,
) -> LinearAttentionRisk:
    r"""Predict ICL, IDG and training error of linear attention fitted by ridge regression, as d -> infinity.

    The model is :math:`\hat y = \langle \Gamma, H_Z \rangle`, trained on n sequences of k tasks by minimising
    :math:`\sum_\mu (y^\mu - \langle\Gamma, H^\mu\rangle)^2 + \frac{n}{d}\lambda \|\Gamma\|_F^2`.
    With :math:`A_k = \frac1k \sum_j w_j w_j^\top`, :math:`x = (1+\rho)/\alpha`, :math:`R = A_k + x`, the effective
    ridge :math:`\xi \ge 0` solves

    .. math:: \xi \left(1 - \frac1\tau \frac1d \mathrm{tr}\, R (R+\xi)^{-1}\right) = \lambda ,

    and with :math:`G = (R+\xi)^{-1}`, :math:`\bar\Gamma = A_k G`, normalised traces :math:`\mathrm{trd}`,

    .. math::
        e_{IDG} &= \frac{\rho + \mathrm{trd}\,A_k - 2\,\mathrm{trd}\,\bar\Gamma A_k
                   + \mathrm{trd}\,\bar\Gamma R \bar\Gamma}{1 - \mathrm{trd}(R^2G^2)/\tau} \\
        e_{ICL} &= \rho + 1 - 2\,\mathrm{trd}\,\bar\Gamma + (1+x)\,\mathrm{trd}\,\bar\Gamma^2
                   + \frac{e_{IDG}}{\tau} (1+x)\,\mathrm{trd}\,R G^2 \\
        e_{train} &= e_{IDG}\, (\lambda/\xi)^2 .

    The fixed point is found by Newton's method from an upper bound in closed form. The equation is convex and
    increasing there, so the steps descend onto the root without overshooting; a sign change is then verified.

    Parameters
    ----------
    tau, alpha, kappa : array_like
        Sequences/d^2, context length/d and tasks/d. ``tau`` and ``kappa`` may be ``math.inf``.
    rho : array_like
        Label-noise variance (the signal variance is 1).
    ridge : array_like, default 0
        Penalty lambda; 0 is the ridgeless limit (the minimum-norm fit below the threshold).
    d, context_length, n_sequences, n_tasks : optional
        Sizes in place of ratios. With ``d`` given, ratios are first rounded to sizes exactly as the simulation
        does, and the theory is evaluated at the realised ratios.
    kernel : Kernel or list of Kernel, optional
        Correlations of the tokens of a prompt, which enter by k0, k1 and k2, see `correlated_context`; the default is
        independent tokens. A list of m kernels is an axis of length m, which broadcasts with the other arguments. With
        ``d``, its context length is the prompts', which then need not be given.
    query : {"independent", "next"} or array of shape (l,), default "independent"
        Correlations of the query with the context.
    test_kernel, test_query : optional
        The same in the tests, of which the context length may be another: alpha then changes in proportion. The default
        is that of training.

    Returns
    -------
    LinearAttentionRisk
        Arrays of the broadcast shape. At ``tau == 1`` and ``ridge == 0`` both errors are ``inf``.

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed.

    Warns
    -----
    CorrelationWarning
        If a kernel's correlations are not weak: the theory then does not apply.

    References
    ----------
    Lu, Letey, Zavatone-Veth, Maiti, Pehlevan, "Asymptotic theory of in-context learning by linear attention",
    PNAS 122(28), 2025 (arXiv:2405.11751), its results for the ICL and IDG errors; here for any ridge. Letey, Lu,
    Pehlevan, Zavatone-Veth, HiLD at ICML 2026, for correlated tokens; there for the ridgeless fit.

    Examples
    --------
    >>> import icltheory as icl
    >>> law = icl.theory.linear_attention(tau=[0.5, 2.0], alpha=1.0, kappa=0.5, rho=0.01)
    >>> law.icl.round(6)
    array([1.261077, 1.233993])
    >>> chains = [icl.Kernel.exponential(xi, context_length=128) for xi in (0.0, 2.0, 5.0)]
    >>> icl.theory.linear_attention(tau=4.0, alpha=4.0, kappa=10.0, rho=0.01, kernel=chains, query="next").icl.round(4)
    array([0.2897, 0.4402, 0.5785])
    """
    if kernel is not None and d is not None and alpha is None and context_length is None:
        context_length = context_lengths(kernel)
    tau, alpha, kappa = ratios(
        d=d,
        tau=tau,
        alpha=alpha,
        kappa=kappa,
        context_length=context_length,
        n_sequences=n_sequences,
        n_tasks=n_tasks,
    )
    if kernel is not None or test_kernel is not None:
        from icltheory.theory.correlated import correlated_context

        statistics = of_both(alpha, d, kernel, query, test_kernel, test_query)
        return correlated_context(tau=tau, alpha=alpha, kappa=kappa, rho=rho, ridge=ridge, **statistics)
    require_kernel(query)
    tau, alpha, kappa, rho, ridge = np.broadcast_arrays(tau, alpha, kappa, check("rho", rho), check("ridge", ridge))
    x = (1.0 + rho) / alpha
    xi, converged = _effective_ridge(1.0 / tau, kappa, x, ridge)
    return _risk(1.0 / tau, kappa, rho, ridge, x, xi, converged)


def _effective_ridge(u: Floats, kappa: Floats, x: Floats, ridge: Floats) -> tuple[Floats, Booleans]:
    """Solve phi(xi) = xi (1 - u + u xi M(x + xi)) - ridge = 0, where u = 1/tau; return (xi, certified).

    phi is convex. Jensen's inequality bounds xi M(x + xi) below by xi/(xi + 1 + x) and the smallest eigenvalue of
    R bounds it above by xi/(xi + x); each bound turns the equation into a quadratic, hence a bracket.
    """

    def equation(xi: Floats) -> tuple[Floats, Floats]:
        m, minus_derivative = resolvent(x + xi, kappa)
        # trd[R (R+xi)^{-1}] is 1 - xi M, which keeps its digits as tau -> 1, or M/(1 + M/kappa) + x M, as tau -> 0
        captured = m / (1.0 + m / kappa) + x * m
        rest = np.where(u < 2.0, (1.0 - u) + u * xi * m, 1.0 - u * captured)
        return xi * rest - ridge, rest + u * xi * (m - xi * minus_derivative)

    xi = quadratic_root(u, ridge, 1.0 + x)
    lowest = quadratic_root(u, ridge, x)
    for _ in range(_MAX_STEPS):
        value, slope = equation(xi)
        step = np.divide(value, slope, out=np.zeros_like(xi), where=(slope > 0) & (xi > 0))
        new = np.clip(xi - step, lowest, xi)
        moving = np.any(xi - new > 1e-15 * xi)
        xi = new
        if not moving:
            break
    below, above = equation(xi * (1.0 - _WIDTH))[0], equation(xi * (1.0 + _WIDTH))[0]
    exactly_zero = (xi == 0) & (ridge == 0) & (u <= 1)
    return xi, ((below <= 0) & (above >= 0)) | exactly_zero


def quadratic_root(u: Floats, ridge: Floats, s: Floats) -> Floats:
    """Return the non-negative root of xi (1 - u + u xi/(xi + s)) = ridge, free of cancellation."""
    b = (1.0 - u) * s - ridge
    root = np.hypot(b, 2.0 * np.sqrt(ridge * s))
    total = np.abs(b) + root
    return np.where(b <= 0, total / 2.0, 2.0 * ridge * s / np.where(total > 0, total, 1.0))


def _risk(
    u: Floats,
    kappa: Floats,
    rho: Floats,
    ridge: Floats,
    x: Floats,
    xi: Floats,
    converged: Booleans,
) -> LinearAttentionRisk:
    """Assemble the errors from traces at nu = x + xi; every sum but the gap's has positive terms only."""
    nu = x + xi
    t = traces(nu, kappa)
    # lambda/xi = 1 - trd[R G]/tau; at xi = 0 that trace is 1
    shrink = np.where(xi > 0, ridge / np.where(xi > 0, xi, 1.0), np.maximum(1.0 - u, 0.0))
    # 1 - trd[R^2 G^2]/tau, by trd[R G] - trd[R^2 G^2] = xi trd[R G^2]
    denominator = shrink + u * xi * (t.t12 + x * t.t02)
    numerator = rho + x * t.t22 + nu * (nu * t.t12)
    idg = np.divide(numerator, denominator, out=np.full_like(nu, np.inf), where=denominator > 0)
    # ICL minus IDG, term by term, so that its 1/kappa decay keeps its digits
    spread = t.noise_excess + x * t.excess
    gap = nu * (nu * t.excess) + np.multiply(u * idg, spread, out=np.zeros_like(nu), where=spread != 0)
    train = np.multiply(idg, shrink**2, out=np.zeros_like(nu), where=shrink > 0)
    return LinearAttentionRisk(
        icl=np.asarray(idg + gap),
        idg=idg,
        train=train,
        gap=np.asarray(gap),
        effective_ridge=np.asarray(xi),
        converged=np.asarray(converged),
    )
