"""Figures of Letey et al. 2026: what correlations within a prompt do to in-context learning."""

from icltheory.figures.letey2026.architectures import architectures
from icltheory.figures.letey2026.concentration import concentration
from icltheory.figures.letey2026.effective_length import effective_length
from icltheory.figures.letey2026.other_correlation import test_correlation
from icltheory.figures.letey2026.query_gain import query_gain

__all__ = ["architectures", "concentration", "effective_length", "query_gain", "test_correlation"]
