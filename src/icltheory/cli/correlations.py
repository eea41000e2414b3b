"""The command `icl effective-length`."""

import warnings
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from icltheory.cli.arguments import OptionalInt, OptionalPath, Values
from icltheory.cli.output import Format, emit, saved
from icltheory.prompts.kernels import Kernel
from icltheory.tables import Table

_LENGTH = 128  # where neither a file nor the command line says how long the context is


def effective_length(
    file: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="[FILE]")] = None,
    xi: Values = (),
    gamma: Values = (),
    context_length: OptionalInt = None,
    d: OptionalInt = None,
    tau: float = 4.0,
    kappa: float = 10.0,
    rho: float = 0.01,
    ridge: float = 0.0,
    format: Format = "table",
    out: OptionalPath = None,
    plot: OptionalPath = None,
) -> None:
    """Say how many independent examples a correlated context is worth, and what that does to the error.

    The correlations are those of kernels (--xi: exponential, --gamma: power law), or estimated from FILE, with error
    bars: token sequences as an .npy array of shape (n, m, d), or a .csv table with a token in each row, the name of its
    sequence first. Errors are those of linear attention as d -> infinity: with as many independent tokens (icl_iid),
    with these tokens and an independent query (icl), and with the next token as the query (icl_next).

    Example: icl effective-length --xi 0,1,2,5,10 --context-length 128 --d 32 --plot worth.png

    Args:
        file: Token sequences.
        xi: Correlation lengths of exponential kernels, in tokens.
        gamma: Exponents of power-law kernels.
        context_length: Tokens before the query; by default 128, or all but the last token of a sequence in FILE.
        d: Token dimension; by default that of FILE, or context length / 4.
        tau: Pretraining sequences / d^2.
        kappa: Pretraining tasks / d; inf means a fresh task for every sequence.
        rho: Label-noise variance (the signal variance is 1).
        ridge: Penalty lambda, multiplied by n/d in the objective; 0 is ridgeless.
        format: Table for people, or CSV or JSON.
        out: Write the table there instead of to standard output.
        plot: Draw correlations and errors to this PNG, PDF or SVG file.
    """
    from icltheory.prompts.sequence_files import read_sequences

    kernels: dict[str, Kernel] = {}
    if file is not None:
        tokens = read_sequences(file)
        length = max(tokens.shape[1] - 1, 1) if context_length is None else context_length
        d = tokens.shape[2] if d is None else d
        kernels[file.name] = Kernel.from_sequences(tokens, context_length=length)
    else:
        length = _LENGTH if context_length is None else context_length
        d = max(1, round(length / 4)) if d is None else d
    kernels |= {f"xi = {value:g}": Kernel.exponential(value, length) for value in xi}
    kernels |= {f"gamma = {value:g}": Kernel.power_law(value, length) for value in gamma}
    if not kernels:
        raise ValueError("give a FILE of token sequences, --xi or --gamma")
    rows = [_row(name, kernel, d, tau, kappa, rho, ridge) for name, kernel in kernels.items()]
    table = Table({name: np.array([row[name] for row in rows]) for name in rows[0]})
    emit(
        table,
        format,
        out,
        f"{length} tokens, d = {d}, tau = {tau:g}, kappa = {kappa:g}, rho = {rho:g}, ridge = {ridge:g}; "
        "errors: theory, d -> infinity, for weak correlations (see regime)",
    )
    if plot is not None:
        from icltheory.figures.effective import plot_worth

        saved(plot, lambda: plot_worth(table, kernels, d, tau, kappa, rho, ridge).savefig(plot, dpi=150))


def _row(name: str, kernel: Kernel, d: int, tau: float, kappa: float, rho: float, ridge: float) -> dict[str, Any]:
    from icltheory.theory import CorrelationWarning, linear_attention

    follows = kernel.follows
    found = kernel.statistics("next" if follows else "independent")
    law = partial(linear_attention, d=d, tau=tau, kappa=kappa, rho=rho, ridge=ridge)
    worth = float(kernel.effective_length(rho))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CorrelationWarning)  # the column regime says it
        errors = {
            "icl_iid": law(context_length=kernel.context_length).icl,
            "icl": law(kernel=kernel).icl,
            "icl_next": law(kernel=kernel, query="next").icl if follows else np.nan,
        }
    return {
        "kernel": name,
        "k2": found.k2,
        "k2_se": found.k2_error,
        "effective_length": worth,
        "effective_length_se": worth * found.k2_error / (found.k2 + rho),
        "k0": found.k0 if follows else np.nan,
        "k1": found.k1 if follows else np.nan,
        **{key: float(value) for key, value in errors.items()},
        "regime": kernel.regime("next" if follows else "independent").name,
    }
