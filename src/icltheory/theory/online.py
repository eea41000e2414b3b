"""Exact learning curves of one-pass (online) training, as d -> infinity."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import Booleans, Floats, check, one_whole, ratios
from icltheory.theory.online_dynamics import constant_rate, errors, limit_modes, limit_noise, varying_rate
from icltheory.theory.online_edge import checked, stability_edge
from icltheory.theory.online_finite import finite_modes, finite_noise, mean_task
from icltheory.theory.step_size import as_schedule

_FIRST_ORDER = 12
_LARGEST_ORDER = 768
_TOLERANCE = 1e-9  # relative change of the errors at which the quadrature counts as converged


@dataclass(frozen=True, kw_only=True)
class OnlineCurve:
    """Errors of one-pass training; every field has the broadcast shape of the arguments.

    Attributes
    ----------
    t : array
        Time: sequences seen/d^2, which is ``tau`` of a fit to the same sequences.
    icl, idg, gap : array
        Error on fresh tasks, on the pretraining tasks (also the expected loss on the next sequence), and
        ``icl - idg``.
    icl_noise, idg_noise : array
        Their shares that the randomness of the gradients causes; the rest is that of gradient flow.
    edge : array
        The largest stable step size, see `stability_edge`.
    stable : array of bool
        Whether the step size (at that time) is below it.
    """

    t: Floats
    icl: Floats
    idg: Floats
    gap: Floats
    icl_noise: Floats
    idg_noise: Floats
    edge: Floats
    stable: Booleans


def online(
    *,
    t: ArrayLike,
    step_size: ArrayLike | Callable[[float], float],
    alpha: ArrayLike,
    kappa: ArrayLike,
    rho: ArrayLike,
    ridge: ArrayLike = 0.0,
    batch_size: ArrayLike = 1,
    d: int | None = None,
    allow_unstable: bool = False,
) -> OnlineCurve:
    r"""Predict the learning curves of linear attention trained on sequences that arrive once each, as d -> infinity.

    From :math:`\Gamma = 0`, each step takes a batch of b new sequences of the k tasks:

    .. math:: \Gamma \leftarrow \Gamma + \frac{\eta}{d} \Big[ \frac1b \sum_{\mu \in batch}
              (y^\mu - \langle\Gamma, H^\mu\rangle)\, H^\mu - \frac{\lambda}{d}\, \Gamma \Big] .

    Time counts sequences, t = sequences/d^2, so that ``t`` is the ``tau`` of a fit to the same data. With
    :math:`h = \eta/b`, each eigenvalue a of the task covariance :math:`A_k` (weight w), :math:`x = (1+\rho)/\alpha`
    and :math:`R = a + x`, the mean m and the variance v of :math:`\Gamma` along that mode obey

    .. math::
        \dot m &= h\,[a - (R + \lambda)\, m] \\
        \dot v &= -2 h (R + \lambda)\, v + h^2 R\, e_{IDG} \\
        e_{IDG} &= \rho + 1 + \sum\nolimits_a w\, [R (m^2 + v) - 2 a m] \\
        e_{ICL} &= \rho + 1 + \sum\nolimits_a w\, [(1 + x)(m^2 + v) - 2 m] .

    A batch of b thus does what single sequences do with a step b times smaller, as long as :math:`b \ll d^2`. Constant
    step sizes are solved exactly, by eigenvectors; schedules numerically (relative tolerance 1e-10). The quadrature
    over a is refined until both errors are stationary to 1e-9.

    Parameters
    ----------
    t : array_like
        Times >= 0, in any order.
    step_size : array_like or callable
        :math:`\eta > 0`; or a schedule, a piecewise smooth function of t with values >= 0.
    alpha, kappa : array_like
        Context length/d and tasks/d; ``kappa`` may be ``math.inf``.
    rho : array_like
        Label-noise variance (the signal variance is 1).
    ridge : array_like, default 0
        Weight decay :math:`\lambda`; for small :math:`\eta` and large t the answer tends to that of the fit with
        this ridge on infinitely many sequences.
    batch_size : array_like of int, default 1
        Sequences in a step, b.
    d : int, optional
        Token dimension: adds the corrections of order 1/d, for tasks on the sphere (see Notes). Default: none.
    allow_unstable : bool, default False
        Return curves also where the step size is not below the edge of stability (for a schedule: at t = 0 and the
        times asked for) and the error grows or need not settle; ``stable`` is False there.

    Returns
    -------
    OnlineCurve

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed; among them a step size that is not stable.
    OverflowError
        For an unstable error too large for floating point.
    ArithmeticError
        If quadrature or integration did not converge.

    Notes
    -----
    Near the edge the limit is approached slowly: the noise of the gradients feeds back on itself with the strength
    f = step size/edge, and a correction s/d of f changes the error by the factor :math:`1 + \frac{f s/d}{1 - f}`, where
    s is 3 to 7 (fourth moments of the query and of the context, the last of its d + 1 features, its finite length).
    With `d` these are included. So is what few tasks do: the 1/d correction of their spectrum, and the mean that they
    share. Simulations at d = 60 then agree to .6 % up to .63 of the edge (1.2 % at .79), where the limit is off by up
    to 20 %; at d = 30 to 1 % for endless tasks and to 4 % for few. ``edge`` and ``stable`` are those of the limit.

    References
    ----------
    The model is that of Lu, Letey, Zavatone-Veth, Maiti, Pehlevan, PNAS 122(28), 2025 (arXiv:2405.11751). Closed
    equations of this kind, as a Volterra equation for the error of stochastic gradient descent on least squares:
    Paquette, Lee, Pedregosa, Paquette, COLT 2021 (arXiv:2102.04396).

    Examples
    --------
    >>> import icltheory as icl
    >>> curve = icl.theory.online(t=[1, 2, 5], step_size=0.4, alpha=1.0, kappa=0.5, rho=0.1)
    >>> curve.icl.round(3), curve.idg.round(3)
    (array([1.149, 1.182, 1.204]), array([0.713, 0.696, 0.707]))
    >>> slower = icl.theory.online(t=5, step_size=lambda t: 0.4 / (1 + t), alpha=1.0, kappa=0.5, rho=0.1)
    >>> bool(slower.idg < curve.idg[-1])   # small steps at the end average the noise of the gradients away
    True
    """
    dimension = None if d is None else one_whole("d", d, "token dimension")
    times, (alpha, kappa, rho, ridge, batch) = check("t", t), checked(alpha, kappa, rho, ridge, batch_size)
    if dimension is not None:  # as the simulation does
        _, alpha, kappa = ratios(
            d=dimension, tau=1.0, alpha=alpha, kappa=kappa, context_length=None, n_sequences=None, n_tasks=None
        )
    edge = stability_edge(alpha=alpha, kappa=kappa, rho=rho, ridge=ridge, batch_size=batch)
    schedule = as_schedule(step_size) if callable(step_size) else None
    if schedule is None:
        eta, first = check("step_size", step_size), 0.0
    else:
        eta = np.array([schedule(time) for time in times.ravel().tolist()]).reshape(times.shape)
        first = schedule(0.0)
    shape = np.broadcast_shapes(*(array.shape for array in (times, eta, alpha, kappa, rho, ridge, batch)))
    stable = np.broadcast_to(eta < edge, shape)
    if not allow_unstable:
        _require_stable(np.maximum(eta, first), edge, schedule is not None)
    columns = [np.broadcast_to(array, shape).ravel() for array in (times, eta, alpha, kappa, rho, ridge, batch)]
    values = np.empty((4, columns[0].size))
    # points that differ in time only are one curve; a schedule's rate is not a constant of the curve
    keys = np.stack(columns[2:] if schedule else columns[1:], axis=1)
    unique, which = np.unique(keys, axis=0, return_inverse=True)
    for i, key in enumerate(unique):
        chosen = np.flatnonzero(which.ravel() == i)
        rate = _rate(schedule, key)
        values[:, chosen] = _curve(columns[0][chosen], rate, dimension, *(float(number) for number in key[-5:-1]))
    idg, gap, icl_noise, idg_noise = values.reshape(4, *shape)
    return OnlineCurve(
        t=np.broadcast_to(times, shape).copy(),
        icl=np.asarray(idg + gap),
        idg=idg,
        gap=gap,
        icl_noise=icl_noise,
        idg_noise=idg_noise,
        edge=np.broadcast_to(edge, shape).copy(),
        stable=stable.copy(),
    )


def _require_stable(eta: Floats, edge: Floats, scheduled: bool) -> None:
    eta, edge = np.broadcast_arrays(eta, edge)
    bad = ~(eta < edge)
    if np.any(bad):
        size, limit = float(eta[bad].flat[0]), float(edge[bad].flat[0])
        name = "step_size(t)" if scheduled else "step_size"
        raise ValueError(
            f"{name} must be below the edge of stability, {limit:.6g} here (stability_edge), got {size:.6g}: training "
            "diverges. Use a smaller step or a larger batch_size, or allow_unstable=True to see it"
        )


def _rate(schedule: Callable[[float], float] | None, key: Floats) -> float | Callable[[float], float]:
    """Return h = eta/b of a curve: a number, or a function of time."""
    batch = float(key[-1])
    if schedule is None:
        return float(key[0]) / batch
    return lambda time: schedule(time) / batch


def _curve(
    t: Floats,
    rate: float | Callable[[float], float],
    d: int | None,
    alpha: float,
    kappa: float,
    rho: float,
    ridge: float,
) -> Floats:
    """Solve one curve with ever finer quadrature until both errors settle."""
    sorted_times, back = np.unique(t, return_inverse=True)
    order, before = _FIRST_ORDER, None
    while order <= _LARGEST_ORDER:
        now = _solve(sorted_times, rate, d, order, alpha, kappa, rho, ridge)
        if math.isinf(kappa) or (before is not None and _settled(before, now)):
            return now[:, back]
        order, before = 2 * order, now
    raise ArithmeticError(
        f"the average over the spectrum of the tasks did not settle with {_LARGEST_ORDER} nodes at alpha = {alpha:g}, "
        f"kappa = {kappa:g}, rho = {rho:g}, ridge = {ridge:g} and t up to {t.max():g}: use a larger ridge or shorter t"
    )


def _solve(
    t: Floats,
    rate: float | Callable[[float], float],
    d: int | None,
    order: int,
    alpha: float,
    kappa: float,
    rho: float,
    ridge: float,
) -> Floats:
    if d is not None:
        modes, shift = finite_modes(d, alpha, kappa, rho, ridge), mean_task(order, d, alpha, kappa, rho, ridge)
        schedule = rate if callable(rate) else lambda _time: rate
        noise = finite_noise(modes, d, alpha, kappa)
        elapsed, *moments = varying_rate(modes, t, schedule, noise, lambda time: shift(time)[0])
        idg, icl = np.array([shift(float(time)) for time in elapsed]).reshape(-1, 2).T
        curve = errors(modes, *moments)
        curve[:2] += idg, icl - idg
        return curve
    modes = limit_modes(order, alpha, kappa, rho, ridge)
    if callable(rate):
        return errors(modes, *varying_rate(modes, t, rate, limit_noise(modes))[1:])
    return errors(modes, *constant_rate(modes, t, rate))


def _settled(before: Floats, now: Floats) -> bool:
    """Compare the IDG error and the gap, both on the scale of the error."""
    return bool(np.all(np.abs(now[:2] - before[:2]) <= _TOLERANCE * (now[0] + np.abs(now[1]))))
