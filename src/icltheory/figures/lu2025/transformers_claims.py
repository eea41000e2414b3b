"""Trained transformers (Fig. 5 of Lu et al. 2025): the claims."""

from collections.abc import Sequence

from icltheory.figures.figure import Claim
from icltheory.figures.lu2025.transformers_data import LINEAR, PANELS, TITLES, Transformers
from icltheory.figures.published import LU2025
from icltheory.figures.trained import TrainedRow, pick

_NEAR_ONE = (0.7, 1.7)
_BAND = 0.3  # of the exponent about 2
_FEWEST = 3  # dimensions that make an exponent


def claims(parameters: Transformers, rows: Sequence[TrainedRow]) -> list[Claim]:
    """Measure all claims."""
    return [_peak(rows, d) for d in parameters.linear.ds] + [
        _exponent(parameters, rows, model) for model in parameters.searches()
    ]


def _peak(rows: Sequence[TrainedRow], d: int) -> Claim:
    curve = pick(rows, PANELS[LINEAR], kind="training", measured="icl", d=d)
    top = max(curve, key=lambda row: row.value)
    first, last = curve[0], curve[-1]
    above = [top.value - end.value > 2.0 * (top.error**2 + end.error**2) ** 0.5 for end in (first, last)]
    return Claim(
        statement=f"Full linear attention, trained at d = {d}, has its largest ICL error near tau = 1",
        source=f"{LU2025}, Fig. 5A",
        expected=f"largest at tau from {_NEAR_ONE[0]:g} to {_NEAR_ONE[1]:g}, above both ends by two standard errors",
        measured=f"{top.value:.2f} ± {top.error:.2f} at tau = {top.x:.2f}; {first.value:.2f} ± {first.error:.2f} at "
        f"{first.x:.2f} and {last.value:.2f} ± {last.error:.2f} at {last.x:.2f}",
        holds=_NEAR_ONE[0] <= top.x <= _NEAR_ONE[1] and all(above),
    )


def _exponent(parameters: Transformers, rows: Sequence[TrainedRow], model: str) -> Claim:
    (fit,) = pick(rows, "D", model=model, measured="exponent")
    ds = parameters.searches()[model].ds
    points = pick(rows, "D", model=model, measured="threshold")
    enough = len(ds) >= _FEWEST
    found = ", ".join(f"{row.value:.0f} ± {row.error:.0f}" for row in points)
    return Claim(
        statement=f"The interpolation threshold of {TITLES[model]} grows like d^2",
        source=f"{LU2025}, Fig. 5D",
        expected=f"exponent 2 ± {_BAND:g}",
        measured=f"exponent {fit.value:.2f} ± {fit.error:.2f}; n* = {found} at d = {', '.join(map(str, ds))}"
        + ("" if enough else f"; {_FEWEST} dimensions would make an exponent"),
        holds=abs(fit.value - 2.0) <= _BAND if enough else None,
    )
