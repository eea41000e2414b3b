"""Predictions: errors in closed form, from ratios to risks in microseconds."""

from icltheory.theory.linear_attention import LinearAttentionRisk, linear_attention

__all__ = ["LinearAttentionRisk", "linear_attention"]
