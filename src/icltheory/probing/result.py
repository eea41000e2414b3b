"""What a probe has found: errors and distances with their standard errors, as numbers, a table and a verdict."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icltheory.conventions import SCALED, Convention
from icltheory.probing.verdict import Position, plus_minus, verdict
from icltheory.prompts.tasks import TaskLaw
from icltheory.tables import Table


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean over prompts and its standard error: floats for the query, arrays (l + 1,) for all prefixes.

    Attributes
    ----------
    value, se : float or array of shape (l + 1,)
        Entry m is after m examples, the last for the query; nan where there is nothing to measure.
    """

    value: Any
    se: Any

    @property
    def query(self) -> tuple[float, float]:
        """Value and standard error for the query, with all l examples."""
        return float(np.ravel(self.value)[-1]), float(np.ravel(self.se)[-1])


@dataclass(frozen=True, kw_only=True)
class Comparison:
    r"""The predictor f beside ridge :math:`f_r` and dMMSE :math:`f_d`, on the same prompts of one law of tasks.

    Errors are :math:`E (y - f)^2`, label noise included; distances are mean squared differences. Both are in units of
    the signal variance.

    Attributes
    ----------
    error, ridge_error, dmmse_error : Estimate
    to_ridge, to_dmmse, ridge_to_dmmse : Estimate
        :math:`E (f - f_r)^2`, :math:`E (f - f_d)^2`, :math:`E (f_r - f_d)^2`.
    position : Estimate
        Where f is on the line from dMMSE (0) to ridge (1),
        :math:`s = E (f - f_d)(f_r - f_d) / E (f_r - f_d)^2`.
    off_line : Estimate
        Its squared distance off that line, :math:`E (f - f_d - s (f_r - f_d))^2 / E (f_r - f_d)^2`.
    ridge_power : Estimate
        :math:`E f_r^2`, the squared distance from ridge of the predictor that always says 0.
    """

    error: Estimate
    ridge_error: Estimate
    dmmse_error: Estimate
    to_ridge: Estimate
    to_dmmse: Estimate
    ridge_to_dmmse: Estimate
    position: Estimate
    off_line: Estimate
    ridge_power: Estimate


@dataclass(frozen=True, kw_only=True)
class Probe:
    """How near a predictor is to ridge regression and to dMMSE; ``print(probe)`` shows it.

    Attributes
    ----------
    d, context_length : int
        As realised.
    n_tasks : int or math.inf
        Pretraining tasks in dMMSE's list; with ``math.inf`` there is none, and what needs it is nan.
    rho : float
        Label-noise variance, in units of the signal's.
    tasks : {"sphere", "gaussian"}
        Law of the fresh tasks.
    n_prompts : int
        Of each law.
    convention : Convention
        In which the predictor was asked; the numbers here are in ours, ``conventions.SCALED``.
    icl, idg : Comparison
        On fresh tasks, and on the pretraining tasks with fresh tokens (with n_tasks = inf both are the same).
    """

    d: int
    context_length: int
    n_tasks: int | float
    rho: float
    tasks: TaskLaw
    n_prompts: int
    convention: Convention
    icl: Comparison
    idg: Comparison

    @property
    def verdict(self) -> str:
        """One line: memorises, generalises, between, neither or cannot tell, with the numbers (see `probe`)."""
        at = self.icl
        return verdict(
            Position(
                n_prompts=self.n_prompts,
                has_list=bool(np.isfinite(self.n_tasks)),
                position=at.position.query,
                off_line=at.off_line.query,
                ridge_to_dmmse=at.ridge_to_dmmse.query,
                to_ridge=at.to_ridge.query,
                ridge_power=at.ridge_power.query,
            )
        )

    @property
    def examples(self) -> NDArray[np.int_]:
        """The numbers of examples m for which the predictor answered: 0 to l, or l alone."""
        all_prefixes = np.ndim(self.icl.error.value) > 0
        return np.arange(0 if all_prefixes else self.context_length, self.context_length + 1)

    @property
    def sizes(self) -> str:
        """The sizes and the laws in one line."""
        listed = f"{self.n_tasks} pretraining tasks (kappa = {self.n_tasks / self.d:g})"
        return (
            f"d = {self.d}, {self.context_length} examples (alpha = {self.context_length / self.d:g}), "
            f"{listed if np.isfinite(self.n_tasks) else 'a fresh task for every prompt (kappa = inf)'}, "
            f"rho = {self.rho:g}, {self.tasks} tasks; {self.n_prompts} prompts of each law, ± standard error"
        )

    @property
    def conventions(self) -> str:
        """The convention of the numbers here, and that in which the predictor was asked."""
        asked = "" if self.convention == SCALED else f" (the predictor was asked in: {self.convention.statement})"
        return f"convention: {SCALED.statement}{asked}"

    def table(self) -> Table:
        """Return all numbers: a row for each law and number of examples."""
        columns: dict[str, list[Any]] = {"law": [], "examples": []}
        for law, found in {"icl": self.icl, "idg": self.idg}.items():
            columns["law"] += [law] * len(self.examples)
            columns["examples"] += self.examples.tolist()
            for field in fields(found):
                estimate = getattr(found, field.name)
                columns.setdefault(field.name, []).extend(np.atleast_1d(estimate.value).tolist())
                columns.setdefault(f"{field.name}_se", []).extend(np.atleast_1d(estimate.se).tolist())
        return Table({name: np.array(values) for name, values in columns.items()})

    def __str__(self) -> str:
        """Return the small table for people: the query on both laws, some prefixes on fresh tasks, the verdict."""
        laws = {"fresh tasks (ICL)": self.icl, "pretraining tasks (IDG)": self.idg}
        if np.isinf(self.n_tasks):
            laws = {"fresh tasks (ICL and IDG)": self.icl}
        lines = [f"# {self.sizes}", f"# {self.conventions}", *_summary(laws)]
        if len(self.examples) > 1:
            lines += ["", "fresh tasks, predicting the next label after m examples:", *_prefixes(self)]
        return "\n".join([*lines, "", self.verdict]) + "\n"


_ROWS = {
    "error: predictor": "error",
    "       ridge": "ridge_error",
    "       dMMSE": "dmmse_error",
    "squared distance: to ridge": "to_ridge",
    "                  to dMMSE": "to_dmmse",
    "                  ridge to dMMSE": "ridge_to_dmmse",
    "position, dMMSE 0 to ridge 1": "position",
    "off that line, share of ridge to dMMSE": "off_line",
}


def _summary(laws: dict[str, Comparison]) -> list[str]:
    rows: list[tuple[str, ...]] = [("", *laws)]
    for title, name in _ROWS.items():
        rows.append((title, *(plus_minus(*getattr(found, name).query) for found in laws.values())))
    return _aligned(rows)


def _prefixes(probe: Probe) -> list[str]:
    length, at = probe.context_length, probe.icl
    chosen = np.unique(np.round(np.concatenate([[0, 1, 2], np.linspace(0, length, 6)]))).astype(int)
    rows: list[tuple[str, ...]] = [("m", "error", "ridge", "dMMSE", "to ridge", "to dMMSE", "position")]
    for m in chosen[chosen <= length]:
        columns = (at.error, at.ridge_error, at.dmmse_error, at.to_ridge, at.to_dmmse, at.position)
        rows.append((str(m), *(plus_minus(float(each.value[m]), float(each.se[m])) for each in columns)))
    return _aligned(rows)


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]
