"""Predictors that come with the tool, and those that a command line can name."""

import importlib
import importlib.util
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import Floats
from icltheory.probing.asking import Array, Predictor

_PICKLES = (".pkl", ".pickle", ".joblib", ".pt", ".pth", ".pt2", ".ckpt", ".bin")
_LISTED = 12
_CHECKPOINT = "checkpoint.pt"  # as in icltheory.train.checkpoint, which needs PyTorch
_NAMES = (
    '"ridge", "dmmse", gamma.npy, file.npz (an array "gamma"), a folder of icl train, file.py:function, or '
    "package.module:function"
)


def linear_attention(gamma: ArrayLike) -> Predictor:
    r"""Return the predictor of a reduced linear attention model, such as ``simulate.linear_attention(...).gamma``.

    .. math:: \hat y = x_{l+1}^\top \Gamma r , \qquad
              r = \Big[\frac dl \sum_{i\le l} y_i x_i,\ \frac1l \sum_{i\le l} y_i^2\Big] ,

    for prompts of any length l, in the convention of this package.

    Parameters
    ----------
    gamma : array of shape (d, d + 1)
        :math:`\Gamma`.

    Returns
    -------
    function (x, y, query) -> (b,)
        Of numpy arrays of shapes (b, l, d), (b, l) and (b, d).

    Raises
    ------
    ValueError, TypeError
        If gamma is not a finite array of that shape.

    References
    ----------
    Lu, Letey, Zavatone-Veth, Maiti, Pehlevan, PNAS 122(28), 2025 (arXiv:2405.11751).

    Examples
    --------
    >>> import icltheory as icl
    >>> at = dict(d=8, alpha=2.0, kappa=0.5, rho=0.1, rng=0)
    >>> sim = icl.simulate.linear_attention(**at, tau=4.0, ridge=1e-3)
    >>> found = icl.probe(linear_attention(sim.gamma), **at)
    >>> abs(found.icl.error.value - sim.icl) < 4 * found.icl.error.se
    True
    """
    value = np.asarray(gamma)
    if value.dtype.kind not in "iuf":
        raise TypeError(f"gamma must be an array of real numbers, got {value.dtype} in {gamma!r}")
    if value.ndim != 2 or not value.shape[0] or value.shape[1] != value.shape[0] + 1:
        raise ValueError(f"gamma must have shape (d, d + 1), got {value.shape}")
    if not np.all(np.isfinite(value)):
        raise ValueError("gamma must be finite, got nan or inf")
    weights = value.astype(np.float64)

    def predict(x: Array, y: Array, query: Array) -> Floats:
        d, length = len(weights), x.shape[1]
        if x.shape[2] != d:
            raise ValueError(f"gamma is for tokens of dimension d = {d}, got x of shape {x.shape}")
        r = np.concatenate(
            [(d / length) * (y[:, None, :] @ x)[:, 0, :], np.sum(y**2, axis=1, keepdims=True) / length], axis=1
        )
        prediction: Floats = np.sum((query @ weights) * r, axis=1)
        return prediction

    return predict


def ridge(rho: float) -> Predictor:
    """Return ridge regression with the penalty rho, at every prefix: ``bayes.ridge(..., at="next")``."""
    from icltheory import bayes

    return lambda x, y, query: bayes.ridge(x, y, query, rho, at="next")


def dmmse(tasks: Array, rho: float) -> Predictor:
    """Return the posterior mean over the given tasks, at every prefix: ``bayes.discrete(..., at="next")``."""
    from icltheory import bayes

    return lambda x, y, query: bayes.discrete(x, y, query, tasks, rho, at="next")


def load_predictor(name: str, *, noise: float | None = None, tasks: Array | None = None) -> Predictor:
    """Return the predictor that a name stands for.

    A module or file with a function runs as any program does: load only what you would run. Formats that hide programs
    (pickles, and with them all of PyTorch's) are refused; of a folder's checkpoint only numbers are read.

    Parameters
    ----------
    name : str
        "ridge" or "dmmse"; the path of an .npy file with linear attention's Gamma, or of an .npz file that has it under
        the name "gamma"; a folder written by ``icl train --out`` or ``icltheory.train.train(..., folder=...)``, for its
        finished model, a torch.nn.Module in the convention that it was trained in; "path/file.py:function" or
        "package.module:function", where the function may be any callable of (x, y, query), a torch.nn.Module among
        them.
    noise : float, optional
        Noise variance, for "ridge" and "dmmse"; in the convention of the labels that they will be given.
    tasks : array of shape (k, d), optional
        For "dmmse".

    Raises
    ------
    FileNotFoundError, ImportError, ValueError, TypeError
        Naming what was given, and what to give instead.
    """
    if name in ("ridge", "dmmse"):
        if noise is None:
            raise TypeError(f"the predictor {name!r} needs noise, its noise variance")
        if name == "ridge":
            return ridge(noise)
        if tasks is None:
            raise ValueError('the predictor "dmmse" needs the list of pretraining tasks: kappa must be finite')
        return dmmse(tasks, noise)
    path = Path(name)
    if (path / _CHECKPOINT).is_file():
        from icltheory import train

        trained: Predictor = train.load(path).model
        return trained
    ending = path.suffix.lower()
    if ending in (".npy", ".npz"):
        return linear_attention(_gamma(path))
    if ending in _PICKLES:
        raise ValueError(
            f"{name}: a {ending} file may contain a pickle, which runs whatever program it holds as it is read. Write "
            "a file.py with a function of (x, y, query) that builds your model, loads its weights (for PyTorch: "
            "torch.load(..., weights_only=True)) and returns its predictions, and give file.py:function; of a training "
            "by icl train, give the folder"
        )
    where, colon, attribute = name.rpartition(":")
    if not colon or not where or not attribute:
        missing = f"; for {name} add :function, the name of what to call" if ending == ".py" else ""
        raise ValueError(f"predictor must be {_NAMES}, got {name!r}{missing}")
    found: Any = _file_module(Path(where)) if where.endswith(".py") else _module(where)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ValueError(f"{where} has no {attribute!r}; it has {_callables(found)}")
        found = getattr(found, part)
    if isinstance(found, type) or not callable(found):
        raise TypeError(f"{name} must be a function of (x, y, query) or an instance with a call, got {found!r}")
    predictor: Predictor = found
    return predictor


def _gamma(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if not isinstance(loaded, np.lib.npyio.NpzFile):
                return loaded
            if "gamma" not in loaded:
                raise ValueError(f'must contain an array "gamma", and contains {sorted(loaded)}')
            return loaded["gamma"]
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        unread = "pickle" in str(error).lower()  # which numpy suspects in all that it does not know
        reason = "not an array of numbers (pickles are refused: they could run any program)" if unread else error
        raise ValueError(f"{path}: {reason}; save one with numpy.save(path, sim.gamma)") from None


def _file_module(path: Path) -> Any:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    folder = str(path.resolve().parent)
    if folder not in sys.path:  # as for a script: its neighbours can be imported, also later
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # dataclasses and the like look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ImportError(f"{path} failed to run: {type(error).__name__}: {error}") from error
    return module


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"cannot import {name!r} ({error}); for a file give path/file.py:function") from error


def _callables(module: Any) -> str:
    names = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
    return ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "") if names else "nothing to call"
