"""Step sizes of one-pass training, constant or scheduled: checked once, for theory and simulation."""

import math
from collections.abc import Callable
from typing import TypeAlias

from icltheory.points import check

StepSize: TypeAlias = float | Callable[[float], float]


def as_schedule(step_size: StepSize) -> Callable[[float], float]:
    """Return eta(t) as a function whose values are checked; a number becomes a constant function."""
    if not callable(step_size):
        array = check("step_size", step_size)
        if array.ndim:
            raise TypeError(f"step_size must be one number or a function of t here, got an array {array.shape}")
        constant = float(array)
        return lambda _time: constant

    def schedule(time: float) -> float:
        value = step_size(time)
        try:
            rate = float(value)
        except (TypeError, ValueError):
            raise TypeError(f"step_size(t) must be a number, got {value!r} at t = {time:g}") from None
        if not (rate >= 0 and math.isfinite(rate)):
            raise ValueError(f"step_size(t) must be >= 0 and finite, got {rate:g} at t = {time:g}")
        return rate

    return schedule
