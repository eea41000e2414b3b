"""Prompts as the estimators take them: any leading shape, any array library, worked on in blocks of bounded memory."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from icltheory.points import check, one_whole

Array = Any  # of any array library that array-api-compat knows: numpy, PyTorch, ...
At = Literal["query", "prefixes", "next"]
MAX_BYTES = 2**28


@dataclass(frozen=True)
class Inputs:
    """A stack of b prompts in double precision, and the shape that the caller gave them."""

    xp: Any
    x: Array  # (b, l, d)
    y: Array  # (b, l)
    query: Array  # (b, d)
    shape: tuple[int, ...]

    @classmethod
    def of(cls, X: Array, y: Array, x_query: Array | None) -> "Inputs":
        """Check shapes and numbers, or raise an error that shows them; without a query it is zero."""
        given = {"X": numbers("X", X), "y": numbers("y", y)}
        *shape, length, d = given["X"].shape if given["X"].ndim >= 2 else (0, 0)
        if x_query is not None:
            given["x_query"] = numbers("x_query", x_query)
        wanted = {"X": (*shape, length, d), "y": (*shape, length), "x_query": (*shape, d)}
        if d < 1 or any(tuple(a.shape) != wanted[name] for name, a in given.items()):
            letters = {"X": "(..., l, d)", "y": "(..., l)", "x_query": "(..., d)"}
            raise ValueError(
                f"{', '.join(given)} must have shapes {', '.join(letters[name] for name in given)} with the same "
                f"leading shape, got {', '.join(str(tuple(a.shape)) for a in given.values())}"
            )
        xp = one_library(**given)
        b, flat = math.prod(shape), {}
        for name, a in given.items():
            flat[name] = xp.reshape(double(xp, a), (b, *a.shape[len(shape) :]))
            finite(xp, name, flat[name])
        query = flat.get("x_query")
        if query is None:
            query = like(xp, flat["X"], "zeros", (b, d))
        return cls(xp, flat["X"], flat["y"], query, tuple(shape))

    def blocks(self, size: int) -> Iterator["Inputs"]:
        """Yield the prompts in blocks of so many, the last of the rest."""
        for rows in pieces(self.x.shape[0], size):
            part = self.x[rows, :, :], self.y[rows, :], self.query[rows, :]
            yield Inputs(self.xp, *part, (part[0].shape[0],))

    def shaped(self, parts: Sequence[Array]) -> Array:
        """Join the blocks' results, one prompt a row, and give them the caller's leading shape."""
        whole = self.xp.concat(list(parts), axis=0)
        return self.xp.reshape(whole, (*self.shape, *whole.shape[1:]))


def by_blocks(prompts: Inputs, bytes_each: float, max_bytes: int, work: Callable[[Inputs], Array], at: At) -> Array:
    """Run the work on blocks of prompts that keep to the budget; its result has a column for each answer wanted."""
    if not prompts.x.shape[0]:
        columns = () if at == "query" else (prompts.x.shape[1] + 1,)
        return like(prompts.xp, prompts.x, "zeros", (*prompts.shape, *columns))
    size = max(1, int(max_bytes // bytes_each))
    return prompts.shaped([work(block) for block in prompts.blocks(size)])


def pieces(length: int, size: int) -> Iterator[slice]:
    """Cut a length into slices of a size, the last of the rest."""
    for start in range(0, length, size):
        yield slice(start, min(start + size, length))


def check_options(rho: float, at: str, max_bytes: int) -> tuple[float, int]:
    """Return the noise variance and the budget as plain numbers, or raise an error that names what is wrong."""
    if at not in get_args(At):
        raise ValueError(f"at must be one of {get_args(At)}, got {at!r}")
    noise = check("rho", rho)
    if noise.ndim:
        raise TypeError(f"rho must be one number, got an array of shape {noise.shape}")
    return float(noise), one_whole("max_bytes", max_bytes, "memory for the work on one block of prompts")


def double(xp: Any, array: Array) -> Array:
    """Return the array in double precision; gradients are not kept."""
    if hasattr(array, "detach"):
        array = array.detach()
    return xp.astype(array, xp.float64, copy=False)


def finite(xp: Any, name: str, array: Array) -> None:
    """Raise an error that names the array if an entry is not a finite number."""
    if not bool(xp.all(xp.isfinite(array))):
        raise ValueError(f"{name} must be finite, got nan or inf")


def like(xp: Any, array: Array, name: str, *arguments: Any) -> Array:
    """Make an array (zeros, full, eye, ...) in double precision where another one is."""
    from array_api_compat import device

    return getattr(xp, name)(*arguments, dtype=xp.float64, device=device(array))


def one_library(**arrays: Array) -> Any:
    """Return the namespace that all arrays have in common, or raise an error that shows what each of them is."""
    from array_api_compat import array_namespace

    spaces = {name: array_namespace(array) for name, array in arrays.items()}
    if len({space.__name__ for space in spaces.values()}) > 1:
        kinds = ", ".join(f"{name} {type(array).__module__}.{type(array).__name__}" for name, array in arrays.items())
        raise TypeError(f"{', '.join(arrays)} must be arrays of one library, got {kinds}")
    return next(iter(spaces.values()))


def numbers(name: str, value: Any) -> Array:
    """Return an array of real numbers as it is (numpy for lists), or raise an error that names it."""
    from array_api_compat import array_namespace, is_array_api_obj

    try:
        array = value if is_array_api_obj(value) else np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} must be an array of real numbers, got a list of uneven rows") from error
    if not array_namespace(array).isdtype(array.dtype, ("real floating", "integral")):
        raise TypeError(f"{name} must be an array of real numbers, got dtype {array.dtype}")
    return array
