"""Probing: whether a predictor has memorised its pretraining tasks, or has learned to learn."""

from icltheory.probing.measure import probe
from icltheory.probing.predictors import linear_attention, load_predictor
from icltheory.probing.result import Comparison, Estimate, Probe

__all__ = ["Comparison", "Estimate", "Probe", "linear_attention", "load_predictor", "probe"]
