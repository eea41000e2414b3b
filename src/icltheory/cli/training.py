"""The command `icl train`."""

import json
import math
import re
import sys
from dataclasses import asdict, field, fields, make_dataclass
from inspect import cleandoc
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_type_hints

import numpy as np
import tyro

from icltheory.cli.arguments import OptionalInt
from icltheory.cli.output import saved
from icltheory.cli.probing import Device
from icltheory.conventions import SCALED
from icltheory.probing.verdict import plus_minus
from icltheory.tables import Table
from icltheory.train.config import Data, Model, Optimization, Training, from_plain

if TYPE_CHECKING:
    from icltheory.points import Risk
    from icltheory.train.compare import Comparison
    from icltheory.train.result import Record, Trained

_HELP = {  # where the docstring explains two fields in one, or what only a program can give
    "alpha": "Or the context length / d, rounded to a length.",
    "n_sequences": "Pretraining sequences of a fixed data set, seen again and again; without, fresh ones at each step.",
    "tau": "Or the pretraining sequences / d^2, rounded to a number of sequences.",
    "n_tasks": "Pretraining tasks; without, or with inf, a fresh task for every sequence.",
    "kappa": "Or the pretraining tasks / d, rounded to a number of tasks; inf is allowed.",
    "xi": "Correlate the tokens of a prompt like exp(-distance/XI).",
    "gamma": "Or like (1 + distance)^-GAMMA.",
    "optimizer": "Adam with decoupled weight decay, or gradient descent with momentum.",
}


def _flags(configuration: type) -> type:
    """Return a configuration as flags, with its docstring as their help.

    Nothing is checked there: what is wrong is said by the configuration itself, outside of tyro.
    """
    types = get_type_hints(configuration)
    about, _, attributes = cleandoc(configuration.__doc__ or "").partition("\nAttributes\n")
    parts = re.split(r"^(\w[\w, ]*) : .*$", attributes, flags=re.MULTILINE)
    helps = dict(zip(parts[1::2], map(_plain, parts[2::2]), strict=True)) | _HELP
    given: list[Any] = []
    for each in fields(configuration):
        kind, text, metavar, aliases = types[each.name], helps.get(each.name, ""), None, None
        if NoneType in get_args(kind):
            metavar = get_args(kind)[0].__name__.upper()
        if each.name == "name":  # of the model; the command line has no model of one's own
            kind = Literal[tuple(name for name in get_args(kind) if name != "own")]
            text, metavar, aliases = text.partition('; "own"')[0] + ".", "NAME", ("--model",)
        flag = tyro.conf.arg(help=text, metavar=metavar, aliases=aliases)
        given.append((each.name, Annotated[kind, flag], field(default=each.default)))
    made = make_dataclass(configuration.__name__, given, kw_only=True)
    made.__doc__ = _plain(about)
    return made


def _plain(text: str) -> str:
    """Return a docstring's text without its mark-up, in one line."""
    for mark, word in {":math:": "", "`": "", r"\langle": "<", r"\rangle": ">", "\\": ""}.items():
        text = text.replace(mark, word)
    return " ".join(text.split())


