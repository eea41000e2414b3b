"""Figures of what this project adds to the papers."""

from icltheory.figures.extensions.context_length import context_length
from icltheory.figures.extensions.finite_size import finite_size
from icltheory.figures.extensions.online import online

__all__ = ["context_length", "finite_size", "online"]
