"""The learning rate at every step: a function of the step, so that it has no state to be kept."""

import math

from icltheory.train.config import Optimization

_RISE = 0.3  # of the steps, in one cycle


def learning_rate(optimization: Optimization, step: int) -> float:
    r"""Return the learning rate of a step, counted from 0.

    With peak p, N steps and w of them warm-up, the rate is :math:`p (s+1)/w` at step s < w and then, with
    :math:`u = (s - w)/(N - w)`,

    .. math:: p \ (\text{constant}), \qquad p\,(1 + \cos \pi u)/2 \ (\text{cosine}), \qquad
              p\,(1 - u) \ (\text{one-cycle}, \ w \ge 0.3\,N) .

    Examples
    --------
    >>> from icltheory.train.config import Optimization
    >>> one = Optimization(steps=10, learning_rate=1.0, schedule="one-cycle")
    >>> [round(learning_rate(one, step), 2) for step in range(10)]
    [0.33, 0.67, 1.0, 1.0, 0.86, 0.71, 0.57, 0.43, 0.29, 0.14]
    """
    peak, steps, rise = optimization.learning_rate, optimization.steps, optimization.warmup
    if optimization.schedule == "one-cycle":
        rise = max(rise, round(_RISE * steps))
    if step < rise:
        return peak * (step + 1) / rise
    done = (step - rise) / (steps - rise)
    if optimization.schedule == "cosine":
        return peak * (1.0 + math.cos(math.pi * done)) / 2.0
    return peak * (1.0 - done) if optimization.schedule == "one-cycle" else peak
