"""Without PyTorch, the modules that import it have no doctests that could be run."""

from importlib.util import find_spec
from pathlib import Path

_PURE = ("__init__.py", "config.py", "exponent.py", "jobs.py", "result.py", "schedule.py")

collect_ignore: list[str] = []
if find_spec("torch") is None:
    train = Path(__file__).parent / "src" / "icltheory" / "train"
    collect_ignore = [str(path) for path in [*train.glob("*.py"), train / "models"] if path.name not in _PURE]
