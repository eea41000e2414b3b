"""The interpolation threshold of a model: up to how many sequences it can be trained to no error at all."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from icltheory.train.config import Training
from icltheory.train.loop import train

_LIMIT = 2**20  # sequences at which the search gives up


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """An interpolation threshold and the trainings that it was found by.

    Attributes
    ----------
    n : float
        The threshold: the geometric mean of the next two.
    low, high : int
        The largest number of sequences that was interpolated below the smallest that was not.
    trainings : tuple of (int, float, int)
        Sequences, final training error and steps of every training, in the order of the search.
    """

    n: float
    low: int
    high: int
    trainings: tuple[tuple[int, float, int], ...]


def interpolation_threshold(
    training: Training,
    *,
    level: float = 0.02,
    resolution: float = 1.1,
    report: Callable[[int, float], object] | None = None,
) -> Threshold:
    r"""Find the number of sequences n* at which a model's final training error leaves zero.

    **The rule.** A model interpolates n sequences if, at one of its evaluations, the error on the whole training set is
    below ``level * (1 + rho)``, the second factor being the error of always answering 0; training stops there. With
    data sets of one seed, of which a smaller is the beginning of a larger, n is doubled or halved from
    ``training.data.n_sequences`` until the threshold lies between the last two, and then bisected in log n until they
    are within the factor `resolution`. What an optimiser cannot reach in the given steps counts as not interpolated:
    the threshold is that of the model, the optimiser and the number of steps, together.

    Parameters
    ----------
    training : Training
        A fixed data set; its number of sequences is where the search begins.
    level : float
    resolution : float
        More than 1.
    report : function (n, training error)
        Called after every training.

    Raises
    ------
    ValueError
        If the data are fresh sequences, or level or resolution are out of range.
    RuntimeError
        If there is no threshold from 1 to 2^20 sequences.

    Examples
    --------
    >>> from icltheory.train import Data, Optimization, Training, interpolation_threshold
    >>> data = Data(d=4, alpha=1.0, n_sequences=20, rho=0.01)
    >>> fast = Optimization(steps=1500, learning_rate=0.01, validation=0)
    >>> found = interpolation_threshold(Training(data=data, optimization=fast, test=10), resolution=1.5)
    >>> 12 < found.n < 60      # linear attention has d^2 + 2d = 24 parameters
    True
    """
    start = training.data.n_sequences
    if start is None:
        raise ValueError("an interpolation threshold needs a fixed data set to begin with: give n_sequences or tau")
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level}")
    if not 1 < resolution < math.inf:
        raise ValueError(f"resolution must be more than 1 and finite, got {resolution}")
    bound = level * (1.0 + training.data.rho)
    done: list[tuple[int, float, int]] = []

    def interpolates(n: int) -> bool:
        data = replace(training.data, n_sequences=n)
        trained = train(replace(training, data=data, optimization=replace(training.optimization, stop_at=bound)))
        done.append((n, trained.train, trained.step))
        if report is not None:
            report(n, trained.train)
        return trained.train < bound

    low, high = _bracket(interpolates, start)
    while high > low + 1 and high > resolution * low:
        middle = min(max(round(math.sqrt(low * high)), low + 1), high - 1)
        low, high = (middle, high) if interpolates(middle) else (low, middle)
    return Threshold(n=math.sqrt(low * high), low=low, high=high, trainings=tuple(done))


def _bracket(interpolates: Callable[[int], bool], start: int) -> tuple[int, int]:
    n = start
    if interpolates(n):
        while n <= _LIMIT:
            n *= 2
            if not interpolates(n):
                return n // 2, n
    else:
        while n > 1:
            smaller = n // 2
            if interpolates(smaller):
                return smaller, n
            n = smaller
    raise RuntimeError(f"no threshold was found between 1 and {_LIMIT} sequences: the last n was {n}; train longer?")
