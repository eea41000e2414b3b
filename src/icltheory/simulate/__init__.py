"""Simulations at finite size: exact prompts, a fast fit, exact errors."""

from icltheory.simulate.error import exact_error
from icltheory.simulate.run import Simulation, linear_attention
from icltheory.simulate.solve import SolverError, SolverReport, ridge_regression

__all__ = ["Simulation", "SolverError", "SolverReport", "exact_error", "linear_attention", "ridge_regression"]
