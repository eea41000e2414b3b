"""Predictions: errors in closed form, from ratios to risks in microseconds."""

from icltheory.theory import limits
from icltheory.theory.alignment import AlignmentTable, alignment_kernel, alignment_table, rank_correlations
from icltheory.theory.bayes import BayesDiscreteRisk, bayes_discrete, bayes_ridge
from icltheory.theory.bayes_finite import BayesFiniteRisk, bayes_discrete_finite
from icltheory.theory.best_ridge import optimal_ridge
from icltheory.theory.boundary import NonMonotone, non_monotone_boundary
from icltheory.theory.correlated import correlated_context, query_gain
from icltheory.theory.finite_size import finite_size
from icltheory.theory.kernel_statistics import CorrelationWarning
from icltheory.theory.linear_attention import LinearAttentionRisk, linear_attention
from icltheory.theory.nearest_task import nearest_task, nearest_task_exponent
from icltheory.theory.online import OnlineCurve, online
from icltheory.theory.online_edge import stability_edge
from icltheory.theory.online_limit import online_limit
from icltheory.theory.optimum import Optimum, StationaryPoints, optimal_context_length, stationary_points
from icltheory.theory.other_context import ContextGain, optimal_test_context_length, other_context_length
from icltheory.theory.task_covariance import TaskCovarianceRisk, task_covariance

__all__ = [
    "AlignmentTable",
    "BayesDiscreteRisk",
    "BayesFiniteRisk",
    "ContextGain",
    "CorrelationWarning",
    "LinearAttentionRisk",
    "NonMonotone",
    "OnlineCurve",
    "Optimum",
    "StationaryPoints",
    "TaskCovarianceRisk",
    "alignment_kernel",
    "alignment_table",
    "bayes_discrete",
    "bayes_discrete_finite",
    "bayes_ridge",
    "correlated_context",
    "finite_size",
    "limits",
    "linear_attention",
    "nearest_task",
    "nearest_task_exponent",
    "non_monotone_boundary",
    "online",
    "online_limit",
    "optimal_context_length",
    "optimal_ridge",
    "optimal_test_context_length",
    "other_context_length",
    "query_gain",
    "rank_correlations",
    "stability_edge",
    "stationary_points",
    "task_covariance",
]
