"""The command `icl curve`."""

import itertools

import numpy as np

from icltheory.cli.arguments import OptionalInt, OptionalPath, Values, parse_values
from icltheory.cli.output import Format, emit, saved
from icltheory.points import ratios
from icltheory.tables import Table

_TAU = parse_values("0.2:2.4:12")


def curve(
    tau: Values = _TAU,
    alpha: Values = (1.0,),
    kappa: Values = (0.5,),
    rho: Values = (0.01,),
    ridge: Values = (0.0,),
    d: OptionalInt = None,
    format: Format = "table",
    out: OptionalPath = None,
    plot: OptionalPath = None,
) -> None:
    """Print the theory of linear attention, as d -> infinity or at a given d, at all combinations of values.

    Values are numbers (0.5, inf), lists (1,10,100) or ranges START:STOP:COUNT[:log].

    Example: icl curve --tau 0.2:3:57 --alpha 1,10,100 --kappa 0.5 --plot curve.png

    Args:
        tau: Pretraining sequences / d^2; inf is allowed.
        alpha: Context length / d.
        kappa: Pretraining tasks / d; inf means a fresh task for every sequence.
        rho: Label-noise variance (the signal variance is 1).
        ridge: Penalty lambda, multiplied by n/d in the objective; 0 is ridgeless.
        d: Token dimension: ratios are rounded to sizes, and the finite-size theory is evaluated there.
        format: Table for people, or CSV or JSON.
        out: Write the table there instead of to standard output.
        plot: Draw ICL (full) and IDG (dashed) error to this PNG, PDF or SVG file, against the longest list.
    """
    from icltheory.theory import finite_size, linear_attention

    t, a, k, r, penalty = np.array(list(itertools.product(tau, alpha, kappa, rho, ridge))).T
    if d is None:
        law, where = linear_attention(tau=t, alpha=a, kappa=k, rho=r, ridge=penalty), "d -> infinity"
    else:
        law, where = finite_size(d=d, tau=t, alpha=a, kappa=k, rho=r, ridge=penalty), f"d = {d}, realised ratios"
        t, a, k = ratios(d=d, tau=t, alpha=a, kappa=k, context_length=None, n_sequences=None, n_tasks=None)
    results = ("icl", "idg", "gap", "train", "effective_ridge", "converged")
    parameters = {"tau": t, "alpha": a, "kappa": k, "rho": r, "ridge": penalty}
    table = Table({**parameters, **{name: getattr(law, name) for name in results}})
    emit(table, format, out, f"theory, {where}; penalty (n/d) ridge |Gamma|^2")
    if plot is not None:
        from icltheory.figures.curves import plot_curves

        saved(plot, lambda: plot_curves(table, list(parameters)).savefig(plot, dpi=150))
