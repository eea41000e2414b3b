"""What a figure is: parameters at three scales, simulations to run, rows of data, a picture, and claims."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from icltheory.points import Ratios
from icltheory.simulate.batch import Work

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

Scale = Literal["smoke", "default", "paper"]
SCALES: tuple[Scale, ...] = ("smoke", "default", "paper")
Kind = Literal["theory", "simulation", "published"]
Parameters = TypeVar("Parameters")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One plotted number of linear attention, with all that it depends on: a line of the CSV file.

    `error` is the standard error over `seeds` repetitions (or what the panel's text says), 0 for theory.
    """

    panel: str
    kind: Kind
    target: Literal["icl", "idg"]
    tau: float
    alpha: float
    kappa: float
    rho: float
    ridge: float
    value: float
    error: float = 0.0
    spread: float = 0.0
    d: int | None = None
    n_sequences: int | None = None
    seeds: int | None = None

    def ratios(self) -> Ratios:
        """Return the keyword arguments with which to call the theory at this very point."""
        return {"tau": self.tau, "alpha": self.alpha, "kappa": self.kappa, "rho": self.rho, "ridge": self.ridge}


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement about the world, what it expects, what was measured, and whether it holds.

    Attributes
    ----------
    statement, source : str
        In words, and who says so.
    expected, measured : str
        Numbers, in words.
    holds : bool or None
        None if this scale cannot test it; `measured` then says why.
    """

    statement: str
    source: str
    expected: str
    measured: str
    holds: bool | None

    @property
    def verdict(self) -> str:
        """The word for the table."""
        return {True: "holds", False: "fails", None: "not tested"}[self.holds]


@dataclass(frozen=True, kw_only=True)
class Figure(Generic[Parameters]):
    """A figure of a paper, or an extension of one.

    Attributes
    ----------
    name : str
        "paper/figure".
    title, source, about : str
        What it is called, where it comes from, and what one sees in it.
    scales : mapping
        Parameters for "smoke" (seconds), "default" (minutes) and "paper" (the paper's sizes).
    jobs : callable
        Parameters -> simulations to run: `icltheory.simulate.Job`, or any other `Work`.
    rows : callable
        (parameters, jobs, outcomes) -> all plotted numbers: a list of `Row`, or of one other frozen dataclass.
    plot : callable
        (parameters, rows) -> matplotlib figure.
    claims : callable
        (parameters, rows) -> claims.
    needs : str
        A package without which it cannot be computed, and that icltheory installs on request only; empty if none.
    """

    name: str
    title: str
    source: str
    about: str
    scales: Mapping[Scale, Parameters]
    jobs: Callable[[Parameters], Sequence[Work[Any]]]
    rows: Callable[[Parameters, Sequence[Any], Sequence[Any]], Sequence[Any]]
    plot: Callable[[Parameters, Sequence[Any]], "Picture"]
    claims: Callable[[Parameters, Sequence[Any]], list[Claim]]
    needs: str = ""

    @property
    def missing(self) -> bool:
        """Whether the package that it needs is not installed."""
        return bool(self.needs) and find_spec(self.needs) is None


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """A figure that has been computed: its data, its claims and how long it took."""

    figure: Figure[Any]
    scale: Scale
    parameters: Any
    rows: Sequence[Any]
    claims: Sequence[Claim]
    simulations: int
    seconds: float

    @property
    def failed(self) -> bool:
        """Whether any claim was tested and does not hold."""
        return any(claim.holds is False for claim in self.claims)
