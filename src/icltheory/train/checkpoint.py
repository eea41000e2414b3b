"""Checkpoints: written whole or not at all, read on any device, and never a program."""

import os
from pathlib import Path
from typing import Any

import torch

NAME = "checkpoint.pt"


def save(folder: Path, content: dict[str, Any]) -> None:
    """Write a checkpoint in place of the one before; a kill at any moment leaves one of the two."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{NAME}.{os.getpid()}"
    with draft.open("wb") as file:
        torch.save(content, file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(folder / NAME)


def read(folder: Path, device: torch.device | str = "cpu") -> dict[str, Any] | None:
    """Return a folder's checkpoint with its tensors on the device, or None if there is none.

    Raises
    ------
    ValueError
        If the file is damaged or not one of ours.
    """
    path = folder / NAME
    if not path.exists():
        return None
    try:
        content: Any = torch.load(path, map_location=device, weights_only=True)
    except Exception as error:
        raise ValueError(
            f"{path} cannot be read ({type(error).__name__}): is it damaged, or not a checkpoint?"
        ) from error
    if not isinstance(content, dict) or "training" not in content:
        raise ValueError(f"{path} is not a checkpoint of icltheory; delete it or choose another folder")
    return content
