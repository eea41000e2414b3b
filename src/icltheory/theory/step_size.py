"""Step sizes of one-pass training, and the times at which it is looked at: checked once, for theory and simulation."""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from icltheory.points import Floats

StepSize: TypeAlias = float | Callable[[float], float]


def check_times(t: Any) -> Floats:
    """Return times, in sequences/d^2, as a float array, or raise an error that names them."""
    return _numbers("t", t, ">= 0 and finite", "t = sequences seen/d^2", lambda value: value >= 0)


def check_constant(step_size: Any) -> Floats:
    """Return constant step sizes as a float array, or raise an error that names them."""
    return _numbers("step_size", step_size, "> 0 and finite, or a function of t", "eta", lambda value: value > 0)


def as_schedule(step_size: StepSize) -> Callable[[float], float]:
    """Return eta(t) as a function whose values are checked; a number becomes a constant function."""
    if not callable(step_size):
        array = check_constant(step_size)
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


def _numbers(name: str, value: Any, allowed: str, meaning: str, rule: Callable[[Floats], Any]) -> Floats:
    array = np.asarray(value)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be a number or an array of numbers, got {value!r}")
    good = rule(array) & np.isfinite(array)
    if not np.all(good):
        raise ValueError(f"{name} must be {allowed}, got {float(array[~good].flat[0]):g} ({meaning})")
    return array.astype(np.float64)
