"""Figures of Letey et al. 2025: alignment of pretraining and test tasks in in-context learning."""

from icltheory.figures.letey2025.alignment import alignment

__all__ = ["alignment"]
