"""The largest step size at which one-pass training is stable."""

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import Floats, check, whole
from icltheory.theory.task_spectrum import resolvent


def stability_edge(
    *, alpha: ArrayLike, kappa: ArrayLike, rho: ArrayLike, ridge: ArrayLike = 0.0, batch_size: ArrayLike = 1
) -> Floats:
    r"""Return the step size below which the error of one-pass training stays bounded.

    The noise of past gradients feeds back on the error through a kernel in time, whose integral must be below 1:

    .. math:: \int_0^\infty h^2\, \mathrm{trd}\, R^2 e^{-2h(R+\lambda)s}\, ds < 1 \quad\Leftrightarrow\quad
              \eta < \frac{2b}{\mathrm{trd}\, R^2 (R + \lambda)^{-1}} ,

    with b the batch size. Without weight decay that is :math:`2b/(1+x)`, :math:`x = (1+\rho)/\alpha`, whatever
    the number of tasks.

    Parameters
    ----------
    alpha, kappa, rho, ridge, batch_size
        As in `online`; they broadcast.

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed.

    Examples
    --------
    >>> import icltheory as icl
    >>> icl.theory.stability_edge(alpha=[1.0, 10.0], kappa=0.5, rho=0.1).round(4)
    array([0.9524, 1.8018])
    """
    alpha, kappa, rho, ridge, batch = checked(alpha, kappa, rho, ridge, batch_size)
    x = (1.0 + rho) / alpha
    m, _ = resolvent(x + ridge, kappa)
    # trd (a + x)^2/(a + nu), nu = x + lambda, in positive terms: t = trd a/(a+nu), trd a^2/(a+nu) = 1 - nu t
    t = m / (1.0 + m / kappa)
    return np.asarray(2.0 * batch / (t * (1.0 + (1.0 - t) / kappa) + 2.0 * x * t + x * (x * m)))


def checked(
    alpha: ArrayLike, kappa: ArrayLike, rho: ArrayLike, ridge: ArrayLike, batch_size: ArrayLike
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return (alpha, kappa, rho, ridge, batch_size) as float arrays, or raise an error that names the argument."""
    batch = whole("batch_size", batch_size, "sequences in a step")
    return check("alpha", alpha), check("kappa", kappa), check("rho", rho), check("ridge", ridge), batch
