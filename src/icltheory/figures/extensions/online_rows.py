"""One-pass training: every plotted number, simulated and predicted."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from icltheory.figures.extensions.online_data import (
    ALPHA,
    BEYOND,
    DECAY_TIME,
    EARLY,
    EDGE,
    KAPPAS,
    LATE,
    RHO,
    STEPS,
    TARGETS,
    TIMES,
    Method,
    Online,
    OnlineJob,
    OnlineOutcome,
    OnlineRow,
    best_ridge,
)
from icltheory.points import Floats, Point
from icltheory.simulate.batch import Job, Outcome
from icltheory.theory import linear_attention, online, online_limit


def rows(
    parameters: Online, done: Sequence[OnlineJob | Job], outcomes: Sequence[OnlineOutcome | Outcome]
) -> list[OnlineRow]:
    """Return every number: simulated (averaged over seeds) and predicted."""
    runs: dict[OnlineJob, list[OnlineOutcome]] = {}
    fits: dict[Point, list[Outcome]] = {}
    for job, outcome in zip(done, outcomes, strict=True):
        if isinstance(job, OnlineJob) and isinstance(outcome, OnlineOutcome):
            runs.setdefault(replace(job, seed=0, repetition=0), []).append(outcome)
        elif isinstance(job, Job) and isinstance(outcome, Outcome):
            fits.setdefault(job.point, []).append(outcome)
    simulated = [row for job, group in runs.items() for row in _run_rows(parameters, job, group)]
    simulated += [_fit_row(point, group) for point, group in fits.items()]
    return simulated + _curve_rows(parameters.d) + _step_rows(parameters.d) + _comparison_rows(parameters.d)


def _run_rows(parameters: Online, job: OnlineJob, group: Sequence[OnlineOutcome]) -> list[OnlineRow]:
    """Return a run's errors, once for every panel that shows them."""
    found = []
    for i, t in enumerate(group[0].t):
        for target in TARGETS:
            values = np.array([getattr(outcome, target)[i] for outcome in group])
            finite = bool(np.all(np.isfinite(values)))
            row = OnlineRow(
                panel="",
                kind="simulation",
                method="one pass",
                target=target,
                t=t,
                kappa=job.kappa,
                step_size=job.step_size,
                decay_time=job.decay_time,
                value=float(values.mean()),
                error=_standard_error(values) if finite else math.inf,
                d=job.d,
                seeds=len(values),
            )
            found += [replace(row, panel=panel) for panel in _panels(parameters, job, row)]
    return found


def _panels(parameters: Online, job: OnlineJob, row: OnlineRow) -> list[str]:
    """Name the panels in which a simulated number belongs, or the claim that it serves."""
    if job.d != parameters.d:
        return ["half d"]
    if job.step_size in [size * EDGE for size in BEYOND]:
        return ["edge"]
    few, constant = math.isfinite(job.kappa), math.isinf(job.decay_time)
    if not constant:
        return ["F"] if few else ["E"] if row.target == "icl" else []
    if not few:
        return (["C"] if job.step_size in STEPS else ["E"]) if row.target == "icl" else []
    curve = "A" if row.target == "icl" else "B"
    panels = [curve] if job.step_size in STEPS else []
    panels += ["D"] if row.target == "idg" and _nearest(row.t, (EARLY, LATE)) else []
    return panels + (["F"] if job.step_size == STEPS[-1] else [])


def _nearest(t: float, times: tuple[float, ...]) -> bool:
    """Tell whether t is one of the times, rounded to whole sequences."""
    return any(abs(t - time) < 0.01 * time for time in times)


def _fit_row(point: Point, group: Sequence[Outcome]) -> OnlineRow:
    values = np.array([outcome.icl for outcome in group])
    return OnlineRow(
        panel="E",
        kind="simulation",
        method="best ridge fit" if point.ridge else "ridgeless fit",
        target="icl",
        t=point.tau,
        kappa=point.kappa,
        ridge=point.ridge,
        value=float(values.mean()),
        error=_standard_error(values),
        d=point.d,
        seeds=len(values),
    )


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan


def _curve_rows(d: int) -> list[OnlineRow]:
    """Return the learning curves of panels A, B, C and F, at dimension d and in the limit."""
    time = np.concatenate([np.linspace(0, 1, 41), np.linspace(1.05, TIMES[-1], 80)])
    found = []
    for panel, target, kappa in (("A", "icl", KAPPAS[0]), ("B", "idg", KAPPAS[0]), ("C", "icl", KAPPAS[1])):
        for eta in STEPS:
            for dimension in (d, None):
                found += _one_pass_rows(panel, target, kappa, eta, math.inf, time, dimension)
    for target in TARGETS:
        for decay_time in (math.inf, DECAY_TIME):
            found += _one_pass_rows("F", target, KAPPAS[0], STEPS[-1], decay_time, time, d)
    return found


