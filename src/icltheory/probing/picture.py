"""A picture of a probe: errors and distances on both laws of tasks, and where the predictor is between the two ends."""

import math
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from icltheory.conventions import SCALED, print_on
from icltheory.probing.result import Comparison, Estimate, Probe
from icltheory.probing.verdict import END, OFF_LINE

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

_RIDGE, _DMMSE, _PREDICTOR, _BOTH = "C0", "C1", "black", "0.55"
_LONGEST = 20  # letters of a name, so that legends stay small
_MARKERS = 24  # points along a curve at most, or their error bars touch


def draw(probe: Probe, name: str = "predictor") -> "Picture":
    r"""Draw a probe as a matplotlib figure.

    Points with error bars of one standard error are the predictor, lines the two references. The panel on the right
    has dMMSE at (0, 0), ridge at (1, 0) and, in units of their root mean squared distance on fresh tasks, the predictor
    at :math:`(s, \sqrt q)`; grey is "between", colour an end of the verdict.

    Parameters
    ----------
    probe : Probe
    name : str
        What to call the predictor.

    Examples
    --------
    >>> import icltheory as icl
    >>> found = icl.probe(lambda x, y, query: 0 * query[:, 0], d=4, alpha=1.0, kappa=2.0, rho=0.1, n_prompts=100, rng=0)
    >>> draw(found).savefig("probe.png")  # doctest: +SKIP
    """
    from matplotlib.figure import Figure as Canvas

    name = name if len(name) <= _LONGEST else "…" + name[-_LONGEST:]
    every, has_list = len(probe.examples) > 1, bool(np.isfinite(probe.n_tasks))
    laws = {"fresh tasks (ICL)": probe.icl, "pretraining tasks (IDG)": probe.idg}
    if not has_list:
        laws = {"fresh tasks (ICL and IDG)": probe.icl}
    rows = 2 if every and has_list else 1  # with one law alone its two panels are side by side
    picture = Canvas(figsize=(4.1 * (2 + has_list), 6.6 if rows == 2 else 4.4), layout="constrained")
    grid = picture.add_gridspec(rows, 2 + has_list)
    if every:
        for i, (title, found) in enumerate(laws.items()):
            error, distance = (picture.add_subplot(grid[at]) for at in ((0, i), (1, i) if has_list else (0, 1)))
            _curves(error, distance, probe, found, name)
            error.set_title(title, fontsize=10)
    else:
        _points([picture.add_subplot(grid[0, i]) for i in (0, 1)], laws, name)
    if has_list:
        _map(picture.add_subplot(grid[:, 2]), probe.icl, name)
    heading = [probe.verdict, probe.sizes]
    if probe.convention != SCALED:
        heading.append(f"the predictor was asked in: {probe.convention.statement}")
    width = 46 * (2 + has_list)
    picture.suptitle("\n".join(textwrap.fill(line, width) for line in heading), fontsize=10)
    print_on(picture)
    return picture


def _curves(error: Any, distance: Any, probe: Probe, found: Comparison, name: str) -> None:
    """Draw what depends on the number of examples."""
    m = probe.examples
    shown = np.unique(np.round(np.linspace(0, len(m) - 1, _MARKERS)).astype(int))
    for axis, series in ((error, _errors(name)), (distance, _distances(name))):
        for label, field, colour, is_point in series:
            estimate: Estimate = getattr(found, field)
            value = _positive(estimate.value)
            if np.isnan(estimate.value).all():  # no dMMSE
                continue
            text = label if np.isfinite(value).any() else f"{label}: 0"
            if is_point:
                se = np.asarray(estimate.se)[shown]
                axis.errorbar(m[shown], value[shown], se, fmt="o", ms=3.5, lw=1, color=colour, label=text)
            else:
                axis.plot(m, value, "--" if field == "ridge_to_dmmse" else "-", color=colour, label=text)
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.set(yscale="log", xlabel="examples before the label, $m$", xlim=(-0.03 * m[-1], 1.03 * m[-1]))
        axis.grid(alpha=0.25)
        axis.legend(frameon=False, fontsize=8)
    error.set_ylabel(r"error, $E(y-\hat y)^2$")
    distance.set_ylabel("mean squared distance")


