"""Figures of Lu et al. 2025: in-context learning of linear regression by linear attention."""

from icltheory.figures.lu2025.double_descent import double_descent

__all__ = ["double_descent"]
