"""Alignment of pretraining and test tasks (Letey et al. 2025): the test covariances, and the simulations to run."""

import math
from dataclasses import asdict, dataclass

import numpy as np

from icltheory.points import Floats, Point
from icltheory.prompts.covariance import low_rank, power_law, spiked
from icltheory.prompts.tasks import moments_of_law
from icltheory.simulate.batch import stream
from icltheory.simulate.error import exact_error
from icltheory.simulate.run import linear_attention

TAU, ALPHA, RHO = 4.0, 2.0, 0.01
EXPONENT = 0.9
KAPPAS = (0.25, 0.5, 1.0, 2.0, 4.0)
MAIN_KAPPA = 1.0  # of the panels that show the error against each measure
TRAINING_EXPONENTS = (0.0, 0.5, 1.4, 2.0, 3.0)  # besides EXPONENT
TRAINING_KAPPAS = (0.25, 4.0)
MATCHED, STEEPEST = "power law 0.9", "power law 2.5"
SEEN, UNSEEN = "leading 50 %", "trailing 50 %"  # of tasks confined to the leading half of the directions

GROUPS = (
    "power law",
    "reversed",
    "shuffled",
    "rotated",
    "leading part",
    "trailing part",
    "one direction",
    "both ends",
)


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """Parameters: the dimension and its seeds, seeds at half that dimension, and those of the last panel."""

    d: int
    seeds: int
    half_seeds: int
    diversity_seeds: int


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One pretraining set, whose model is tested on every covariance of the family, exactly.

    Its tasks follow a power law, or, if the exponent is None, lie in the leading half of the directions.
    """

    point: Point
    train_exponent: float | None
    seed: int = 0
    repetition: int = 0

    def price(self) -> float:
        """Guess the cost: all trials are far from the threshold, and take about as many steps."""
        return float(self.point.n_sequences * self.point.n_parameters)

    def run(self) -> tuple[float, ...]:
        """Return the ICL errors on the family, in its order."""
        point = self.point
        sim = linear_attention(
            d=point.d,
            n_sequences=point.n_sequences,
            context_length=point.context_length,
            n_tasks=point.n_tasks,
            rho=point.rho,
            tasks="gaussian",
            assignment="balanced",
            task_covariance=training(point.d, self.train_exponent),
            rng=stream(self.seed, self.repetition, sorted(asdict(point).items()), self.train_exponent),
        )
        return tuple(
            exact_error(
                sim.gamma, moments_of_law("gaussian", point.d, covariance=covariance), point.context_length, point.rho
            )
            for _, covariance in family(point.d).values()
        )


def training(d: int, exponent: float | None) -> Floats:
    """Return the covariance of the pretraining tasks."""
    return low_rank(d, round(d / 2)) if exponent is None else power_law(d, exponent)


def family(d: int) -> dict[str, tuple[str, Floats]]:
    """Return name -> (group, covariance) of the test tasks: all of signal variance 1, in the basis of training."""
    tests: dict[str, tuple[str, Floats]] = {}
    rng = np.random.default_rng(2025)
    for exponent in (0.0, 0.5, EXPONENT, 1.5, 2.5):
        tests[f"power law {exponent:g}"] = ("power law", power_law(d, exponent))
    for exponent in (0.5, EXPONENT, 1.5, 2.5):
        tests[f"reversed {exponent:g}"] = ("reversed", power_law(d, exponent)[::-1])
    for exponent in (EXPONENT, 1.5):
        for copy, irrational in (("a", math.sqrt(5)), ("b", math.sqrt(2))):
            # an order that is even over all directions, and the same at every d
            order = np.argsort(np.argsort((np.arange(1, d + 1) * irrational) % 1.0))
            tests[f"shuffled {exponent:g}{copy}"] = ("shuffled", power_law(d, exponent)[order])
    for exponent in (EXPONENT, 1.5):
        turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
        tests[f"rotated {exponent:g}"] = ("rotated", (turn * power_law(d, exponent)) @ turn.T)
    for percent in (10, 25, 50, 75):
        rank = max(1, round(percent / 100 * d))
        tests[f"leading {percent} %"] = ("leading part", low_rank(d, rank))
        tests[f"trailing {percent} %"] = ("trailing part", low_rank(d, rank)[::-1])
    for percent in (0, 10, 30, 60):
        # nine tenths of the variance in one direction
        tests[f"single {percent} %"] = ("one direction", np.roll(spiked(d, 9.0 * d), round(percent / 100 * d)))
    tenth = low_rank(d, max(1, round(0.1 * d)))
    for percent in (20, 40, 60, 80):
        tests[f"two ends {percent} %"] = ("both ends", percent / 100 * tenth + (1 - percent / 100) * tenth[::-1])
    return tests


def jobs(parameters: Alignment) -> list[Trial]:
    """Return all pretraining sets to be drawn and fitted."""

    def repeat(d: int, seeds: int, kappa: float, exponent: float | None) -> list[Trial]:
        point = point_at(d, kappa)
        return [Trial(point=point, train_exponent=exponent, repetition=i) for i in range(seeds)]

    wanted: list[Trial] = []
    for kappa in KAPPAS:
        wanted += repeat(parameters.d, parameters.seeds, kappa, EXPONENT)
        wanted += repeat(parameters.d // 2, parameters.half_seeds, kappa, EXPONENT)
        wanted += repeat(parameters.d, parameters.diversity_seeds, kappa, None)
    for kappa in TRAINING_KAPPAS:
        for exponent in TRAINING_EXPONENTS:
            wanted += repeat(parameters.d, parameters.seeds, kappa, exponent)
    return wanted


def point_at(d: int, kappa: float) -> Point:
    """Return the experiment with that many tasks at a dimension."""
    return Point.of(d=d, tau=TAU, alpha=ALPHA, kappa=kappa, rho=RHO)
