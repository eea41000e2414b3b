"""What the commands take: lists and ranges of values, counts, and checks of both."""

import math
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro


def parse_values(text: str) -> tuple[float, ...]:
    """Read "1,10,inf", "0.2:2:10" (ten values, linear) or "1:1000:4:log" (four values, geometric).

    Examples
    --------
    >>> parse_values("1:1000:4:log")
    (1.0, 10.0, 100.0, 1000.0)
    """
    values: list[float] = []
    for part in text.split(","):
        pieces = part.split(":")
        try:
            if len(pieces) == 1:
                values.append(float(part))
                continue
            if len(pieces) not in (3, 4) or (len(pieces) == 4 and pieces[3] != "log"):
                raise ValueError
            low, high, count = float(pieces[0]), float(pieces[1]), int(pieces[2])
            if count < 1 or not (math.isfinite(low) and math.isfinite(high)):
                raise ValueError
            if len(pieces) == 4 and not (low > 0 and high > 0):
                raise ValueError
        except ValueError:
            raise ValueError(
                f"cannot read {part!r}: give numbers (0.5 or inf), lists (1,10,100) or ranges START:STOP:COUNT[:log]"
            ) from None
        space = np.geomspace if len(pieces) == 4 else np.linspace
        values.extend(float(f"{value:.12g}") for value in space(low, high, count))
    return tuple(values)


def _show(values: tuple[float, ...]) -> str:
    return ",".join(f"{value:g}" for value in values)


Values = Annotated[
    tuple[float, ...],
    tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="VALUES",
        instance_from_str=lambda words: parse_values(words[0]),
        is_instance=lambda value: isinstance(value, tuple),
        str_from_instance=lambda values: [_show(values)],
    ),
]

OptionalPath = Annotated[Path | None, tyro.conf.arg(metavar="PATH")]
OptionalInt = Annotated[int | None, tyro.conf.arg(metavar="INT")]
OptionalFloat = Annotated[float | None, tyro.conf.arg(metavar="FLOAT")]


def processes(workers: int | None) -> int:
    """Return the number of processes asked for, by default one a core."""
    from icltheory.simulate.batch import cores

    return cores() if workers is None else workers


def check_counts(seed: int, **counts: int) -> None:
    """Raise an error that names the seed or a count that is too small."""
    if seed < 0:
        raise ValueError(f"seed must be at least 0, got {seed}")
    for name, count in counts.items():
        if count < 1:
            raise ValueError(f"{name} must be at least 1, got {count}")
