"""Where an experiment sits: its sizes and ratios, checked once, and the risks measured or predicted there."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypedDict, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
RNG = int | np.random.SeedSequence | np.random.BitGenerator | np.random.Generator | None  # SPEC 7
Value = TypeVar("Value", float, Floats)

# name of the ratio -> (name of the integer, what the ratio is)
_SIZES = {
    "tau": ("n_sequences", "n/d^2"),
    "alpha": ("context_length", "context length/d"),
    "kappa": ("n_tasks", "tasks/d"),
}


@dataclass(frozen=True, kw_only=True)
class Risk(Generic[Value]):
    r"""Mean squared errors of in-context linear regression; labels have unit signal variance.

    Theory and simulation both return it, so that a comparison is two calls and a subtraction.

    Attributes
    ----------
    icl : float or array
        Error on fresh tasks (in-context learning): :math:`E (y - \hat y)^2`, label noise included.
    idg : float or array
        Error on the pretraining tasks with fresh tokens and noise (in-distribution generalisation).
    train : float or array
        Mean squared residual on the pretraining sequences, without the penalty.
    gap : float or array
        ``icl - idg``: how far the model has memorised its tasks rather than learned to learn.
    """

    icl: Value
    idg: Value
    train: Value
    gap: Value


class Ratios(TypedDict):
    """The arguments that name a point of the theory."""

    tau: float
    alpha: float
    kappa: float
    rho: float
    ridge: float


@dataclass(frozen=True, kw_only=True)
class Point:
    """One finite experiment: the integers it really runs at, and the ratios that they give.

    Attributes
    ----------
    d : int
        Token dimension.
    context_length, n_sequences : int
        Examples in a prompt (query not counted), and pretraining sequences.
    n_tasks : int or math.inf
        Pretraining tasks; ``math.inf`` means a fresh task for every sequence.
    rho : float
        Label-noise variance.
    ridge : float
        The penalty lambda, which enters the training objective multiplied by n/d.

    Examples
    --------
    >>> point = Point.of(d=30, tau=1.5, alpha=1.0, kappa=0.52, rho=0.01)
    >>> point.n_sequences, point.context_length, point.n_tasks
    (1350, 30, 16)
    >>> round(point.kappa, 4)   # the realised ratio, not the requested one
    0.5333
    """

    d: int
    context_length: int
    n_sequences: int
    n_tasks: int | float
    rho: float
    ridge: float

    @classmethod
    def of(
        cls,
        *,
        d: int,
        tau: float | None = None,
        alpha: float | None = None,
        kappa: float | None = None,
        rho: float,
        ridge: float = 0.0,
        context_length: int | None = None,
        n_sequences: int | None = None,
        n_tasks: float | None = None,
    ) -> "Point":
        """Round ratios to sizes (nearest integer), or take the sizes as given; never both for one of them.

        Raises
        ------
        ValueError
            For a value outside its range, a size that rounds to zero, or a ratio given together with its size.
        TypeError
            For a missing value or something that is not one number.
        """
        given = {"tau": (tau, n_sequences), "alpha": (alpha, context_length), "kappa": (kappa, n_tasks)}
        dimension, sizes = _sizes(d, given)
        checked = {**sizes, "rho": check("rho", rho), "ridge": check("ridge", ridge)}
        for name, value in checked.items():
            if value.ndim:
                raise TypeError(f"{name} must be one number here, got an array of shape {value.shape}")
        n, length, k = sizes["tau"].item(), sizes["alpha"].item(), sizes["kappa"].item()
        if math.isinf(n):
            raise ValueError("tau must be finite in a simulation, got inf (tau = n/d^2)")
        return cls(
            d=dimension,
            context_length=int(length),
            n_sequences=int(n),
            n_tasks=k if math.isinf(k) else int(k),
            rho=float(rho),
            ridge=float(ridge),
        )

    @property
    def alpha(self) -> float:
        """Realised context length / d."""
        return self.context_length / self.d

    @property
    def tau(self) -> float:
        """Realised number of sequences / d^2."""
        return self.n_sequences / self.d**2

    @property
    def kappa(self) -> float:
        """Realised number of tasks / d."""
        return self.n_tasks / self.d

    @property
    def n_parameters(self) -> int:
        """Entries of Gamma, d(d+1): the interpolation threshold sits at this many sequences."""
        return self.d * (self.d + 1)

    def ratios(self) -> Ratios:
        """Return the keyword arguments with which to call the theory at this very point."""
        return {"tau": self.tau, "alpha": self.alpha, "kappa": self.kappa, "rho": self.rho, "ridge": self.ridge}


def ratios(
    *,
    d: int | None,
    tau: ArrayLike | None,
    alpha: ArrayLike | None,
    kappa: ArrayLike | None,
    context_length: ArrayLike | None,
    n_sequences: ArrayLike | None,
    n_tasks: ArrayLike | None,
) -> tuple[Floats, Floats, Floats]:
    """Return checked (tau, alpha, kappa): as given when d is None, else the realised ones at that dimension."""
    given = {"tau": (tau, n_sequences), "alpha": (alpha, context_length), "kappa": (kappa, n_tasks)}
    if d is None:
        for ratio, (_, size) in given.items():
            if size is not None:
                name, meaning = _SIZES[ratio]
                raise TypeError(f"{name} needs d as well ({ratio} = {meaning})")
        values = {ratio: check(ratio, _one_of(ratio, value, None)[1]) for ratio, (value, _) in given.items()}
        return values["tau"], values["alpha"], values["kappa"]
    dimension, sizes = _sizes(d, given)
    return sizes["tau"] / dimension**2, sizes["alpha"] / dimension, sizes["kappa"] / dimension


def _sizes(d: int, given: dict[str, tuple[Any, Any]]) -> tuple[int, dict[str, Floats]]:
    """Turn d and, for each ratio, the ratio or its integer, into checked integer sizes (inf stays inf)."""
    dimension = one_whole("d", d, "token dimension")
    sizes = {}
    for ratio, (value, size) in given.items():
        name, meaning = _SIZES[ratio]
        by_size, chosen = _one_of(ratio, value, size)
        if by_size:
            sizes[ratio] = whole(name, chosen, f"{ratio} = {meaning}", infinite=ratio == "kappa")
        else:
            wanted = check(ratio, chosen)
            sizes[ratio] = np.round(wanted * (dimension**2 if ratio == "tau" else dimension))
            _require(
                ratio, wanted, sizes[ratio] >= 1, f"large enough that {name} rounds to at least 1 at d = {dimension}"
            )
    return dimension, sizes


def _one_of(ratio: str, value: Any, size: Any) -> tuple[bool, Any]:
    """Return (True, size) or (False, ratio), whichever was given."""
    name, meaning = _SIZES[ratio]
    if value is None and size is None:
        raise TypeError(f"missing {ratio} (= {meaning}); with d, {name} may be given instead")
    if value is not None and size is not None:
        raise ValueError(f"give {ratio} or {name}, not both (got {ratio}={value!r} and {name}={size!r})")
    return size is not None, value if size is None else size


_RULES: dict[str, tuple[str, str, Callable[[Floats], Any]]] = {
    "tau": ("> 0", "tau = n/d^2; inf is allowed in the theory", lambda v: v > 0),
    "alpha": ("> 0 and finite", "alpha = context length/d", lambda v: (v > 0) & np.isfinite(v)),
    "kappa": ("> 0", "kappa = tasks/d; math.inf means a fresh task for every sequence", lambda v: v > 0),
    "test_alpha": ("> 0", "test_alpha = context length/d of the test; inf is its limit", lambda v: v > 0),
    "t": (">= 0 and finite", "t = sequences seen/d^2", lambda v: (v >= 0) & np.isfinite(v)),
    "step_size": ("> 0 and finite, or a function of t", "eta", lambda v: (v > 0) & np.isfinite(v)),
    "sigma": (">= 0 and finite", "sigma is the label noise's sd", lambda v: (v >= 0) & np.isfinite(v)),
    "rho": (">= 0 and finite", "rho is the label-noise variance", lambda v: (v >= 0) & np.isfinite(v)),
    "ridge": (">= 0 and finite", "ridge is the penalty lambda; 0 means ridgeless", lambda v: (v >= 0) & np.isfinite(v)),
}


def generator(rng: RNG) -> np.random.Generator:
    """Return the generator that a seed or source of randomness stands for (SPEC 7), or raise an error that names it."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise TypeError(
            f"rng must be an integer >= 0, a SeedSequence, BitGenerator, Generator or None, got {rng!r}"
        ) from None


