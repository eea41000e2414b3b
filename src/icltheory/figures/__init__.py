"""Figures of the papers, each with its data, picture and claims, at three scales."""

import difflib
from typing import Any

from icltheory.figures.extensions import context_length as trained_context_length
from icltheory.figures.extensions import finite_size, online
from icltheory.figures.figure import SCALES, Claim, Figure, Reproduction, Row, Scale
from icltheory.figures.letey2025 import alignment
from icltheory.figures.letey2026 import architectures, concentration, effective_length, query_gain, test_correlation
from icltheory.figures.lu2025 import (
    context_length,
    double_descent,
    non_monotonicity,
    task_diversity,
    transformer_diversity,
    transformers,
)
from icltheory.figures.raventos2023 import transition
from icltheory.figures.reproduce import reproduce, write

FIGURES: dict[str, Figure[Any]] = {
    figure.name: figure
    for figure in (
        double_descent,
        context_length,
        non_monotonicity,
        task_diversity,
        alignment,
        effective_length,
        query_gain,
        concentration,
        test_correlation,
        finite_size,
        online,
        transformers,
        transformer_diversity,
        transition,
        architectures,
        trained_context_length,
    )
}

__all__ = ["FIGURES", "SCALES", "Claim", "Figure", "Reproduction", "Row", "Scale", "find", "reproduce", "write"]


def find(name: str) -> Figure[Any]:
    """Return the figure of that name, or raise an error with the nearest names."""
    if name not in FIGURES:
        near = difflib.get_close_matches(name, FIGURES, n=3, cutoff=0.4) or sorted(FIGURES)
        raise ValueError(f"no figure is called {name!r}; there are {', '.join(near)}")
    return FIGURES[name]
