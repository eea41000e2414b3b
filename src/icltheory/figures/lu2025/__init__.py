"""Figures of Lu et al. 2025: in-context learning of linear regression by linear attention."""

from icltheory.figures.lu2025.context_length import context_length
from icltheory.figures.lu2025.double_descent import double_descent
from icltheory.figures.lu2025.non_monotonicity import non_monotonicity
from icltheory.figures.lu2025.task_diversity import task_diversity
from icltheory.figures.lu2025.transformer_diversity import transformer_diversity
from icltheory.figures.lu2025.transformers import transformers

__all__ = [
    "context_length",
    "double_descent",
    "non_monotonicity",
    "task_diversity",
    "transformer_diversity",
    "transformers",
]