def _one_pass_rows(
    panel: str, target: str, kappa: float, eta: float, decay_time: float, time: Floats, d: int | None
) -> list[OnlineRow]:
    job = OnlineJob(d=0, kappa=kappa, step_size=eta, decay_time=decay_time)
    step_size = eta if math.isinf(decay_time) else job.schedule
    curve = online(t=time, step_size=step_size, alpha=ALPHA, kappa=kappa, rho=RHO, d=d)
    return _theory_rows(panel, "one pass", target, time, getattr(curve, target), kappa, eta, decay_time, d)


def _step_rows(d: int) -> list[OnlineRow]:
    """Return the errors of panel D against the step size: early and late (also beyond the edge), and at the end."""
    kappa, found = KAPPAS[0], []
    for t, most in ((EARLY, 1.15), (LATE, 1.02), (math.inf, 0.985)):
        eta = np.linspace(0.02, most, 120) * EDGE
        if math.isinf(t):
            value = online_limit(step_size=eta, alpha=ALPHA, kappa=kappa, rho=RHO).idg
        else:
            value = online(t=t, step_size=eta, alpha=ALPHA, kappa=kappa, rho=RHO, allow_unstable=True).idg
        found += _theory_rows("D", "one pass", "idg", np.full_like(eta, t), value, kappa, eta, math.inf)
    eta = np.concatenate([np.linspace(0.02, 0.2, 14), np.linspace(0.23, 0.9, 22)]) * EDGE
    both = online(t=[[EARLY], [LATE]], step_size=eta, alpha=ALPHA, kappa=kappa, rho=RHO, d=d).idg
    for t, value in zip((EARLY, LATE), both, strict=True):
        found += _theory_rows("D", "one pass", "idg", np.full_like(eta, t), value, kappa, eta, math.inf, d)
    return found


def _comparison_rows(d: int) -> list[OnlineRow]:
    """Return the lines of panel E: what n sequences buy in one pass, and when they can be kept and fitted."""
    kappa = math.inf
    near = np.geomspace(1e-2, 0.8, 60)
    time = np.unique(np.concatenate([np.linspace(0.1, TIMES[-1], 100), 1 - near, 1 + near]))
    ridgeless = linear_attention(tau=time, alpha=ALPHA, kappa=kappa, rho=RHO).icl
    fit = np.array([best_ridge(t)[1] for t in time])
    steps = np.geomspace(0.01, 0.98, 200)[:, None] * EDGE
    constant = online(t=time, step_size=steps, alpha=ALPHA, kappa=kappa, rho=RHO).icl.min(axis=0)
    found = []
    for method, values in (
        ("ridgeless fit", ridgeless),
        ("best ridge fit", fit),
        ("best constant step", constant),
        ("best schedule", best_schedule_error(time)),
    ):
        found += _theory_rows("E", method, "icl", time, values, kappa, None, math.inf)  # type: ignore[arg-type]
    return found + _one_pass_rows("E", "icl", kappa, STEPS[-1], DECAY_TIME, time, d)


def best_schedule_error(time: Floats) -> Floats:
    r"""Return the least error that any step-size schedule reaches in one pass, for kappa = inf and no decay.

    All modes are alike: the excess :math:`\delta = e - e_\infty` obeys
    :math:`\dot\delta = -2\eta R\,\delta + \eta^2 R^2 e`, R = 1 + x, least at :math:`\eta = \delta/(R e)`, where
    :math:`\dot\delta = -\delta^2/(e_\infty + \delta)`; hence
    :math:`t = e_\infty (1/\delta - 1/\delta_0) + \ln(\delta_0/\delta)`, to be solved for :math:`\delta`.
    """
    from scipy.optimize import brentq

    r = 1.0 + (1.0 + RHO) / ALPHA
    start, floor = 1.0 / r, 1.0 + RHO - 1.0 / r

    def lateness(excess: float, t: float) -> float:
        return floor * (1 / excess - 1 / start) + math.log(start / excess) - t

    # 1/delta grows by at most t/floor
    return np.array([floor + brentq(lateness, 1 / (1 / start + (t + 1) / floor), start, args=(t,)) for t in time])


def _theory_rows(
    panel: str,
    method: Method,
    target: str,
    time: Floats,
    values: Floats,
    kappa: float,
    step_size: Floats | float | None,
    decay_time: float,
    d: int | None = None,
) -> list[OnlineRow]:
    steps = [None] * len(time) if step_size is None else np.broadcast_to(step_size, time.shape).tolist()
    return [
        OnlineRow(
            panel=panel,
            kind="theory",
            method=method,
            target=target,  # type: ignore[arg-type]
            t=float(t),
            kappa=kappa,
            step_size=step,
            decay_time=decay_time,
            value=float(value),
            d=d,
        )
        for t, step, value in zip(time, steps, values, strict=True)
    ]
