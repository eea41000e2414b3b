"""Transformers on the same problems: data, models, training, and comparisons with theory.

Needs PyTorch, ``pip install 'icltheory[train]'``, which is imported at the first use of what needs it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from icltheory.train.config import Data, Model, Optimization, Training
from icltheory.train.exponent import Exponent, threshold_exponent

if TYPE_CHECKING:
    from icltheory.train.compare import Comparison, closed_form, compare_closed_form
    from icltheory.train.jobs import probe_trained
    from icltheory.train.loop import load, train
    from icltheory.train.models import (
        Blocks,
        Decoder,
        Embedded,
        LinearAttention,
        ReducedAttention,
        SoftmaxAttention,
        build,
    )
    from icltheory.train.result import DivergenceError, Record, Trained
    from icltheory.train.threshold import Threshold, interpolation_threshold

_HOME = {
    "compare": ("Comparison", "closed_form", "compare_closed_form"),
    "jobs": ("probe_trained",),
    "loop": ("load", "train"),
    "models": (
        "Blocks",
        "Decoder",
        "Embedded",
        "LinearAttention",
        "ReducedAttention",
        "SoftmaxAttention",
        "build",
    ),
    "result": ("DivergenceError", "Record", "Trained"),
    "threshold": ("Threshold", "interpolation_threshold"),
}

__all__ = [
    "Blocks",
    "Comparison",
    "Data",
    "Decoder",
    "DivergenceError",
    "Embedded",
    "Exponent",
    "LinearAttention",
    "Model",
    "Optimization",
    "Record",
    "ReducedAttention",
    "SoftmaxAttention",
    "Threshold",
    "Trained",
    "Training",
    "build",
    "closed_form",
    "compare_closed_form",
    "interpolation_threshold",
    "load",
    "probe_trained",
    "threshold_exponent",
    "train",
]


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            try:
                return getattr(import_module(f"icltheory.train.{module}"), name)
            except ModuleNotFoundError as error:
                if error.name != "torch":
                    raise
                raise ImportError(f"icltheory.train.{name} needs PyTorch: pip install 'icltheory[train]'") from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
