"""One-pass training: parameters, simulations to run, and what a plotted number is."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from icltheory.figures.figure import Kind
from icltheory.points import Point
from icltheory.simulate.batch import Job, stream
from icltheory.simulate.online import DivergenceError
from icltheory.simulate.online import online as simulate_online
from icltheory.theory import linear_attention, online, stability_edge

Target = Literal["icl", "idg"]
Method = Literal["one pass", "best constant step", "best schedule", "ridgeless fit", "best ridge fit"]
TARGETS: tuple[Target, Target] = ("icl", "idg")

ALPHA, RHO = 10.0, 0.1
KAPPAS = (0.5, math.inf)
EDGE = float(stability_edge(alpha=ALPHA, kappa=math.inf, rho=RHO))  # the same for every kappa, as there is no decay
STEPS = (0.2, 0.5, 0.9)  # the learning curves: .11, .28 and .50 of the edge
MORE_STEPS = (0.1, 0.35, 0.7, 1.1, 1.25)  # panel D besides
DECAY_TIME = 2.0  # the schedule: STEPS[-1]/(1 + t/2)
TIMES = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
EARLY, LATE = 1.0, 8.0  # panel D
BEYOND = (0.75, 1.25)  # step sizes below and above the edge, in its units
FIT_TAU = (0.25, 0.5, 0.8, 1.25, 2.0, 4.0, 8.0)


@dataclass(frozen=True, kw_only=True)
class Online:
    """Parameters: dimension and seeds of one-pass runs, seeds of those compared with each other, and the fits'."""

    d: int
    seeds: int
    compared_seeds: int
    fit_d: int
    fit_seeds: int


@dataclass(frozen=True, kw_only=True)
class OnlineOutcome:
    """Errors of one run at its times; inf from the time on at which it diverged."""

    t: tuple[float, ...]
    icl: tuple[float, ...]
    idg: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class OnlineJob:
    """One run of one-pass training: with a constant step size, or with step_size/(1 + t/decay_time)."""

    d: int
    kappa: float
    step_size: float
    decay_time: float = math.inf
    t: tuple[float, ...] = TIMES
    seed: int = 0
    repetition: int = 0

    def price(self) -> float:
        """Guess the cost in the units of a fit's: multiplications, of which it has more a second than the fit."""
        return 2.0 * self.d**4 * max(self.t)

    def schedule(self, t: float) -> float:
        """Return the step size at time t."""
        return self.step_size / (1.0 + t / self.decay_time)

    def run(self) -> OnlineOutcome:
        """Simulate."""
        names = ("online", self.d, self.kappa, self.step_size, self.decay_time, self.t)
        try:
            run = simulate_online(
                d=self.d,
                t=self.t,
                step_size=self.step_size if math.isinf(self.decay_time) else self.schedule,
                alpha=ALPHA,
                kappa=self.kappa,
                rho=RHO,
                rng=stream(self.seed, self.repetition, *names),
            )
        except DivergenceError:
            lost = (math.inf,) * len(self.t)
            return OnlineOutcome(t=self.t, icl=lost, idg=lost)
        return OnlineOutcome(t=tuple(run.t.tolist()), icl=tuple(run.icl.tolist()), idg=tuple(run.idg.tolist()))


@dataclass(frozen=True, kw_only=True)
class OnlineRow:
    """One plotted or compared number, with all that it depends on: a line of the CSV file.

    `t` is the time of one-pass training and the tau of a fit, sequences/d^2; `decay_time` is infinite for a constant
    step size; `error` is the standard error over `seeds` repetitions, 0 for theory; theory without `d` is the limit.
    """

    panel: str
    kind: Kind
    method: Method
    target: Target
    t: float
    kappa: float
    step_size: float | None = None
    decay_time: float = math.inf
    ridge: float = 0.0
    alpha: float = ALPHA
    rho: float = RHO
    value: float
    error: float = 0.0
    d: int | None = None
    seeds: int | None = None


def jobs(parameters: Online) -> list[OnlineJob | Job]:
    """Return all runs of one-pass training, at d and (for the learning curves) at d/2, and all fits."""
    d, seeds = parameters.d, parameters.seeds
    curves = [OnlineJob(d=d, kappa=kappa, step_size=eta) for kappa in KAPPAS for eta in STEPS]
    once = [OnlineJob(d=d, kappa=KAPPAS[0], step_size=eta, t=(EARLY, LATE)) for eta in MORE_STEPS]
    once += [OnlineJob(d=d, kappa=KAPPAS[0], step_size=STEPS[-1], decay_time=DECAY_TIME)]
    once += [OnlineJob(d=d, kappa=KAPPAS[0], step_size=size * EDGE, t=(LATE / 2, LATE)) for size in BEYOND]
    compared = [
        OnlineJob(d=d, kappa=math.inf, step_size=STEPS[-1], decay_time=DECAY_TIME),
        OnlineJob(d=d, kappa=math.inf, step_size=best_constant_step(LATE), t=(LATE,)),
    ]
    # half the dimension costs a sixteenth, and its errors spread twice as far
    small = [replace(job, d=d // 2) for job in curves]
    online_jobs = [*_repeat([*curves, *once], seeds), *_repeat(small, 4 * seeds)]
    online_jobs += _repeat(compared, parameters.compared_seeds)
    fits = [Job(point=point, repetition=i) for point in _fit_points(parameters) for i in range(parameters.fit_seeds)]
    return [*online_jobs, *fits]


def _repeat(jobs: Iterable[OnlineJob], seeds: int) -> list[OnlineJob]:
    return [replace(job, repetition=i) for job in jobs for i in range(seeds)]


def _fit_points(parameters: Online) -> list[Point]:
    ridges = [(tau, ridge) for tau in FIT_TAU for ridge in (0.0, best_ridge(tau)[0])]
    return [
        Point.of(d=parameters.fit_d, tau=tau, alpha=ALPHA, kappa=math.inf, rho=RHO, ridge=ridge)
        for tau, ridge in ridges
    ]


def best_ridge(tau: float) -> tuple[float, float]:
    """Return the ridge of least predicted error, on a grid of 3 per cent, and that error (kappa = inf)."""
    ridges = np.geomspace(1e-4, 30.0, 400)
    error = linear_attention(tau=tau, alpha=ALPHA, kappa=math.inf, rho=RHO, ridge=ridges).icl
    return float(ridges[np.argmin(error)]), float(error.min())


def best_constant_step(t: float) -> float:
    """Return the constant step size of least predicted error at time t, on a grid of 2 per cent (kappa = inf)."""
    steps = np.geomspace(0.01, 0.98, 200) * EDGE
    return float(steps[np.argmin(online(t=t, step_size=steps, alpha=ALPHA, kappa=math.inf, rho=RHO).icl)])


def pick(rows: Sequence[OnlineRow], panel: str, kind: str, **fields: float | str | None) -> list[OnlineRow]:
    """Return the rows of one panel and kind with the given fields, in order of time and step size."""
    chosen = [
        row
        for row in rows
        if row.panel == panel and row.kind == kind and all(getattr(row, k) == v for k, v in fields.items())
    ]
    return sorted(chosen, key=lambda row: (row.t, row.step_size or 0.0))
