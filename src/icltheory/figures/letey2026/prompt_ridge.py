"""Classical ridge regression within the prompt, which feels all of a kernel's spectrum: simulation and theory."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from icltheory.bayes import ridge
from icltheory.points import Floats
from icltheory.prompts.kernels import Kernel
from icltheory.simulate.batch import stream

_PROMPTS = 200


@dataclass(frozen=True, kw_only=True)
class RidgeTrial:
    """A batch of prompts of a kernel, with Gaussian tasks and an independent query, solved one by one."""

    kernel: Kernel
    label: str
    d: int
    rho: float
    seed: int = 0
    repetition: int = 0

    def price(self) -> float:
        """Guess the cost, in the units of `Trial`: a triangular factor for every prompt."""
        return float(_PROMPTS * self.kernel.context_length * self.d**2)

    def run(self) -> float:
        """Return the mean squared error on fresh labels; the noise of the query's label enters by its variance."""
        rng = np.random.default_rng(stream(self.seed, self.repetition, self.kernel.name, self.label, self.d, self.rho))
        length, shape = self.kernel.context_length, (_PROMPTS, self.kernel.context_length, self.d)
        x = square_root(self.kernel.matrix()) @ rng.standard_normal(shape) / np.sqrt(self.d)
        task, query = rng.standard_normal((2, _PROMPTS, self.d))
        query /= np.sqrt(self.d)
        y = np.einsum("pld,pd->pl", x, task) + np.sqrt(self.rho) * rng.standard_normal((_PROMPTS, length))
        miss = ridge(x, y, query, self.rho) - np.einsum("pd,pd->p", task, query)
        return float(np.mean(miss**2)) + self.rho


def square_root(matrix: Floats) -> Floats:
    """Return V sqrt(lam) with V diag(lam) V^T the matrix, which need not be of full rank."""
    values, vectors = np.linalg.eigh(matrix)
    root: Floats = vectors * np.sqrt(np.maximum(values, 0.0))
    return root


def ridge_error(eigenvalues: ArrayLike, d: float, rho: float) -> float:
    r"""Return the error of ridge regression with penalty rho on prompts of a kernel, as d goes to infinity.

    With Gaussian tasks it is :math:`\rho\,(1 + m)`, :math:`m = \mathrm{trd}\,(X^\top X + \rho)^{-1}`, and m solves

    .. math:: \frac1m = \rho + \frac1d \sum_i \frac{\lambda_i}{1 + \lambda_i m} ,

    which knows all eigenvalues of K.

    Parameters
    ----------
    eigenvalues : array of shape (l,)
        :math:`\lambda_i \ge 0`, of K.
    d : float
    rho : float
        Label-noise variance, > 0.
    """
    from scipy.optimize import brentq

    spectrum = np.asarray(eigenvalues, dtype=np.float64)

    def excess(m: float) -> float:
        return 1.0 / m - rho - float(np.sum(spectrum / (1.0 + spectrum * m))) / d

    # without tokens m = 1/rho; all of them in full strength give at least 1/(rho + l/d)
    m = brentq(excess, 1.0 / (rho + float(spectrum.sum()) / d), 1.0 / rho, xtol=1e-13, rtol=1e-12)
    return rho * (1.0 + float(m))
