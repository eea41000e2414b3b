"""Trained models against the context length: the claims."""

from collections.abc import Sequence

from icltheory.figures.extensions.context_length_data import END, MODELS, PANELS, STOPPED, TrainedContextLength
from icltheory.figures.figure import Claim
from icltheory.figures.trained import TrainedRow, pick

_ERRORS = 3.0  # standard errors: more than two, as the best of several lengths is chosen by the same data
_ENOUGH = 5  # seeds
_WHEN = {END: "trained to the end", STOPPED: "stopped by the validation error"}
_WORDS = {
    "linear": "full linear attention",
    "softmax": "softmax attention",
    "softmax+MLP": "softmax attention with an MLP",
}


def claims(parameters: TrainedContextLength, rows: Sequence[TrainedRow]) -> list[Claim]:
    """Measure all claims."""
    return [_has_a_best_length(parameters, rows, model, when) for when in _WHEN for model in MODELS]


def _has_a_best_length(parameters: TrainedContextLength, rows: Sequence[TrainedRow], model: str, when: str) -> Claim:
    curve = pick(rows, PANELS[when], kind="training", model=model, measured="icl")
    best = min(curve, key=lambda row: row.value)
    (rise,) = pick(rows, PANELS["rise"], kind="training", model=model, measured=when, x=best.x)
    last = curve[-1]
    enough = parameters.seeds >= _ENOUGH
    return Claim(
        statement=f"Contexts can be too long for {_WORDS[model]} on few tasks, {_WHEN[when]}",
        source="the question of Lu et al.'s outlook; for linear attention, theory.optimal_context_length",
        expected=f"ICL error at the longest context above the least by {_ERRORS:g} standard errors, paired by seeds",
        measured=f"{best.value:.3f} ± {best.error:.3f} at alpha = {best.x:g}, {last.value:.3f} ± {last.error:.3f} at "
        f"{last.x:g}; rise {rise.value:.3f} ± {rise.error:.3f}" + ("" if enough else f"; {_ENOUGH} seeds are wanted"),
        holds=rise.value > _ERRORS * rise.error if enough else None,
    )