def _points(axes: Any, laws: dict[str, Comparison], name: str) -> None:
    """Draw errors and distances for the query alone, side by side for the laws."""
    titles = r"error, $E(y-\hat y)^2$", "mean squared distance"
    for axis, title, series in zip(axes, titles, (_errors(name), _distances(name)), strict=True):
        for i, (label, field, colour, is_point) in enumerate(series):
            estimates: list[Estimate] = [getattr(found, field) for found in laws.values()]
            if np.isnan([estimate.value for estimate in estimates]).all():  # no dMMSE
                continue
            value = _positive([estimate.value for estimate in estimates])
            text = label if np.isfinite(value).any() else f"{label}: 0"
            place, se = np.arange(len(laws)) + 0.18 * (i - 1), [estimate.se for estimate in estimates]
            axis.errorbar(place, value, se, fmt="o" if is_point else "D", ms=6, color=colour, label=text)
        axis.set(yscale="log", ylabel=title, xlim=(-0.6, len(laws) - 0.4))
        axis.set_xticks(range(len(laws)), list(laws))
        axis.grid(alpha=0.25, axis="y")
        axis.margins(y=0.2)
        low, high = axis.get_ylim()
        if high < 10 * low:
            axis.set_ylim(low / 3, high * 3)
        axis.legend(frameon=False, fontsize=8)


def _errors(name: str) -> tuple[tuple[str, str, str, bool], ...]:
    """Return (label, field of Comparison, colour, whether it is the predictor's)."""
    return (
        ("ridge", "ridge_error", _RIDGE, False),
        ("dMMSE", "dmmse_error", _DMMSE, False),
        (name, "error", _PREDICTOR, True),
    )


def _distances(name: str) -> tuple[tuple[str, str, str, bool], ...]:
    return (
        ("ridge to dMMSE", "ridge_to_dmmse", _BOTH, False),
        (f"{name} to ridge", "to_ridge", _RIDGE, True),
        (f"{name} to dMMSE", "to_dmmse", _DMMSE, True),
    )


def _map(axis: Any, found: Comparison, name: str) -> None:
    """Draw the plane of dMMSE, ridge and the predictor, with the regions of the verdict."""
    from matplotlib.ticker import MaxNLocator

    height = math.sqrt(OFF_LINE)
    for left, right, colour, word in (
        (-END, END, _DMMSE, "memorises"),
        (END, 1 - END, _BOTH, "between"),
        (1 - END, 1 + END, _RIDGE, "generalises"),
    ):
        axis.fill_between([left, right], 0, height, color=colour, alpha=0.13, lw=0)
        axis.annotate(word, ((left + right) / 2, height), (0, 3), textcoords="offset points", ha="center", fontsize=8)
    for end, colour, word in ((0, _DMMSE, "dMMSE"), (1, _RIDGE, "ridge")):
        axis.plot([end], [0], "D", color=colour, ms=8, clip_on=False)
        axis.annotate(word, (end, 0), (0, 9), textcoords="offset points", ha="center", color=colour)
    s, q = (np.atleast_1d(estimate.value) for estimate in (found.position, found.off_line))
    seen = np.isfinite(s)
    s, root, m = s[seen], np.sqrt(q[seen]), np.flatnonzero(seen)
    if len(s) > 1:
        axis.plot(s, root, "-", color=_BOTH, lw=0.8)
        dots = axis.scatter(s, root, c=m, cmap="viridis", s=14, zorder=3)
        axis.figure.colorbar(
            dots, ax=axis, label="examples before the label, $m$", shrink=0.6, ticks=MaxNLocator(integer=True)
        )
    (at, at_se), (off, off_se) = found.position.query, found.off_line.query
    up = math.sqrt(off) if off > 0 else 0.0
    if math.isfinite(at):
        bars = {"xerr": at_se, "yerr": off_se / (2 * up) if up > 1e-6 else 0.0}
        axis.errorbar(at, up, **bars, fmt="o", ms=7, color=_PREDICTOR, label=f"{name}, query", clip_on=False, zorder=4)
        axis.legend(frameon=False, fontsize=8, loc="upper left")
    axis.set(
        xlim=(min([-0.5, *(s - 0.1)]), max([1.5, *(s + 0.1)])),
        ylim=(0, max([0.75, *(1.15 * root)])),
        xlabel="position from dMMSE to ridge, $s$",
        ylabel=r"distance off the line, $\sqrt{q}$",
    )
    axis.set_title("fresh tasks; distance of ridge to dMMSE = 1", fontsize=10)
    axis.locator_params(axis="x", nbins=5)


def _positive(values: Any) -> Any:
    """Leave out what a logarithmic axis cannot show, zeros to rounding among it."""
    array = np.asarray(values, dtype=np.float64)
    return np.where(array > 1e-20, array, np.nan)
