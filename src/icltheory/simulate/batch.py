"""Many simulations at once: every point a number of times, on several processes, with seeds of their own."""

import hashlib
import math
import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from icltheory.points import Point
from icltheory.prompts.kernels import Kernel
from icltheory.prompts.sampling import Assignment
from icltheory.prompts.tasks import TaskLaw
from icltheory.simulate.run import linear_attention
from icltheory.store import Store

Result = TypeVar("Result", covariant=True)
Value = TypeVar("Value")


class Work(Protocol[Result]):
    """Something to be run, perhaps in another process: a frozen dataclass of plain values, with a `seed` field."""

    @property
    def seed(self) -> int:
        """Root of its random stream."""

    def price(self) -> float:
        """Guess the cost relative to the others, to start with the dearest."""

    def run(self) -> Result:
        """Do it."""


def stream(seed: int, repetition: int, *names: object) -> np.random.SeedSequence:
    """Derive a random stream from all that names a job, so that order and company do not matter."""
    digest = hashlib.sha256(repr(names).encode()).digest()[:16]
    return np.random.SeedSequence([seed, repetition, *np.frombuffer(digest, dtype=np.uint32).tolist()])


@dataclass(frozen=True, kw_only=True)
class Job:
    """One simulation to be run: a point, how tasks are drawn, used and tested, and which of its repetitions this is.

    Covariances are given by their eigenvalues, in the basis of the tokens.
    """

    point: Point
    tasks: TaskLaw = "sphere"
    assignment: Assignment = "random"
    task_covariance: tuple[float, ...] | None = None
    test_task_covariance: tuple[float, ...] | None = None
    test_context_length: int | None = None
    kernel: Kernel | None = None
    query: Literal["independent", "next"] = "independent"
    test_kernel: Kernel | None = None
    test_query: Literal["independent", "next"] | None = None
    seed: int = 0
    repetition: int = 0

    def seed_sequence(self) -> np.random.SeedSequence:
        """Derive the random stream from all that bears on training: jobs that differ in the test share their draws."""
        names = (sorted(asdict(self.point).items()), self.tasks, self.assignment)
        structure = () if self.task_covariance is None else (self.task_covariance,)
        correlations = () if self.kernel is None else (self.kernel.name, self.query)
        return stream(self.seed, self.repetition, *names, *structure, *correlations)

    def price(self) -> float:
        """Guess the relative cost, to start with the dearest: more steps near the interpolation threshold."""
        n, p = self.point.n_sequences, self.point.n_parameters
        ratio = math.sqrt(min(n, p) / max(n, p))
        steps = 25.0 / math.sqrt((1.0 - ratio) ** 2 + min(self.point.ridge, 1.0) + 1e-4)
        return min(n * p * steps, min(n, p) ** 3)

    def run(self) -> "Outcome":
        """Simulate."""
        sim = linear_attention(
            d=self.point.d,
            n_sequences=self.point.n_sequences,
            context_length=self.point.context_length,
            n_tasks=self.point.n_tasks,
            rho=self.point.rho,
            ridge=self.point.ridge,
            tasks=self.tasks,
            assignment=self.assignment,
            task_covariance=self.task_covariance,
            test_task_covariance=self.test_task_covariance,
            test_context_length=self.test_context_length,
            kernel=self.kernel,
            query=self.query,
            test_kernel=self.test_kernel,
            test_query=self.test_query,
            rng=self.seed_sequence(),
        )
        return Outcome(
            icl=sim.icl,
            idg=sim.idg,
            train=sim.train,
            solver=sim.solver.name,
            steps=sim.solver.steps,
            residual=sim.solver.residual,
        )


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The risks of one simulation, and how its fit went."""

    icl: float
    idg: float
    train: float
    solver: str
    steps: int
    residual: float


def run_all(
    jobs: Sequence[Work[Value]],
    *,
    workers: int = 1,
    advance: Callable[[], object] = lambda: None,
    store: Store | None = None,
) -> list[Value]:
    """Run jobs and return their outcomes in order; the numbers do not depend on the number of workers.

    Parameters
    ----------
    jobs : sequence of Job, or of any other `Work`
    workers : int
        1 runs them here, with all BLAS threads; more start as many processes with one BLAS thread each (a script
        must then guard its entry point with ``if __name__ == "__main__"``).
    advance : callable
        Called once after every job.
    store : Store, optional
        Where outcomes are kept and looked up, of jobs that can be: those with ``key()`` (what names the outcome),
        ``decode(plain)`` (from ``asdict`` of an outcome back to it) and ``kept_in(folder)`` (the job with a folder for
        its state while it is not done).
    """
    jobs = list(jobs)
    outcomes: dict[int, Value] = {}
    keys: dict[int, str] = {}
    for i, job in enumerate(jobs):
        if store is not None and hasattr(job, "key"):
            storable: Any = job
            keys[i] = storable.key()
            if (found := store.get(keys[i])) is not None:
                outcomes[i] = storable.decode(found)
                advance()
            else:
                jobs[i] = storable.kept_in(store.unfinished(keys[i]))

    def done(i: int, outcome: Value) -> None:
        outcomes[i] = outcome
        if store is not None and i in keys:
            store.put(keys[i], asdict(outcome))  # type: ignore[call-overload]
            shutil.rmtree(store.unfinished(keys[i]), ignore_errors=True)
        advance()

    order = sorted((i for i in range(len(jobs)) if i not in outcomes), key=lambda i: -jobs[i].price())
    if min(workers, len(order)) <= 1:
        for i in order:
            done(i, jobs[i].run())
    else:
        # spawn: forking a process whose BLAS has threads can hang
        with ProcessPoolExecutor(min(workers, len(order)), get_context("spawn"), initializer=_one_thread) as pool:
            futures = {pool.submit(jobs[i].run): i for i in order}
            try:
                for future in as_completed(futures):
                    done(futures[future], future.result())
            except BrokenProcessPool as error:
                raise RuntimeError(
                    "a worker process died, most likely for want of memory: use fewer workers or a smaller d"
                ) from error
            finally:
                pool.shutdown(cancel_futures=True)
    return [outcomes[i] for i in range(len(jobs))]


def cores() -> int:
    """Return the number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _one_thread() -> None:
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
