"""icltheory: predict, simulate and reproduce in-context learning.

>>> import icltheory as icl
>>> law = icl.theory.linear_attention(tau=1.5, alpha=1.0, kappa=0.5, rho=0.01)
>>> sim = icl.simulate.linear_attention(d=20, tau=1.5, alpha=1.0, kappa=0.5, rho=0.01, rng=0)
"""

from icltheory import bayes, figures, probing, prompts, simulate, theory, train
from icltheory.points import Point, Risk
from icltheory.probing.measure import probe
from icltheory.prompts.kernels import Kernel

__version__ = "0.1.0"

__all__ = [
    "Kernel",
    "Point",
    "Risk",
    "__version__",
    "bayes",
    "figures",
    "probe",
    "probing",
    "prompts",
    "simulate",
    "theory",
    "train",
]
