"""Where one-pass training with a constant step size settles."""

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import check
from icltheory.theory.online import OnlineCurve
from icltheory.theory.online_edge import checked, stability_edge
from icltheory.theory.task_spectrum import resolvent, traces


def online_limit(
    *,
    step_size: ArrayLike,
    alpha: ArrayLike,
    kappa: ArrayLike,
    rho: ArrayLike,
    ridge: ArrayLike = 0.0,
    batch_size: ArrayLike = 1,
) -> OnlineCurve:
    r"""Return the errors at which one-pass training with a constant step size settles, t -> infinity.

    With :math:`\eta_\star` the `stability_edge`, :math:`h = \eta/b`, and the errors :math:`e^0` of a fit to infinitely
    many sequences with the same ridge,

    .. math:: e_{IDG} = \frac{e^0_{IDG}}{1 - \eta/\eta_\star} , \qquad
              e_{ICL} - e_{IDG} = e^0_{ICL} - e^0_{IDG} - \frac h2\, e_{IDG}\, \lambda\,
              \mathrm{trd}\,(1 - A_k)(A_k + x + \lambda)^{-1} .

    Without weight decay the noise of the gradients adds the same to both errors, at every step size. Both are ``inf``
    at and above the edge (``stable`` is False there); ``t`` is ``inf``.

    Parameters
    ----------
    step_size : array_like
        :math:`\eta > 0`, constant.
    alpha, kappa, rho, ridge, batch_size
        As in `online`; all broadcast.

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed.

    Examples
    --------
    >>> import icltheory as icl
    >>> icl.theory.online_limit(step_size=[0.1, 0.4, 0.9, 1.0], alpha=1.0, kappa=0.5, rho=0.1).idg.round(4)
    array([0.4595, 0.7091, 7.4774,    inf])
    """
    alpha, kappa, rho, ridge, batch = checked(alpha, kappa, rho, ridge, batch_size)
    eta = check("step_size", step_size)
    edge = stability_edge(alpha=alpha, kappa=kappa, rho=rho, ridge=ridge, batch_size=batch)
    eta, edge, alpha, kappa, rho, ridge, batch = np.broadcast_arrays(eta, edge, alpha, kappa, rho, ridge, batch)
    x = (1.0 + rho) / alpha
    nu, stable = x + ridge, eta < edge
    t = traces(nu, kappa)
    m, _ = resolvent(nu, kappa)
    floor = rho + x * t.t22 + nu * (nu * t.t12)
    idg = np.divide(floor, 1.0 - eta / edge, out=np.full_like(floor, np.inf), where=stable)
    half = np.divide(eta, 2.0 * batch) * np.where(stable, idg, 0.0)
    difference = -half * ridge * (m * (m / kappa) / (1.0 + m / kappa))
    gap = np.where(stable, nu * (nu * t.excess) + difference, np.where(np.isinf(kappa), 0.0, np.nan))
    idg_noise = np.where(stable, idg * (eta / edge), np.inf)
    return OnlineCurve(
        t=np.full_like(idg, np.inf),
        icl=np.where(stable, idg + gap, np.inf),
        idg=idg,
        gap=gap,
        icl_noise=np.where(stable, idg_noise + difference, np.inf),
        idg_noise=idg_noise,
        edge=edge.copy(),
        stable=np.asarray(stable),
    )
