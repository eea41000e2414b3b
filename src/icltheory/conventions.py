"""The two parametrisations of in-context linear regression in use, and the way from one to the other."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import Floats, check, whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

ConventionName = Literal["scaled", "unscaled"]


@dataclass(frozen=True, kw_only=True)
class Convention:
    r"""A parametrisation: tokens and labels are :math:`d^p` times ours, tasks are the same.

    With x, y, rho in our convention, theirs has

    .. math:: x' = d^p x , \qquad y' = d^p y , \qquad w' = w , \qquad \sigma = d^p \sqrt\rho , \qquad
              E(y' - \hat y')^2 = d^{2p} E(y - \hat y)^2 ,

    and ridge regression has the penalty :math:`\sigma^2` in place of :math:`\rho`. An error that is reported "per
    dimension", as Raventos et al. do, is one in our convention.

    Attributes
    ----------
    name : {"scaled", "unscaled"}
    statement : str
        The convention in one line, for tables and plots.
    power : float
        p.

    Examples
    --------
    Raventos et al. 2023: d = 8 and noise of variance 1/4 on unscaled labels.

    >>> from icltheory.conventions import SCALED, UNSCALED
    >>> float(UNSCALED.rho(sigma=0.5, d=8)), float(UNSCALED.error(0.1, d=8)), float(SCALED.rho(sigma=0.5, d=8))
    (0.03125, 0.8, 0.25)
    """

    name: ConventionName
    statement: str
    power: float

    def scale(self, d: ArrayLike) -> Floats:
        """Return what our tokens and our labels must be multiplied by to be theirs, at token dimension d."""
        return np.asarray(whole("d", d, "token dimension") ** self.power)

    def rho(self, sigma: ArrayLike, d: ArrayLike) -> Floats:
        """Return our rho, the noise variance where the signal's is 1, from the standard deviation of their noise."""
        return np.asarray(check("sigma", sigma) ** 2 / self._squared(d))

    def sigma(self, rho: ArrayLike, d: ArrayLike) -> Floats:
        """Return the standard deviation of their label noise."""
        return np.asarray(np.sqrt(check("rho", rho) * self._squared(d)))

    def error(self, error: ArrayLike, d: ArrayLike) -> Floats:
        """Return their mean squared error, not divided by d, from ours."""
        return np.asarray(np.asarray(error, dtype=np.float64) * self._squared(d))

    def our_error(self, error: ArrayLike, d: ArrayLike) -> Floats:
        """Return our mean squared error from theirs, not divided by d."""
        return np.asarray(np.asarray(error, dtype=np.float64) / self._squared(d))

    def _squared(self, d: ArrayLike) -> Floats:
        # d**(2p) itself: the square of a square root has lost a digit
        return np.asarray(whole("d", d, "token dimension") ** (2 * self.power))


SCALED = Convention(
    name="scaled",
    statement="x ~ N(0, I/d), |w|² ≈ d: signal variance 1, noise variance rho; errors include the noise",
    power=0.0,
)
UNSCALED = Convention(
    name="unscaled",
    statement="x ~ N(0, I), |w|² ≈ d: signal variance d, noise sd sigma = sqrt(rho d); errors are d times ours",
    power=0.5,
)


def convention(name: str) -> Convention:
    """Return a convention by its name, or raise an error that lists both."""
    found = {each.name: each for each in (SCALED, UNSCALED)}
    if name not in found:
        described = "; ".join(f'"{each.name}": {each.statement}' for each in found.values())
        raise ValueError(f"convention must be one of {get_args(ConventionName)}, got {name!r} ({described})")
    return found[name]


def print_on(picture: "Picture", convention: Convention = SCALED) -> None:
    """Say below a matplotlib figure which convention its numbers are in."""
    picture.supxlabel(f"Convention: {convention.statement}", fontsize=7, color="0.45")
