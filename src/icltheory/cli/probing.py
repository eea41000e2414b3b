"""The command `icl probe`."""

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro

from icltheory.cli.arguments import OptionalFloat, OptionalInt, OptionalPath, check_counts
from icltheory.cli.output import Format, emit, saved, write

Device = Annotated[str | None, tyro.conf.arg(metavar="DEVICE")]


def probe(
    predictor: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="PREDICTOR")],
    d: int,
    rho: float,
    alpha: OptionalFloat = None,
    context_length: OptionalInt = None,
    kappa: OptionalFloat = None,
    n_tasks: OptionalInt = None,
    tasks_file: OptionalPath = None,
    tasks: Literal["sphere", "gaussian"] = "sphere",
    n_prompts: int = 2000,
    convention: Literal["scaled", "unscaled"] = "scaled",
    backend: Literal["numpy", "torch"] | None = None,
    dtype: Literal["float64", "float32", "bfloat16", "float16"] | None = None,
    device: Device = None,
    batch_size: int = 256,
    seed: int = 0,
    format: Format = "table",
    out: OptionalPath = None,
    plot: OptionalPath = None,
) -> None:
    """Say whether a predictor memorises its pretraining tasks (dMMSE) or generalises (ridge regression).

    PREDICTOR is ridge, dmmse, an .npy file with linear attention's Gamma (numpy.save("gamma.npy", sim.gamma)), an .npz
    file that contains it as "gamma", the folder of a finished icl train --out, or file.py:function or
    package.module:function: a function of (x, y, query), of shapes (b, l, d), (b, l), (b, d), that returns (b,) or, at
    every prefix, (b, l+1). Files with functions are run. For a folder, give the sizes, the --convention and the --seed
    that it was trained with.

    The pretraining tasks are those of --tasks-file, or those that simulate, or stream_prompts, has at --seed.

    Example: icl probe gamma.npy --d 10 --alpha 2 --kappa 4 --rho 0.01 --seed 0

    Args:
        predictor: What to probe.
        d: Token dimension.
        rho: Label-noise variance (the signal variance is 1).
        alpha: Context length / d, rounded to a length.
        context_length: The length itself.
        kappa: Pretraining tasks / d, rounded to a number of tasks; inf means a fresh task for every sequence.
        n_tasks: The number itself.
        tasks_file: The pretraining tasks: an .npy file with an array (k, d), in place of their number.
        tasks: Law of fresh tasks, and of the pretraining tasks of the seed.
        n_prompts: Test prompts of each law.
        convention: Unscaled if the predictor is used to tokens N(0, I) and labels of variance d. Rho stays as above.
        backend: Kind of array that the predictor gets; by default torch tensors for a torch.nn.Module, else numpy.
        dtype: Their type; by default that of the module's parameters, or float64 in numpy, float32 in torch.
        device: Where torch tensors are; by default where the module's parameters are.
        batch_size: Prompts that the predictor gets at a time.
        seed: Seed of the pretraining, and of the test prompts, which are others.
        format: Table for people, or CSV or JSON.
        out: Write the table there instead of to standard output.
        plot: Draw errors and distances to this PNG, PDF or SVG file.
    """
    from icltheory import conventions, probing
    from icltheory.prompts.pretraining import pretraining_tasks

    check_counts(seed, n_prompts=n_prompts, batch_size=batch_size)
    known: Any = None
    if tasks_file is not None:
        known = _tasks(tasks_file)
        if kappa is not None or n_tasks is not None:
            raise ValueError("give --tasks-file, or --kappa or --n-tasks, not both")
    elif predictor == "dmmse":
        known = pretraining_tasks(d=d, kappa=kappa, n_tasks=n_tasks, tasks=tasks, rng=seed)
    noise = float(conventions.convention(convention).sigma(rho, d)) ** 2
    asked = probing.load_predictor(predictor, noise=noise, tasks=known)
    given = {"kappa": kappa, "n_tasks": n_tasks} if tasks_file is None else {"pretraining_tasks": known}
    found = probing.probe(
        asked,
        d=d,
        alpha=alpha,
        rho=rho,
        context_length=context_length,
        tasks=tasks,
        n_prompts=n_prompts,
        convention=convention,
        backend=backend,
        dtype=dtype,
        device=device,
        batch_size=batch_size,
        rng=seed,
        **given,
    )
    if format == "table":
        write(str(found), out)
    else:
        emit(found.table(), format, out, f"{found.sizes}; {found.verdict}", found.conventions)
    if plot is not None:
        from icltheory.probing.picture import draw

        saved(plot, lambda: draw(found, predictor).savefig(plot, dpi=150))


def _tasks(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} must be an .npy file with an array of shape (k, d): {error}") from None
