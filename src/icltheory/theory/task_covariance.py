"""Exact asymptotics of linear attention on structured tasks, trained on one covariance and tested on another."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import Booleans, Floats, check, ratios
from icltheory.prompts.covariance import check_covariance
from icltheory.theory.linear_attention import LinearAttentionRisk
from icltheory.theory.structured_spectrum import Spectrum, StructuredTraces, effective_ridge, structured_traces

_BLOCK = 500_000  # eigenvalues times points worked on at a time: bounds the memory


@dataclass(frozen=True, kw_only=True)
class TaskCovarianceRisk(LinearAttentionRisk):
    r"""Predicted risk on structured tasks; every field has the broadcast shape of the arguments.

    Attributes
    ----------
    misalignment : array
        :math:`\mathrm{trd}\,C_{te} K`, the part of the ICL error in which the two covariances meet; the rest,
        ``icl - misalignment``, knows of the test tasks their signal variance alone. See
        `icltheory.theory.alignment_kernel` for K.
    """

    misalignment: Floats


def task_covariance(
    *,
    tau: ArrayLike | None = None,
    alpha: ArrayLike | None = None,
    kappa: ArrayLike | None = None,
    rho: ArrayLike,
    ridge: ArrayLike = 0.0,
    train: ArrayLike,
    test: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    test_alpha: ArrayLike | None = None,
    d: int | None = None,
    context_length: ArrayLike | None = None,
    n_sequences: ArrayLike | None = None,
    n_tasks: ArrayLike | None = None,
) -> TaskCovarianceRisk:
    r"""Predict the errors of linear attention trained on tasks of covariance C and tested on tasks of covariance C_te.

    The model and its training are those of `icltheory.theory.linear_attention`, but the k pretraining tasks are drawn
    from :math:`N(0, C)` and the tasks of the ICL test from :math:`N(0, C_{te})`. With
    :math:`x = (\rho + \mathrm{trd}\,C)/\alpha`, :math:`x_{te} = (\rho + \mathrm{trd}\,C_{te})/\alpha_{te}`, the sample
    covariance :math:`A_k` of the tasks, :math:`R = A_k + x`, the effective ridge :math:`\xi` of
    :math:`\xi (1 - \frac1\tau \mathrm{trd}\,R(R + \xi)^{-1}) = \lambda`, :math:`\nu = x + \xi` and
    :math:`G = (A_k + \nu)^{-1}`,

    .. math::
        \tau q &= \frac{\rho + x\,\mathrm{trd} (A_k G)^2 + \nu^2\,\mathrm{trd}\,A_k G^2}
                   {1 - \mathrm{trd} (RG)^2/\tau} , \qquad K = \nu^2 G^2 + q R G^2 , \\
        e_{ICL} &= \rho + x_{te} \left[\mathrm{trd} (A_k G)^2 + q\,\mathrm{trd}\,R G^2\right]
                   + \mathrm{trd}\,C_{te} K , \qquad e_{train} = \tau q\,(\lambda/\xi)^2 ,

    and :math:`e_{IDG}` is :math:`e_{ICL}` with :math:`A_k` in place of :math:`C_{te}`, hence :math:`\tau q` where
    test prompts are as long as those of training. As d grows, :math:`G` may be replaced by
    :math:`F = (s C + \nu)^{-1}`, :math:`s = 1 - \frac1\kappa + \frac{\nu}{\kappa} \mathrm{trd}\,F`, and :math:`G^2` by
    :math:`-dF/d\nu`. All sums have positive terms only.

    Parameters
    ----------
    tau, alpha, kappa : array_like
        Sequences/d^2, context length/d and tasks/d. ``tau`` and ``kappa`` may be ``math.inf``.
    rho : array_like
        Label-noise variance, on the scale of the signal variances :math:`\mathrm{trd}\,C` and
        :math:`\mathrm{trd}\,C_{te}`, which need not be 1.
    ridge : array_like, default 0
        Penalty lambda; 0 is the ridgeless limit.
    train : array of shape (d,) or (d, d)
        C: eigenvalues in the token basis or a matrix, as the simulation takes it. Eigenvalues may be 0.
    test : array of shape (d,) or (d, d), optional
        C_te, likewise; default C. Only its diagonal in the eigenbasis of C matters.
    weights : array of shape (m,), optional
        Then `train` and `test` are m values, and the weights are proportional to the dimensions that have them.
    test_alpha : array_like, optional
        Context length/d of both tests; default that of training.
    d, context_length, n_sequences, n_tasks : optional
        Sizes in place of ratios, see `icltheory.theory.linear_attention`.

    Returns
    -------
    TaskCovarianceRisk
        Arrays of the broadcast shape. At ``tau == 1`` and ``ridge == 0`` both errors are ``inf``.

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed.

    Notes
    -----
    The limit takes :math:`|w|^2/d` to be :math:`\mathrm{trd}\,C` for every task, which needs
    :math:`\mathrm{trd}\,C^2 \ll d\,(\mathrm{trd}\,C)^2`: no few directions may carry a finite share of the signal of
    the *pretraining* tasks, or a simulation deviates at every d. The test tasks are free of that condition.

    References
    ----------
    Letey, Zavatone-Veth, Lu, Pehlevan, "Pretrain-test task alignment governs generalization in in-context learning",
    2025 (arXiv:2509.26551): the ridgeless ICL error. Here for every ridge, with IDG and training error.

    Examples
    --------
    >>> import icltheory as icl
    >>> spectrum = icl.prompts.covariance.power_law(50, 0.9)
    >>> point = {"tau": 4.0, "alpha": 2.0, "kappa": 1.0, "rho": 0.01}
    >>> law = icl.theory.task_covariance(**point, train=spectrum)
    >>> turned = icl.theory.task_covariance(**point, train=spectrum, test=spectrum[::-1])
    >>> round(float(law.icl), 4), round(float(turned.icl), 4)   # strong where training was weak
    (0.4798, 0.8303)
    """
    eigenvalues, _, shares = eigenbasis(train, weights, d)
    tested = in_eigenbasis("test", train if test is None else test, train, weights, d)
    tau, alpha, kappa = ratios(
        d=d,
        tau=tau,
        alpha=alpha,
        kappa=kappa,
        context_length=context_length,
        n_sequences=n_sequences,
        n_tasks=n_tasks,
    )
    longer = alpha if test_alpha is None else check("test_alpha", test_alpha)
    arrays = np.broadcast_arrays(tau, alpha, kappa, check("rho", rho), check("ridge", ridge), longer)
    shape, flat = arrays[0].shape, [np.ravel(array) for array in arrays]
    spectrum = Spectrum(eigenvalues, shares)
    size = max(1, _BLOCK // len(eigenvalues))
    parts = []
    for start in range(0, max(1, flat[0].size), size):
        t, a, k, noise, penalty, ta = (array[start : start + size] for array in flat)
        parts.append(_risk(t, a, k, noise, penalty, ta, spectrum, tested))
    names = ("icl", "idg", "train", "gap", "effective_ridge", "converged", "misalignment")
    return TaskCovarianceRisk(
        **{name: np.concatenate([getattr(part, name) for part in parts]).reshape(shape) for name in names}
    )


@dataclass(frozen=True, kw_only=True)
class Equilibrium:
    """What pretraining alone decides, at n points: nothing of it knows the test. Arrays of shape (n,)."""

    x: Floats
    nu: Floats
    idg: Floats
    q: Floats
    train: Floats
    effective_ridge: Floats
    converged: Booleans
    traces: StructuredTraces

    def kernel(self) -> Floats:
        """Return the eigenvalues of K, shape (n, m), in the eigenbasis of the pretraining covariance."""
        t = self.traces
        fitted = np.square(self.nu)[:, None] * t.second
        return np.asarray(fitted + self.q[:, None] * (t.signal + self.x[:, None] * t.second))


def equilibrium(
    tau: Floats, alpha: Floats, kappa: Floats, rho: Floats, ridge: Floats, spectrum: Spectrum
) -> Equilibrium:
    """Solve for the effective ridge at checked points of shape (n,), and return all that follows from pretraining."""
    u, inverse, x = 1.0 / tau, 1.0 / kappa, (rho + spectrum.mean) / alpha
    xi, omega, converged = effective_ridge(u, inverse, x, ridge, spectrum)
    nu = x + xi
    t = structured_traces(nu, omega, inverse, spectrum)
    # lambda/xi = 1 - trd[R G]/tau; at xi = 0 that trace is 1
    shrink = np.where(xi > 0, ridge / np.where(xi > 0, xi, 1.0), np.maximum(1.0 - u, 0.0))
    # 1 - trd[R^2 G^2]/tau, by trd[R G] - trd[R^2 G^2] = xi trd[R G^2]
    denominator = shrink + u * xi * (t.t12 + x * t.t02)
    numerator = rho + x * t.t22 + nu * (nu * t.t12)
    idg = np.divide(numerator, denominator, out=np.full_like(nu, np.inf), where=denominator > 0)
    return Equilibrium(
        x=x,
        nu=nu,
        idg=idg,
        q=np.multiply(u, idg, out=np.zeros_like(nu), where=u > 0),
        train=np.multiply(idg, shrink**2, out=np.zeros_like(nu), where=shrink > 0),
        effective_ridge=xi,
        converged=converged,
        traces=t,
    )


def _risk(
    tau: Floats,
    alpha: Floats,
    kappa: Floats,
    rho: Floats,
    ridge: Floats,
    test_alpha: Floats,
    spectrum: Spectrum,
    tested: Floats,
) -> TaskCovarianceRisk:
    """Return the risk at points of shape (n,) for test variances of shape (m,) along the eigenvectors of C."""
    state = equilibrium(tau, alpha, kappa, rho, ridge, spectrum)
    t, q, x = state.traces, state.q, state.x
    fresh, seen = ((rho + float(c @ spectrum.shares)) / test_alpha for c in (tested, spectrum.values))
    cost = t.t22 + q * (t.t12 + x * t.t02)  # of the noise that prompts of finite length carry
    idg = rho + state.nu * (state.nu * t.t12) + q * (t.t22 + x * t.t12) + seen * cost
    second, signal = t.second @ (tested * spectrum.shares), t.signal @ (tested * spectrum.shares)
    misalignment = state.nu * (state.nu * second) + q * (signal + x * second)
    icl = rho + fresh * cost + misalignment
    # ICL minus IDG, term by term, so that its 1/kappa decay keeps its digits where training and test agree
    change = (tested - spectrum.values) * spectrum.shares
    excess = t.excess + t.second @ change
    more = float(change.sum()) / test_alpha
    spread = t.noise_excess + t.signal @ change + x * excess + more * (t.t12 + x * t.t02)
    gap = state.nu * (state.nu * excess) + more * t.t22
    gap = gap + np.multiply(q, spread, out=np.zeros_like(q), where=spread != 0)
    return TaskCovarianceRisk(
        icl=np.asarray(icl),
        idg=np.where(seen == x, state.idg, idg),
        train=state.train,
        gap=np.asarray(gap),
        effective_ridge=state.effective_ridge,
        converged=state.converged,
        misalignment=np.asarray(misalignment),
    )


def eigenbasis(
    train: ArrayLike, weights: ArrayLike | None = None, d: int | None = None
) -> tuple[Floats, Floats | None, Floats]:
    """Return the eigenvalues of a training covariance, its eigenvectors (None: the token basis), and their shares."""
    size = len(np.atleast_1d(np.asarray(train))) if d is None or weights is not None else d
    checked = check_covariance("train", train, size)
    if weights is not None:
        if checked.ndim == 2:
            raise ValueError(f"train must be eigenvalues of shape (m,) if weights are given, got {checked.shape}")
        return checked, None, _shares(weights, size)
    shares = np.full(size, 1.0 / size)
    if checked.ndim == 1:
        return checked, None, shares
    values, vectors = np.linalg.eigh(checked)
    # a null space is one only to rounding in a matrix
    values[values < 1e-13 * values[-1]] = 0.0
    return values, vectors, shares


def in_eigenbasis(
    name: str, test: ArrayLike, train: ArrayLike, weights: ArrayLike | None = None, d: int | None = None
) -> Floats:
    """Return the variances of a test covariance along the eigenvectors of the training covariance."""
    values, vectors, _ = eigenbasis(train, weights, d)
    checked = check_covariance(name, test, len(values))
    if vectors is None:
        return checked if checked.ndim == 1 else np.diag(checked).copy()
    matrix = np.diag(checked) if checked.ndim == 1 else checked
    along: Floats = np.maximum(np.einsum("ij,ij->j", vectors, matrix @ vectors), 0.0)
    return along


def _shares(weights: ArrayLike, size: int) -> Floats:
    value = np.asarray(weights)
    if value.dtype.kind not in "iuf":
        raise TypeError(f"weights must be an array of real numbers, got {weights!r}")
    if value.shape != (size,):
        raise ValueError(f"weights must have the shape of train, {(size,)}, got {value.shape}")
    if not (np.all(np.isfinite(value)) and np.all(value > 0)):
        index = int(np.argmin(np.isfinite(value) & (value > 0)))
        raise ValueError(f"weights must be > 0 and finite, got {value[index]:g} at index {index}")
    shares: Floats = value / value.sum()
    return shares
