"""How a predictor is asked: in its own arrays and convention, unable to do harm, its answers checked."""

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal, get_args

import numpy as np

from icltheory.points import Floats

Array = Any  # a numpy array, or a torch tensor
Predictor = Callable[[Array, Array, Array], Array]  # (x, y, query) -> predictions
Backend = Literal["numpy", "torch"]
DType = Literal["float64", "float32", "bfloat16", "float16"]
Ask = Callable[[Floats, Floats, Floats], Floats]

_ALTERED = 64  # prompts on which it is tried whether predictions look ahead
_SAME = 1e-3  # of the labels' size: half-precision models answer alike to far less


@contextmanager
def asking(
    predictor: Predictor,
    *,
    scale: float = 1.0,
    backend: Backend | None = None,
    dtype: DType | None = None,
    device: str | None = None,
) -> Iterator[Ask]:
    """Give the function that asks the predictor about prompts, (b, l, d), (b, l) and (b, d), in our convention.

    Tokens and labels are multiplied by `scale` on the way in, predictions divided by it on the way out. A torch module
    is in evaluation mode meanwhile, and as it was afterwards; no gradients are kept.
    """
    if isinstance(predictor, type) or not callable(predictor):
        hint = ", a class; give an instance of it" if isinstance(predictor, type) else ""
        raise TypeError(f"predictor must be a function of (x, y, query) or a torch.nn.Module, got {predictor!r}{hint}")
    wrap, no_gradients = _arrays(predictor, backend, dtype, device)
    columns: list[int | None] = []

    def ask(x: Floats, y: Floats, query: Floats) -> Floats:
        given = [wrap(scale * array) for array in (x, y, query)]  # copies, with which it may do what it likes
        shapes = f"x {x.shape}, y {y.shape}, query {query.shape}"
        try:
            with no_gradients():
                answer = predictor(*given)
        except Exception as error:
            raise RuntimeError(f"the predictor failed on {shapes}: {type(error).__name__}: {error}") from error
        predictions = _checked(answer, y.shape, shapes) / scale
        columns.append(predictions.shape[1] if predictions.ndim == 2 else None)
        if columns[0] != columns[-1]:
            raise ValueError("the predictor answered for the query alone on some prompts, for every prefix on others")
        return predictions

    with _evaluating(predictor):
        yield ask


def require_causal(ask: Ask, x: Floats, y: Floats, query: Floats) -> None:
    """Raise an error if an answer for m examples changes with the labels of later ones."""
    x, y, query = x[:_ALTERED], y[:_ALTERED], query[:_ALTERED]
    b, length = y.shape
    known = np.linspace(0, length - 1, b).round()  # another number of examples for every prompt
    size = float(np.sqrt(np.mean(y**2)))
    later = np.arange(length) >= known[:, None]
    change = np.abs(ask(x, np.where(later, y + 3 * size, y), query) - ask(x, y, query))
    change[np.arange(length + 1) > known[:, None]] = 0.0  # these may see what was altered
    if change.max() > _SAME * size:
        m = int(np.unravel_index(int(np.argmax(change)), change.shape)[1])
        raise ValueError(
            f"the predictor's entry {m} changed when only labels of examples after the first {m} did: entry m must be "
            "the prediction of the next label from the first m examples alone (is a causal mask missing, are entries "
            "shifted, or does the predictor draw random numbers?)"
        )


def _arrays(
    predictor: Predictor, backend: str | None, dtype: str | None, device: str | None
) -> tuple[Callable[[Floats], Array], Callable[[], AbstractContextManager[Any]]]:
    """Return what makes the predictor's kind of array, and the context in which it is to run."""
    module = _is_module(predictor)
    kind = backend or ("torch" if module else "numpy")
    if kind not in get_args(Backend):
        raise ValueError(f"backend must be None or one of {get_args(Backend)}, got {backend!r}")
    if kind == "numpy":
        if module:
            raise ValueError('backend must be None or "torch" for a torch.nn.Module, got "numpy"')
        if device is not None:
            raise ValueError(f'device must be None for numpy arrays, got {device!r}; give backend="torch" as well')
        chosen = dtype or "float64"
        _check_dtype(chosen, ("float64", "float32"))
        return lambda array: array.astype(chosen, copy=False), nullcontext
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise ImportError('backend="torch" needs PyTorch, which is not installed: pip install torch') from error
    parameters = [p for p in predictor.parameters() if p.is_floating_point()] if module else []  # type: ignore[attr-defined]
    like = parameters[0] if parameters else torch.zeros(1, dtype=torch.float32)
    _check_dtype(dtype or str(like.dtype).removeprefix("torch."), get_args(DType))
    number = getattr(torch, dtype) if dtype else like.dtype
    place = like.device if device is None else device
    try:
        torch.zeros(1, dtype=number, device=place)
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).split(". ")[0]
        raise ValueError(f'device must be one that PyTorch can use, such as "cpu", got {device!r}: {reason}') from error
    return lambda array: torch.from_numpy(array).to(device=place, dtype=number), torch.no_grad


def _check_dtype(dtype: str, allowed: tuple[str, ...]) -> None:
    if dtype not in allowed:
        raise ValueError(f"dtype must be None or one of {allowed}, got {dtype!r}")


def _is_module(predictor: Any) -> bool:
    torch = sys.modules.get("torch")  # whoever has a module has imported it
    return torch is not None and isinstance(predictor, torch.nn.Module)


@contextmanager
def _evaluating(predictor: Any) -> Iterator[None]:
    if not _is_module(predictor):
        yield
        return
    modes = {module: module.training for module in predictor.modules()}
    predictor.eval()
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training


def _checked(answer: Any, labels: tuple[int, ...], shapes: str) -> Floats:
    """Return the predictor's answer in double precision, if it is finite numbers in one of the two shapes."""
    b, length = labels
    wanted = f"({b},), the queries' labels, or ({b}, {length + 1}), the next label after each number of examples"
    if hasattr(answer, "detach"):
        answer = answer.detach().cpu().double()
    try:
        value = np.asarray(answer)
    except ValueError:  # a ragged list
        value = np.asarray(None)
    if value.dtype.kind not in "fiu":
        raise TypeError(f"the predictor returned {_described(answer)} on {shapes}; expected an array of shape {wanted}")
    if value.shape not in ((b,), (b, length + 1)):
        raise ValueError(f"the predictor returned shape {value.shape} on {shapes}; expected {wanted}")
    bad = ~np.isfinite(value)
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        where = f"prompt {first[0]}" + (f" after {first[1]} examples" if len(first) == 2 else "")
        raise ValueError(
            f"the predictor returned nan or inf on {shapes}: {int(bad.sum())} of {value.size} predictions, first "
            f"{value[first]:g} for {where} of the batch"
        )
    return value.astype(np.float64)


def _described(answer: Any) -> str:
    shape = getattr(answer, "dtype", None)
    return f"a {type(answer).__name__}" + (f" of dtype {shape}" if shape is not None else "")
