"""Models of in-context regression: ``model(x, y, query)`` predicts the query's label."""

from torch import nn

from icltheory.train.config import Data, Model
from icltheory.train.models.blocks import Blocks
from icltheory.train.models.embedded import Embedded
from icltheory.train.models.gpt2 import Decoder
from icltheory.train.models.linear import LinearAttention
from icltheory.train.models.reduced import ReducedAttention
from icltheory.train.models.softmax import SoftmaxAttention

__all__ = ["Blocks", "Decoder", "Embedded", "LinearAttention", "ReducedAttention", "SoftmaxAttention", "build"]


def build(model: Model, data: Data) -> nn.Module:
    """Return a model with initial weights from PyTorch's random state, in single precision on the CPU."""
    d, width = data.d, model.width or data.d
    ratio = 1.0 if model.mlp_ratio is None else model.mlp_ratio
    match model.name:
        case "reduced":
            return ReducedAttention(d)
        case "linear":
            return LinearAttention(d, init_scale=model.init_scale)
        case "softmax":
            return SoftmaxAttention(d, init_scale=model.init_scale)
        case "softmax-mlp":
            return SoftmaxAttention(d, mlp_ratio=ratio, init_scale=model.init_scale)
        case "blocks":
            return Blocks(d, width=width, layers=model.layers, heads=model.heads, mlp_ratio=model.mlp_ratio)
        case "gpt2":
            every = data.loss == "all"
            positions = 2 * data.length + 1 if data.layout == "interleaved" else data.length + 1
            ratio = 4.0 if model.mlp_ratio is None else model.mlp_ratio
            body = Decoder(positions, width=width, layers=model.layers, heads=model.heads, mlp_ratio=ratio)
            return Embedded(body, d=d, width=width, layout=data.layout, every=every)
        case "own":
            raise ValueError("a model of your own must be given as a module: train(training, model=...)")
