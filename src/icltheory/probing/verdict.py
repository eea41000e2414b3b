r"""The verdict in words: whether a predictor memorises its tasks or generalises, and whether that is known.

Thresholds. With :math:`b = f_r - f_d` let s be the position of the predictor f on the line from dMMSE (0) to ridge (1),
and q its squared distance off the line as a share of :math:`E\,b^2`. All are taken to three standard errors.

- Within a quarter of an end (|s| or |s - 1| at most 1/4) it is at that end; otherwise it is between them, or beyond.
  An interval that covers one mark gets both names, and tells nothing if it covers two.
- Off the line by more than half the distance between the ends, q > 1/4, it is not on the line. If it is then still
  nearer to the line than half of ridge's distance from 0, it approximates both, and they are too near to tell.
"""

import math
from dataclasses import dataclass

_SIGMAS = 3.0
END = 0.25
OFF_LINE = 0.25  # half the distance, squared
_ROUNDING = 1e-13  # in units of the signal variance

_ZONES = (
    (-math.inf, -END, "neither"),
    (-END, END, "memorises"),
    (END, 1 - END, "between"),
    (1 - END, 1 + END, "generalises"),
    (1 + END, math.inf, "neither"),
)


@dataclass(frozen=True, kw_only=True)
class Position:
    """What the verdict rests on: (value, standard error) each, for the query on fresh tasks."""

    n_prompts: int
    has_list: bool
    position: tuple[float, float]
    off_line: tuple[float, float]
    ridge_to_dmmse: tuple[float, float]
    to_ridge: tuple[float, float]
    ridge_power: tuple[float, float]


def verdict(at: Position) -> str:
    """Return one line that begins with the finding and goes on with the numbers behind it."""
    if not at.has_list:
        return (
            "cannot tell: a fresh task for every prompt (kappa = inf) leaves no list of tasks to memorise; the squared "
            f"distance to ridge on fresh tasks is {plus_minus(*at.to_ridge)}"
        )
    between, between_se = at.ridge_to_dmmse
    if not between > _SIGMAS * between_se:
        return (
            f"cannot tell: ridge and dMMSE are not known to differ here, by {plus_minus(between, between_se)} (mean "
            "square on fresh tasks); more prompts, or fewer pretraining tasks, set them apart"
        )
    (off, off_se), (s, se) = at.off_line, at.position
    if off - _SIGMAS * off_se > OFF_LINE:
        return _off_the_line(at)
    if off + _SIGMAS * off_se > OFF_LINE:
        return (
            f"cannot tell: off the line from dMMSE to ridge by {_percent(off, off_se)} of their squared distance on "
            f"fresh tasks; {_wanted(at.n_prompts, off_se, abs(off - OFF_LINE))}"
        )
    low, high = s - _SIGMAS * se, s + _SIGMAS * se
    names = [name for left, right, name in _ZONES if low <= right and high >= left]
    where = f"{plus_minus(s, se)} of the way from dMMSE to ridge on fresh tasks"
    if len(names) > 2:
        return f"cannot tell: {where}; {_wanted(at.n_prompts, se, END)}"
    beyond = " (beyond ridge)" if s > 1 + END else " (beyond dMMSE)" if s < -END else ""
    return f"{' or '.join(names)}: {where}{beyond}, off the line by {_percent(off, off_se)} of their squared distance"


def _off_the_line(at: Position) -> str:
    between, off = at.ridge_to_dmmse[0], at.off_line[0]
    if off * between < OFF_LINE * at.ridge_power[0]:
        return (
            f"cannot tell: ridge and dMMSE are only {between:.2g} apart here (mean square on fresh tasks), and the "
            f"predictor is {off * between:.2g} off the line between them; fewer pretraining tasks set them apart"
        )
    return (
        f"neither: off the line from dMMSE to ridge by {_percent(*at.off_line)} of their squared distance on fresh "
        f"tasks, {plus_minus(*at.to_ridge)} from ridge (mean square; predicting 0 would be {at.ridge_power[0]:.2g})"
    )


def _wanted(n_prompts: int, se: float, margin: float) -> str:
    """Say how many prompts would bring three standard errors within the margin."""
    needed = n_prompts * (_SIGMAS * se / margin) ** 2 if margin > 0 else math.inf
    if not needed < 1e9:
        return "more prompts would not tell"
    step = 10 ** (math.floor(math.log10(needed)) - 1)
    return f"about {math.ceil(needed / step) * step} prompts would tell"


def plus_minus(value: float, se: float) -> str:
    """Return "0.970 ± 0.008", to two figures of the standard error; "-" where there is no value."""
    if not math.isfinite(value):
        return "-"
    if not math.isfinite(se):
        return f"{value:.4g} ± ?"
    if max(abs(value), se) < _ROUNDING:
        return "0 ± 0"
    if se < _ROUNDING * max(abs(value), 1.0):
        return f"{value:.4g} ± 0"
    if se < 1e-6:
        return f"{value:.4g} ± {se:.1g}"
    digits = max(1 - math.floor(math.log10(se)), 0)
    return f"{round(value, digits) + 0.0:.{digits}f} ± {se:.{digits}f}"


def _percent(share: float, se: float) -> str:
    if share + se < 1e-4:
        return "less than 0.01 %"
    return f"{100 * share:.2g} ± {100 * se:.1g} %" if share < 1 else f"{100 * share:.0f} ± {100 * se:.0f} %"
