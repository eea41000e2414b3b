"""A figure of Raventós et al. 2023: pretraining task diversity and the emergence of in-context learning."""

from icltheory.figures.raventos2023.transition import transition

__all__ = ["transition"]
