"""Effective context length (Letey et al. 2026): the simulations to run, and every plotted number."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from icltheory.figures.letey2026.prompt_ridge import RidgeTrial, ridge_error
from icltheory.figures.letey2026.rows import CorrelatedRow, other, predicted, quoted, simulated
from icltheory.figures.letey2026.same_k2 import FAMILIES, WEAKEST, kernel_of
from icltheory.figures.letey2026.trials import TASKS, Fit, Prompts, Trial, collect, repeat
from icltheory.figures.published import (
    LETEY2026_ALPHA,
    LETEY2026_D,
    LETEY2026_ICL,
    LETEY2026_KAPPA,
    LETEY2026_RHO,
    LETEY2026_TAU,
    LETEY2026_XI,
)
from icltheory.points import Floats, Point
from icltheory.prompts.kernels import Kernel
from icltheory.theory import correlated_context, finite_size

SHORTEST = 12  # correlation lengths up to l/12 are shown: those of the paper at its d = 32
CORRELATED, SHORTER = "correlated", "at the effective length"


@dataclass(frozen=True, kw_only=True)
class EffectiveLength:
    """Parameters: dimension, seeds of the curve and of each kernel, and batches of 200 prompts for classical ridge."""

    d: int
    seeds: int
    kernel_seeds: int
    ridge_batches: int


def point_of(d: int, context_length: int | None = None) -> Point:
    """Return the experiment, with the prompts of another length if one is given."""
    return Point.of(
        d=d,
        tau=LETEY2026_TAU,
        alpha=LETEY2026_ALPHA if context_length is None else None,
        kappa=LETEY2026_KAPPA,
        rho=LETEY2026_RHO,
        context_length=context_length,
    )


def lengths(parameters: EffectiveLength) -> list[float]:
    """Return the correlation lengths."""
    return [xi for xi in LETEY2026_XI if xi <= point_of(parameters.d).context_length / SHORTEST]


def levels(parameters: EffectiveLength) -> list[float]:
    """Return the values of k2 that different kernels share."""
    return [share * point_of(parameters.d).context_length / WEAKEST for share in (0.25, 0.5, 0.75, 1.0)]


def jobs(parameters: EffectiveLength) -> list[Trial | RidgeTrial]:
    """Return all simulations."""
    curve, kernels = _curve(parameters), _kernels(parameters)
    ridges = [
        RidgeTrial(kernel=kernel, label=_label(family, k2), d=parameters.d, rho=LETEY2026_RHO, repetition=i)
        for (family, k2), kernel in _same_k2(parameters).items()
        for i in range(parameters.ridge_batches)
    ]
    return [
        *repeat([trial for pair in curve.values() for trial in pair], parameters.seeds),
        *repeat(list(kernels.values()), parameters.kernel_seeds),
        *ridges,
    ]


def _curve(parameters: EffectiveLength) -> dict[float, tuple[Trial, Trial]]:
    """Return for every xi the correlated prompts, and independent ones of the effective length."""
    point = point_of(parameters.d)
    found = {}
    for xi in lengths(parameters):
        kernel = Kernel.exponential(xi, point.context_length)
        short = round(float(kernel.effective_length(point.rho)))
        found[xi] = (
            Trial(point=point, prompts=Prompts(kernel=kernel, query="independent")),
            Trial(
                point=point_of(parameters.d, short),
                prompts=Prompts(kernel=Kernel.independent(short), query="independent"),
                label=f"instead of {xi:g}",
            ),
        )
    return found


def _same_k2(parameters: EffectiveLength) -> dict[tuple[str, float], Kernel]:
    length = point_of(parameters.d).context_length
    return {(family, k2): kernel_of(family, k2, length) for family in FAMILIES for k2 in levels(parameters)}


def _kernels(parameters: EffectiveLength) -> dict[tuple[str, float], Trial]:
    point = point_of(parameters.d)
    return {
        key: Trial(point=point, prompts=Prompts(kernel=kernel, query="independent"), label=_label(*key))
        for key, kernel in _same_k2(parameters).items()
    }


def _label(family: str, k2: float) -> str:
    return f"{family}, k2 = {k2:g}"


def rows(
    parameters: EffectiveLength, done: Sequence[Trial | RidgeTrial], outcomes: Sequence[Fit | float]
) -> list[CorrelatedRow]:
    """Return every plotted number."""
    trials = [job for job in done if isinstance(job, Trial)]
    groups: dict[tuple[object, str], list[Fit]] = {}  # by what a job is of, as kernels given by matrices are made anew
    for trial, fits in collect(trials, [fit for fit in outcomes if isinstance(fit, Fit)]).items():
        groups[trial.prompts.kernel.name, trial.label] = fits
    batches: dict[str, list[float]] = {}
    for job, outcome in zip(done, outcomes, strict=True):
        if isinstance(job, RidgeTrial) and not isinstance(outcome, Fit):
            batches.setdefault(job.label, []).append(outcome)
    found: list[CorrelatedRow] = []
    scale = Scale.of(parameters.d)
    for xi, pair in _curve(parameters).items():
        for trial, curve in zip(pair, (CORRELATED, SHORTER), strict=True):
            errors = [fit.icl for fit in groups[trial.prompts.kernel.name, trial.label]]
            found.append(simulated("A", trial, errors, curve=curve, x=xi))
            if curve == CORRELATED:
                measured = [scale.length(error) for error in errors]
                found.append(simulated("B", trial, measured, curve=curve, x=xi, measured="length"))
    for (family, k2), trial in _kernels(parameters).items():
        errors = [fit.icl for fit in groups[trial.prompts.kernel.name, trial.label]]
        found.append(simulated("C", trial, errors, curve=family, x=k2))
        found.append(simulated("D", trial, batches[trial.label], curve=family, x=k2, measured="ridge"))
    return found + _lines(parameters, scale) + _published()


@dataclass(frozen=True)
class Scale:
    """Errors of theory at finite d for independent prompts of every length: a ruler for effective lengths."""

    lengths: Floats
    errors: Floats

    @classmethod
    def of(cls, d: int) -> "Scale":
        """Return the ruler of the experiment at dimension d."""
        longest = 2 * point_of(d).context_length
        each = np.arange(max(2, d // 8), longest + 1)
        law = finite_size(
            d=d, tau=LETEY2026_TAU, kappa=LETEY2026_KAPPA, rho=LETEY2026_RHO, context_length=each, tasks=TASKS
        )
        return cls(each.astype(np.float64), law.icl)

    def length(self, error: float) -> float:
        """Return the length of independent context that has this error (which decreases with length)."""
        return float(np.interp(-error, -self.errors, self.lengths))

    def error(self, length: float) -> float:
        """Return the error at a length, between two whole ones."""
        return float(np.interp(length, self.lengths, self.errors))


def _lines(parameters: EffectiveLength, scale: Scale) -> list[CorrelatedRow]:
    d, point = parameters.d, point_of(parameters.d)
    found = []
    places = sorted({*np.linspace(0.0, max(lengths(parameters)), 61).tolist(), *lengths(parameters)})
    chains = [Kernel.exponential(xi, point.context_length) for xi in places]
    at_d = finite_size(d=d, tau=LETEY2026_TAU, kappa=LETEY2026_KAPPA, rho=LETEY2026_RHO, kernel=chains, tasks=TASKS).icl
    for xi, chain, value in zip(places, chains, at_d.tolist(), strict=True):
        prompts = Prompts(kernel=chain, query="independent")
        effective = float(prompts.kernel.effective_length(point.rho))
        found += [
            predicted("A", point, prompts, curve=CORRELATED, x=xi),
            other("A", point, prompts, curve=CORRELATED, x=xi, value=value, measured="icl", d=d),
            other("A", point, prompts, curve=SHORTER, x=xi, value=scale.error(effective), measured="icl", d=d),
            other("B", point, prompts, curve=CORRELATED, x=xi, value=effective, measured="length"),
        ]
    for k2 in np.linspace(1.0, max(levels(parameters)), 29).tolist():
        law = float(correlated_context(**point.ratios(), k0=0.0, k1=0.0, k2=k2).icl)
        effective = point.context_length * (1 + point.rho) / (k2 + point.rho)
        short = ridge_error(np.ones(point.context_length), d * point.context_length / effective, point.rho)
        found += [
            other("C", point, curve=CORRELATED, x=k2, value=law, measured="icl"),
            other("C", point, curve=SHORTER, x=k2, value=scale.error(effective), measured="icl", d=d),
            other("D", point, curve=SHORTER, x=k2, value=short, measured="ridge"),
        ]
        for family in FAMILIES:
            kernel = kernel_of(family, k2, point.context_length)
            value = ridge_error(np.linalg.eigvalsh(kernel.matrix()), d, point.rho)
            found.append(other("D", point, curve=family, x=k2, value=value, measured="ridge"))
    return found


def _published() -> list[CorrelatedRow]:
    point = point_of(LETEY2026_D)
    return [
        quoted("A", point, curve=curve, x=xi, value=value, query="independent")
        for curve, name in ((CORRELATED, "independent"), (SHORTER, SHORTER))
        for xi, value in zip(LETEY2026_XI, LETEY2026_ICL[name], strict=True)
    ]
