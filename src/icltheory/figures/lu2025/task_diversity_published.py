"""The gap against task diversity (Lu et al. 2025, Fig. 4): the published values, reproduced at their sizes."""

import math
from collections.abc import Sequence

import numpy as np

from icltheory.figures.figure import Claim
from icltheory.figures.lu2025.task_diversity_data import RHO, GapRow, pick
from icltheory.figures.lu2025.task_diversity_rows import predicted
from icltheory.figures.published import LU2025, LU2025_FIG4_D, LU2025_FIG4_RUNS
from icltheory.points import Floats

ALLOWED = 3.0  # standard errors
_SOURCE = f"{LU2025}, Fig. 4"
_SETTING = f"d = {LU2025_FIG4_D}, alpha = tau = 10, rho = {RHO:g}"


def claim_published_linear(rows: Sequence[GapRow]) -> Claim:
    """Take the spread of the published runs for ours as well: there are more of them."""
    ours = pick(rows, "B", "simulation", estimator="linear attention")
    theirs = pick(rows, "B", "published", estimator="linear attention")
    off, from_law, used = [], [], []
    for own, other in zip(ours, theirs, strict=True):
        off.append((own.value - other.value) / (other.spread * math.sqrt(1 / (own.seeds or 1) + 1 / LU2025_FIG4_RUNS)))
        law, limit = predicted(other)
        from_law.append((law - other.value) / other.error)
        used.append(abs(law - other.value) / (ALLOWED * other.error + (law / limit - 1) ** 2 * law))
    worst = int(np.argmax(np.abs(off)))
    return Claim(
        statement="The published gaps of linear attention are reproduced at the published sizes",
        source=_SOURCE,
        expected=f"{_SETTING}, floor(kappa d) tasks on the sphere: each within {ALLOWED:g} standard errors (of the "
        f"difference, from the printed spread over {LU2025_FIG4_RUNS} runs); the finite-size theory within as many of "
        "theirs + c^2 theory, with c the relative change that finite d makes",
        measured=f"{len(off)} values, root mean square {_rms(off):.2f} standard errors, largest {off[worst]:+.1f} "
        f"(kappa = {ours[worst].kappa:.3g}: {ours[worst].value:.4g} against {theirs[worst].value:.4g}); of the "
        f"finite-size theory {_rms(from_law):.2f} and {max(from_law, key=abs):+.1f}, {max(used):.0%} of that allowance",
        holds=abs(off[worst]) < ALLOWED and max(used) < 1,
    )


def claim_published_bayes(rows: Sequence[GapRow]) -> Claim:
    """Their error is not printed: it is taken from the scatter of their values about a line in log kappa of their own.

    So it does not depend on ours, and an offset or a trend of the difference can fail.
    """
    theirs = pick(rows, "B", "published", estimator="dMMSE")
    logs = np.log([row.kappa for row in theirs])
    values = np.array([row.value for row in theirs])
    scatter = _scatter(logs, values)
    # of all but one, to judge that one by
    others = np.array([_scatter(np.delete(logs, i), np.delete(values, i)) for i in range(len(values))])
    found = {
        law: _compare(pick(rows, "B", "simulation", tasks=law, estimator="dMMSE"), values, logs, scatter, others)
        for law in ("gaussian", "sphere")
    }
    size, offset, trend, largest = found["gaussian"]
    return Claim(
        statement="The published gaps of dMMSE are reproduced at the published sizes, with Gaussian tasks",
        source=_SOURCE,
        expected=f"{_SETTING}: the mean difference, its trend in log kappa and each difference are within {ALLOWED:g} "
        f"standard errors of 0; no errors are printed, and {scatter:.3f} a value is what they scatter about a line in "
        "log kappa (each is judged by the scatter of the others)",
        measured=f"mean difference {size:+.3f} ({offset:+.1f} standard errors), trend {trend:+.1f}, largest of "
        f"{len(values)} {largest:.1f}; with tasks on the sphere {found['sphere'][0]:+.3f} ({found['sphere'][1]:+.1f}), "
        f"{found['sphere'][2]:+.1f} and {found['sphere'][3]:.1f}",
        holds=max(abs(offset), abs(trend), largest) < ALLOWED,
    )


def _scatter(logs: Floats, values: Floats) -> float:
    """Return the standard deviation of values about the straight line that fits them best."""
    residual = values - np.polyval(np.polyfit(logs, values, 1), logs)
    return math.sqrt(float(residual @ residual) / (len(values) - 2))


def _compare(
    ours: Sequence[GapRow], theirs: Floats, logs: Floats, scatter: float, others: Floats
) -> tuple[float, float, float, float]:
    """Return the mean of ours - theirs; then it, the trend and the largest difference in standard errors."""
    difference = np.array([row.value for row in ours]) - theirs
    own = math.sqrt(float(np.mean([row.error**2 for row in ours])))
    error, centred = math.hypot(scatter, own), logs - logs.mean()
    trend = float(centred @ difference) / (error * float(np.linalg.norm(centred)))
    mean = float(difference.mean())
    largest = float(np.max(np.abs(difference) / np.hypot(others, own)))
    return mean, mean / (error / math.sqrt(len(difference))), trend, largest


def _rms(values: Sequence[float]) -> float:
    return math.sqrt(float(np.mean(np.square(values))))
