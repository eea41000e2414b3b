"""Files of token sequences, as users have them: arrays or tables."""

from pathlib import Path

import numpy as np

from icltheory.points import Floats


def read_sequences(path: Path) -> Floats:
    """Return the token sequences of a file as an array of shape (n, m, d).

    Parameters
    ----------
    path : Path
        An .npy file with such an array, or a .csv file with a token in each row: the number or name of its sequence,
        then its d coordinates. Tokens of a sequence stand in order; a first row of words is taken for a header.

    Raises
    ------
    ValueError
        If the file is not one of these, or its sequences differ in length.
    OSError
        If it cannot be read.
    """
    if path.suffix == ".npy":
        try:
            found = np.load(path, allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise ValueError(f"{path} must be an .npy file with an array of shape (n, m, d): {error}") from None
        if found.ndim != 3 or found.dtype.kind not in "iuf":
            raise ValueError(
                f"{path} must have an array of numbers of shape (n, m, d): n sequences of m tokens in d dimensions, "
                f"got {found.dtype} of shape {found.shape}"
            )
        return np.asarray(found, dtype=np.float64)
    if path.suffix == ".csv":
        return _from_table(path)
    raise ValueError(f"token sequences must be in an .npy or a .csv file, got {path}")


def _from_table(path: Path) -> Floats:
    import csv

    with path.open(newline="", encoding="utf-8") as file:
        lines = [line for line in csv.reader(file) if line]
    sequences: dict[str, list[list[float]]] = {}
    for number, line in enumerate(lines, start=1):
        try:
            token = [float(cell) for cell in line[1:]]
        except ValueError:
            if number == 1:
                continue
            raise ValueError(
                f"{path} must have numbers after the first column, got {line[1:]} in row {number}"
            ) from None
        sequences.setdefault(line[0], []).append(token)
    sizes = {len(token) for tokens in sequences.values() for token in tokens}
    lengths = {len(tokens) for tokens in sequences.values()}
    if len(sizes) != 1 or len(lengths) != 1 or sizes == {0}:
        raise ValueError(
            f"{path} must have sequences of one length, of tokens of one dimension: in each row the sequence, then the "
            f"coordinates; got {len(sequences)} sequences of {sorted(lengths)} tokens of {sorted(sizes)} coordinates"
        )
    return np.array(list(sequences.values()))
