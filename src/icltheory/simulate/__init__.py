"""Simulations at finite size: exact prompts, a fast fit, exact errors."""

from icltheory.simulate.decompose import Decomposition, Parts, decompose
from icltheory.simulate.discrete import DiscreteRisk, bayes_discrete
from icltheory.simulate.error import best_gamma, exact_error
from icltheory.simulate.experiment import Simulation
from icltheory.simulate.online import DivergenceError, OnlineSimulation, online
from icltheory.simulate.path import ridge_path
from icltheory.simulate.run import linear_attention, linear_attention_path
from icltheory.simulate.solve import SolverError, SolverReport, ridge_regression

__all__ = [
    "Decomposition",
    "DiscreteRisk",
    "DivergenceError",
    "OnlineSimulation",
    "Parts",
    "Simulation",
    "SolverError",
    "SolverReport",
    "bayes_discrete",
    "best_gamma",
    "decompose",
    "exact_error",
    "linear_attention",
    "linear_attention_path",
    "online",
    "ridge_path",
    "ridge_regression",
]