def check(name: str, value: Any) -> Floats:
    """Return a parameter as a float array, or raise an error that names it, its value and what is allowed."""
    allowed, meaning, rule = _RULES[name]
    array = _numbers(name, value)
    _require(name, array, rule(array), allowed, meaning)
    size = np.abs(array)
    extreme = (size > 0) & np.isfinite(size) & ((size < 1e-50) | (size > 1e50))
    _require(name, array, ~extreme, "between 1e-50 and 1e50 unless it is 0 or inf", "only its limit is left out there")
    return array


def one_whole(name: str, value: Any, meaning: str) -> int:
    """Return a size as one integer >= 1."""
    array = whole(name, value, meaning)
    if array.ndim:
        raise TypeError(f"{name} must be one integer, got an array of shape {array.shape}")
    return int(array)


def whole(name: str, value: Any, meaning: str, *, infinite: bool = False) -> Floats:
    """Return a size as a float array of integers >= 1 (or inf where allowed)."""
    array = _numbers(name, value)
    good = (array >= 1) & (np.isfinite(array) | infinite) & (np.isinf(array) | (array == np.floor(array)))
    _require(name, array, good, "an integer >= 1" + (" or math.inf" if infinite else ""), meaning)
    return array


def _numbers(name: str, value: Any) -> Floats:
    array = np.asarray(value)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be a number or an array of numbers, got {value!r}")
    return array.astype(np.float64)


def _require(name: str, value: Floats, good: Any, allowed: str, meaning: str = "") -> None:
    """Raise a ValueError for the first entry of value at which good is False."""
    if not np.all(good):
        index = np.unravel_index(int(np.argmin(good)), value.shape)
        where = f" at index {tuple(map(int, index))}" if value.size > 1 else ""
        raise ValueError(
            f"{name} must be {allowed}, got {float(value[index]):g}{where}" + (f" ({meaning})" if meaning else "")
        )