def train(
    data: Annotated[Data, tyro.conf.arg(constructor=_flags(Data))],
    model: Annotated[Model, tyro.conf.arg(constructor=_flags(Model))],
    optimization: Annotated[Optimization, tyro.conf.arg(constructor=_flags(Optimization))],
    test: int = Training.test,
    dtype: Literal["float32", "float64"] = Training.dtype,
    seed: int = Training.seed,
    init_seed: OptionalInt = None,
    device: Device = None,
    out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None,
) -> None:
    """Train a transformer to learn linear regression in context, and compare it with theory (needs PyTorch).

    With --tau or --n-sequences the data are a fixed set, else sequences are fresh at every step. What is reported are
    the training error, and the errors on fresh tasks (ICL) and on the pretraining tasks with fresh tokens (IDG).

    With --out, the same command goes on where it was interrupted, and icl probe FOLDER probes the model.

    Example: icl train --d 10 --alpha 1 --tau 3 --rho 0.01 --name linear --steps 2000 --out run

    Args:
        test: Prompts of each test: fresh tasks, and fresh tokens on the pretraining tasks.
        dtype: Precision of weights and data.
        seed: Seed of the data (its tasks are those of simulate and probe), the initial weights and the batches' order.
        init_seed: Seed of the initial weights and the batches' order alone; by default --seed.
        device: Where to train; by default cuda where there is one, else cpu.
        out: Folder for checkpoint.pt, history.csv and training.json; if it holds this very training, it goes on.
    """
    wanted = Training(
        data=Data(**vars(data)),
        model=Model(**vars(model)),
        optimization=Optimization(**vars(optimization)),
        test=test,
        dtype=dtype,
        seed=seed,
        init_seed=init_seed,
    )
    theory, floor = _theories(wanted.data)
    try:
        import torch  # noqa: F401
    except ImportError:
        print("icl train needs PyTorch: pip install 'icltheory[train]'", file=sys.stderr)
        raise SystemExit(2) from None
    from icltheory.train.loop import train as run

    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    begun, whole = _kept(out, wanted)
    if begun:
        what = "all of this training: nothing is trained" if whole else f"this training up to step {begun}: it goes on"
        print(f"{out} holds {what}", file=sys.stderr)
    try:
        trained = run(wanted, folder=out, device=device, report=lambda record: _tell(record, wanted))
    except KeyboardInterrupt:
        print(f"icl: interrupted; {_what_is_kept(out, wanted)}", file=sys.stderr)
        raise SystemExit(130) from None
    closed = None
    if wanted.data.n_sequences is not None and wanted.model.name in ("reduced", "linear"):
        from icltheory.train.compare import compare_closed_form

        closed = compare_closed_form(trained)
    if out is not None:
        _write(trained, closed, out, again=whole)
    print(_summary(trained, closed, theory, floor), end="")


def _theories(data: Data) -> "tuple[Risk[Any] | None, float | None]":
    """Return the errors of linear attention fitted to a fixed set, and that of Bayes ridge, where they are known."""
    from icltheory.theory import bayes_ridge, linear_attention

    floor = float(bayes_ridge(alpha=data.length / data.d, rho=data.rho)) if data.kernel is None else None
    if data.n_sequences is None:
        return None, floor
    return linear_attention(**data.point().ratios(), kernel=data.kernel, query=data.query), floor


def _kept(folder: Path | None, training: Training) -> tuple[int, bool]:
    """Return how many steps of this training a folder holds, and whether that is all of it."""
    from icltheory.train import checkpoint

    found = None if folder is None else checkpoint.read(folder)
    if found is None or from_plain(found["training"]) != training:
        return 0, False
    return found["state"]["step"], found["result"] is not None


def _what_is_kept(folder: Path | None, training: Training) -> str:
    if folder is None:
        return "nothing is kept (give --out FOLDER to go on another time)"
    step, _ = _kept(folder, training)
    if not step:
        return f"{folder} has no checkpoint yet (see --checkpoint-every)"
    return f"the checkpoint of step {step} is kept in {folder}: the same command goes on from there"


def _tell(record: "Record", training: Training) -> None:
    """Say on standard error how far the training is."""
    steps = str(training.optimization.steps)
    parts = [
        f"step {record.step:>{len(steps)}}/{steps}",
        f"learning rate {record.learning_rate:.2e}",
        f"loss {record.loss:#.4g}",
    ]
    if math.isfinite(record.train):
        parts.append(f"training error {record.train:#.4g}")
    if math.isfinite(record.validation):
        parts.append(f"validation {plus_minus(record.validation, record.validation_se)}")
    print("  ".join(parts), file=sys.stderr, flush=True)


