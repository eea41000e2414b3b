"""Resolvent traces of the sample task covariance A_k = (1/k) sum w w^T, whose spectrum is Marchenko-Pastur."""

from dataclasses import dataclass

import numpy as np

from icltheory.points import Floats


@dataclass(frozen=True)
class Traces:
    r"""Normalised traces :math:`t_{ij} = \frac1d \mathrm{tr}\,A_k^i (A_k + z)^{-j}` in the limit d -> infinity.

    All of them follow from the one number :math:`t_{11}`, without subtraction of nearly equal terms, so that each
    is accurate to rounding for every z > 0 and every kappa, including ``inf`` (where :math:`A_k = I`).

    Attributes
    ----------
    t02, t12, t22 : array
        Second-order traces.
    excess : array
        ``t02 - t12``, which vanishes like 1/kappa.
    noise_excess : array
        ``t12 - t22``, which vanishes like 1/kappa.
    """

    t02: Floats
    t12: Floats
    t22: Floats
    excess: Floats
    noise_excess: Floats


def resolvent(z: Floats, kappa: Floats) -> tuple[Floats, Floats]:
    r"""Return :math:`M(z) = \lim \frac1d \mathrm{tr}\,(A_k + z)^{-1}` and -M'(z), for z > 0 and kappa in (0, inf].

    M is the positive root of :math:`(z/\kappa) M^2 + b M - 1 = 0` with :math:`b = z + 1 - 1/\kappa`, taken in the
    form that adds rather than subtracts (Lu et al. 2025, their Marchenko-Pastur function), and
    :math:`-M' = M (1 + M/\kappa)/D` with :math:`D^2 = b^2 + 4z/\kappa`.
    """
    inverse = 1.0 / kappa
    b = z + 1.0 - inverse
    discriminant = np.hypot(b, 2.0 * np.sqrt(z * inverse))
    total = np.abs(b) + discriminant
    # inverse > 1 wherever the second branch is taken, so 2 z inverse is positive there
    m = np.where(b >= 0, 2.0 / total, total / np.where(b >= 0, 1.0, 2.0 * z * inverse))
    return m, m * (1.0 + m * inverse) / discriminant


def traces(z: Floats, kappa: Floats) -> Traces:
    r"""Return every trace that the theory needs, at z > 0.

    With :math:`t = t_{11}` the self-consistent equation reads :math:`z t = (1 - t)(1 - t/\kappa)`; its discriminant
    D gives :math:`1 - t^2/\kappa = tD`, and differentiation gives the rest.
    """
    inverse = 1.0 / kappa
    discriminant = np.hypot(z + 1.0 - inverse, 2.0 * np.sqrt(z * inverse))
    t = 2.0 / (z + 1.0 + inverse + discriminant)
    m, t02 = resolvent(z, kappa)
    return Traces(
        t02=t02,
        t12=t / discriminant,
        t22=t * (1.0 + (1.0 - 2.0 * t) * inverse) / discriminant,
        excess=t * (m * inverse) * (2.0 + m * inverse) / discriminant,
        noise_excess=t * (2.0 * t - 1.0) * inverse / discriminant,
    )
