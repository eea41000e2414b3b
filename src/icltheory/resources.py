"""What this machine offers: memory that may still be used, and BLAS threads."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any


def available_memory() -> int:
    """Return the bytes that can still be allocated: free memory, or less inside a container with a limit."""
    import psutil

    free = int(psutil.virtual_memory().available)
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        try:
            free = min(free, int(Path(limit).read_text()) - int(Path(used).read_text()))
        except (OSError, ValueError):  # no such control group, or "max": no limit
            continue
    return free


def require_memory(needed: float, purpose: str, advice: str) -> None:
    """Raise MemoryError, with both figures, if `needed` bytes exceed what is available."""
    free = available_memory()
    if needed > free:
        raise MemoryError(f"{purpose} needs about {gigabytes(needed)}, and {gigabytes(free)} are available; {advice}")


def gigabytes(size: float) -> str:
    """Return a size in words."""
    return f"{size / 1e9:.3g} GB" if size >= 1e8 else f"{size / 1e6:.3g} MB"


class Blas:
    """The threads of the linear algebra: how many it may use now, and a way to limit them for a while.

    Attributes
    ----------
    threads : int
        As set by OPENBLAS_NUM_THREADS, threadpoolctl and the like.
    """

    def __init__(self) -> None:
        import threadpoolctl

        self._controller = threadpoolctl.ThreadpoolController()
        counts = [pool["num_threads"] for pool in self._controller.info() if pool["user_api"] == "blas"]
        self.threads: int = max(counts, default=1)

    def limit(self, threads: int) -> AbstractContextManager[Any]:
        """Return a context in which the whole process uses so many."""
        context: AbstractContextManager[Any] = self._controller.limit(limits=threads, user_api="blas")
        return context