def _summary(trained: "Trained", closed: "Comparison | None", theory: "Risk[Any] | None", floor: float | None) -> str:
    """Return the table of errors beside the closed form and the theory, and how the training went."""
    data, settings = trained.training.data, trained.training.optimization
    fixed = f"{data.n_sequences} sequences (tau = {data.n_sequences / data.d**2:g})" if data.n_sequences else None
    tasks = "a fresh task for every sequence" if data.n_tasks == math.inf else f"{data.n_tasks} pretraining tasks"
    correlated = "" if data.kernel is None else f", {_decay(data)}, query {data.query}"
    notes = [
        f"{trained.training.model.name}, d = {data.d}, {data.length} examples (alpha = {data.length / data.d:g}), "
        f"{fixed or 'fresh sequences'}, {tasks} (kappa = {(data.n_tasks or math.inf) / data.d:g}), "
        f"rho = {data.rho:g}, {data.tasks} tasks{correlated}",
        f"{trained.training.test} prompts of each test, ± standard error; convention: {SCALED.statement}",
    ]
    columns = {
        "": [f"training {'error' if fixed else 'loss'}", "fresh tasks (ICL)", "pretraining tasks (IDG)"],
        "trained": [f"{trained.train:.4g}", plus_minus(*trained.icl.query), plus_minus(*trained.idg.query)],
    }
    if closed is not None:
        columns["closed form"] = [f"{closed.train:.4g}", *(plus_minus(*e.query) for e in (closed.icl, closed.idg))]
        gaps = [f"{closed.gap_train:+.2g}", *(plus_minus(*gap.query) for gap in (closed.gap_icl, closed.gap_idg))]
        columns["trained - closed form"] = gaps
        notes.append("closed form: the reduced model <Gamma, H> of least squares and least norm, on the same data")
    if theory is not None:
        columns["linear attention"] = [f"{float(error):.4g}" for error in (theory.train, theory.icl, theory.idg)]
        notes.append("linear attention: theory for d -> infinity at this point, fitted to the set without a penalty")
    if floor is not None:
        columns["Bayes ridge"] = ["-", f"{floor:.4g}", f"{floor:.4g}"]
        notes.append("Bayes ridge: theory for d -> infinity; on fresh tasks no predictor is better")
    table = Table({name: np.array(cells) for name, cells in columns.items()}).render("table", "\n# ".join(notes))
    why = {
        "steps": "all that were asked for",
        "patience": f"no new least validation error in {settings.patience} evaluations",
        "stop_at": f"the training error is below {settings.stop_at}",
    }[trained.stopped]
    weights = "" if trained.selected == trained.step else f"; the weights are those of step {trained.selected}"
    speed = f"{trained.seconds:.1f} s, {trained.tokens_per_second:,.0f} tokens/s"
    return f"{table}\nstopped after {trained.step} steps: {why}{weights}; {speed}\n"


def _decay(data: Data) -> str:
    how = f"exp(-distance/{data.xi:g})" if data.xi is not None else f"(1 + distance)^-{data.gamma:g}"
    return f"tokens correlated like {how}"


def _write(trained: "Trained", closed: "Comparison | None", folder: Path, *, again: bool) -> None:
    """Write the history and the record beside the checkpoint, unless they are there."""
    from icltheory.provenance import record

    history, facts = folder / "history.csv", folder / "training.json"
    if again and history.exists() and facts.exists():
        return
    content = {
        "training": asdict(trained.training),
        "key": trained.training.key(),
        "convention": SCALED.statement,
        "result": {
            "train": trained.train,
            **{f"{name}{end}": value for name in ("icl", "idg") for end, value in _both(getattr(trained, name))},
            **{
                name: getattr(trained, name) for name in ("step", "selected", "stopped", "seconds", "tokens_per_second")
            },
        },
        "provenance": record(),
    }
    if closed is not None:
        content["closed_form"] = {
            "train": closed.train,
            **{
                f"{name}{end}": value
                for name in ("icl", "idg", "gap_icl", "gap_idg", "distance")
                for end, value in _both(getattr(closed, name))
            },
            "gap_train": closed.gap_train,
        }
    text = json.dumps(_finite(content), indent=2, ensure_ascii=False) + "\n"
    saved(history, lambda: history.write_text(trained.table().render("csv", ""), encoding="utf-8"))
    saved(facts, lambda: facts.write_text(text, encoding="utf-8"))


def _both(estimate: Any) -> list[tuple[str, float]]:
    return list(zip(("", "_se"), estimate.query, strict=True))


def _finite(value: Any) -> Any:
    # JSON has no infinity; a string is read back by float() in every language
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value
