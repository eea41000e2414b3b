"""The error of a trained model on prompts of another length than it was trained on."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import Floats, Risk, check
from icltheory.theory.linear_attention import linear_attention
from icltheory.theory.rational import check_target
from icltheory.theory.task_spectrum import traces


def other_context_length(
    *,
    tau: ArrayLike,
    alpha: ArrayLike,
    test_alpha: ArrayLike,
    kappa: ArrayLike,
    rho: ArrayLike,
    ridge: ArrayLike = 0.0,
) -> Risk[Floats]:
    r"""Predict the errors of linear attention trained at context length alpha d and tested at test_alpha d.

    Only the covariance of the test summaries changes, :math:`R_t = A_t + x_t` with :math:`x_t = (1+\rho)/\alpha_t`
    (:math:`A_t = I` for fresh tasks, :math:`A_k` for those of pretraining), so that each error is an affine function
    of :math:`1/\alpha_t`:

    .. math::
        e(\alpha_t) = e(\alpha) + (x_t - x)\, W, \qquad
        W = \mathrm{trd}\,\bar\Gamma^2 + \frac{e_{IDG}}\tau\, \mathrm{trd}\,R G^2 = t_{22} + \frac{e_{IDG}}\tau
        (t_{12} + x t_{02}) \ge 0 ,

    with the notation of `linear_attention`; e_IDG is that at alpha, and W the same for both errors.

    Parameters
    ----------
    tau, alpha, kappa, rho, ridge : array_like
        The training, as in `linear_attention`.
    test_alpha : array_like
        Context length/d of the test prompts; ``math.inf`` is the limit of endless test contexts.

    Returns
    -------
    Risk
        Of arrays of the broadcast shape; `train` is that of training. ``inf`` at tau = 1 and ridge 0.

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed.

    References
    ----------
    Lu, Letey, Zavatone-Veth, Maiti, Pehlevan, PNAS 122(28), 2025 (arXiv:2405.11751), whose formulas allow the test
    distribution to differ; Letey et al., arXiv:2509.26551, for unequal context lengths.

    Examples
    --------
    >>> import icltheory as icl
    >>> icl.theory.other_context_length(tau=2.0, alpha=1.0, test_alpha=[1.0, 10.0], kappa=0.5, rho=0.01).icl.round(4)
    array([1.234 , 0.8687])
    """
    lengths = check("test_alpha", test_alpha)
    law = linear_attention(tau=tau, alpha=alpha, kappa=kappa, rho=rho, ridge=ridge)
    x, weight = _weight(tau, alpha, kappa, rho, law.effective_ridge, law.idg)
    change = (1.0 + check("rho", rho)) / lengths - x
    with np.errstate(invalid="ignore"):  # inf - inf at tau = 1, ridge 0
        icl = np.where(np.isinf(law.icl), np.inf, law.icl + change * weight)
        idg = np.where(np.isinf(law.idg), np.inf, law.idg + change * weight)
    gap, train = np.broadcast_arrays(law.gap, law.train, icl)[:2]
    return Risk(icl=icl, idg=idg, train=train.copy(), gap=gap.copy())


def _weight(
    tau: ArrayLike, alpha: ArrayLike, kappa: ArrayLike, rho: ArrayLike, xi: Floats, idg: Floats
) -> tuple[Floats, Floats]:
    """Return x and W."""
    x = (1.0 + check("rho", rho)) / check("alpha", alpha)
    t = traces(x + xi, check("kappa", kappa))
    return x, np.asarray(t.t22 + idg / check("tau", tau) * (t.t12 + x * t.t02))


@dataclass(frozen=True, kw_only=True)
class ContextGain:
    """What longer test prompts are worth to a trained model.

    Attributes
    ----------
    value : array
        The best context length/d of test prompts: ``inf`` everywhere (see `optimal_test_context_length`).
    risk : array
        The error in that limit.
    gain : array
        Error at the training context length minus `risk`: never negative.
    """

    value: Floats
    risk: Floats
    gain: Floats


def optimal_test_context_length(
    *,
    tau: ArrayLike,
    alpha: ArrayLike,
    kappa: ArrayLike,
    rho: ArrayLike,
    ridge: ArrayLike = 0.0,
    target: str = "icl",
) -> ContextGain:
    r"""Return the best context length of test prompts for a model trained at alpha: as long as possible, always.

    For a fixed :math:`\Gamma` the error is an affine function of the reciprocal of the test context length with a
    coefficient that is a mean square, hence not negative, in this limit (`other_context_length`) and, exactly, at
    finite d (`icltheory.simulate.exact_error`: the noise of a mean over independent examples). So the harm that long
    contexts can do (`icltheory.theory.optimal_context_length`) is done in training alone: longer prompts at test time
    never hurt a trained model. What they gain is

    .. math:: gain = \frac{1+\rho}\alpha\, W .

    Parameters
    ----------
    tau, alpha, kappa, rho, ridge : array_like
        The training, as in `linear_attention`.
    target : {"icl", "idg"}
        Error on fresh or on the pretraining tasks.

    Returns
    -------
    ContextGain

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed.

    Examples
    --------
    >>> import icltheory as icl
    >>> best = icl.theory.optimal_test_context_length(tau=2.0, alpha=1.0, kappa=0.5, rho=0.01)
    >>> float(best.value), round(float(best.risk), 4), round(float(best.gain), 4)
    (inf, 0.8281, 0.4059)
    """
    which = check_target(target)
    law = linear_attention(tau=tau, alpha=alpha, kappa=kappa, rho=rho, ridge=ridge)
    x, weight = _weight(tau, alpha, kappa, rho, law.effective_ridge, law.idg)
    at_training = getattr(law, which)
    gain = np.asarray(x * weight)
    endless = np.isinf(at_training)
    risk = np.where(endless, np.inf, at_training - np.where(endless, 0.0, gain))
    return ContextGain(value=np.full(risk.shape, np.inf), risk=risk, gain=gain)
