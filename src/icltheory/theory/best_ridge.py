"""The ridge at which the error of linear attention is least."""

import math

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import check
from icltheory.theory.bernstein import roots, slope
from icltheory.theory.linear_attention import linear_attention
from icltheory.theory.optimum import Optimum, least, padded
from icltheory.theory.rational import RidgeCurve, check_target


def optimal_ridge(
    *, tau: ArrayLike, alpha: ArrayLike, kappa: ArrayLike, rho: ArrayLike, target: str = "icl"
) -> Optimum:
    r"""Return the ridge lambda at which the error of linear attention is least.

    Along the ridge, too, the error is a ratio of polynomials in :math:`t = \mathrm{trd}\,A_k(A_k+x+\xi)^{-1}`
    (`icltheory.theory.rational.RidgeCurve`), so that every local minimum is found and their number is certain. With
    endlessly many tasks the answer is that of ridge regression towards the oracle with an isotropic prior,

    .. math:: \lambda^\star = \frac{(1+x)\,[\rho(1+x) + x]}{\tau}, \qquad x = \frac{1+\rho}\alpha .

    At the best ridge of every context length the error was found to fall with the context length wherever it was
    looked at (figure ``lu2025/non-monotonicity``), unlike at ridge 0.

    Parameters
    ----------
    tau, alpha, kappa, rho : array_like
        Broadcast together; tau and kappa may be ``math.inf``.
    target : {"icl", "idg"}
        Error on fresh or on the pretraining tasks.

    Returns
    -------
    Optimum
        In the range (0, inf) of the ridge; `value` 0 means that any ridge does harm, ``inf`` that the model had better
        predict 0.

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed.

    Examples
    --------
    >>> import icltheory as icl
    >>> best = icl.theory.optimal_ridge(tau=1.0, alpha=10.0, kappa=[0.5, 2.0], rho=0.01)
    >>> best.value.round(4), best.risk.round(4), best.stationary.certified
    (array([0.2296, 0.12  ]), array([0.6434, 0.4123]), array([ True,  True]))
    """
    which = check_target(target)
    arrays = np.broadcast_arrays(check("tau", tau), check("alpha", alpha), check("kappa", kappa), check("rho", rho))
    shape = arrays[0].shape
    tau, alpha, kappa, rho = (np.ravel(array) for array in arrays)
    curve = RidgeCurve.of(tau, alpha, kappa, rho, which)
    found = roots(*slope(curve.numerator, curve.denominator))
    owner = found.owner
    below, above = curve.ridge(found.high, owner), curve.ridge(found.low, owner)  # the ridge falls as s grows
    value = np.sqrt(below) * np.sqrt(above)
    law = linear_attention(tau=tau[owner], alpha=alpha[owner], kappa=kappa[owner], rho=rho[owner], ridge=value)
    stationary = padded(shape, owner, value, below, above, getattr(law, which), found.rising, found.certified)
    bare = getattr(linear_attention(tau=tau, alpha=alpha, kappa=kappa, rho=rho), which)
    return least(stationary, (0.0, math.inf), (bare.reshape(shape), (1.0 + rho).reshape(shape)))
