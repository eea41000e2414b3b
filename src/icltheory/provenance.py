"""Where a result comes from: versions, machine, code state, and the command that made it."""

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import icltheory
from icltheory.resources import available_memory

_REQUIRED = ("numpy", "scipy", "matplotlib", "jinja2", "rich", "tyro", "threadpoolctl", "psutil")
_OPTIONAL = {"torch": "transformers", "dash": "the explorer", "xarray": "export of sweeps", "dask": "clusters"}


def record() -> dict[str, Any]:
    """Return all that is needed to tell two results apart, as plain values."""
    import psutil

    from icltheory.simulate.batch import cores

    return {
        "icltheory": icltheory.__version__,
        "commit": _commit(),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": cores(),
        "memory_bytes": psutil.virtual_memory().total,
        "memory_available_bytes": available_memory(),
        "blas": blas(),
        "packages": {name: _version(name) for name in _REQUIRED},
        "optional": {name: _version(name) for name in _OPTIONAL},
    }


def optional_parts() -> dict[str, str]:
    """Return what each optional package is for."""
    return dict(_OPTIONAL)


def blas() -> list[dict[str, Any]]:
    """Return the linear-algebra libraries that are loaded, with their kernels and thread counts."""
    import scipy.linalg  # noqa: F401  (loads scipy's own copy)
    import threadpoolctl

    keys = ("internal_api", "version", "architecture", "num_threads")
    return [{key: pool.get(key) for key in keys} for pool in threadpoolctl.threadpool_info()]


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """Return the git commit of the source tree, with a mark if it was changed; None for an installed copy."""
    root = Path(icltheory.__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        head, changes = (
            subprocess.run(
                ["git", "-C", str(root), *words], capture_output=True, text=True, check=True, timeout=10
            ).stdout.strip()
            for words in (["rev-parse", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return head + (" with local changes" if changes else "")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def environment_threads() -> dict[str, str]:
    """Return the environment variables that govern threads, where set."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_CORETYPE")
    return {name: os.environ[name] for name in names if name in os.environ}
