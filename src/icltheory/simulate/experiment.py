"""All of a simulation but its random numbers: the point, how tasks are drawn, the model fitted and tested."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import Floats, Point, Risk, one_whole
from icltheory.prompts.kernels import Kernel, Query
from icltheory.prompts.sampling import Assignment, Summaries, check_kernel, kernel_length, sample_summaries
from icltheory.prompts.tasks import (
    TaskLaw,
    TaskMoments,
    check_law,
    check_task_covariance,
    moments_of_law,
    moments_of_tasks,
)
from icltheory.resources import require_memory
from icltheory.simulate.error import exact_error
from icltheory.simulate.khatri_rao import Array, KhatriRao, to_numpy
from icltheory.simulate.path import ridge_path
from icltheory.simulate.solve import Method, SolverReport, ridge_regression


@dataclass(frozen=True, kw_only=True)
class Simulation(Risk[float]):
    """Measured risk of one trained model.

    Attributes
    ----------
    point : Point
        The sizes and ratios that were realised after rounding.
    test_context_length : int
        Examples in a test prompt.
    gamma : array of shape (d, d + 1)
        The fitted parameters.
    solver : SolverReport
        Which solver ran, its steps, true residual and seconds.
    """

    point: Point
    test_context_length: int
    gamma: Floats = field(repr=False)
    solver: SolverReport


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A point, and how its tasks are drawn, its model fitted and tested: all of a simulation but its random numbers.

    Attributes
    ----------
    point : Point
    law : {"sphere", "gaussian"}
    assignment : {"random", "balanced"}
    covariance, test_covariance : array or None
        Of the pretraining tasks and of the ICL test's; None is the identity.
    test_context_length : int
    kernel, test_kernel : Kernel or None
        Correlations of the tokens in pretraining and in both tests; None are independent tokens.
    query, test_query : "independent", "next" or array
        Correlations of the queries with them.
    method : str
    tol : float
    device : str or None
        Of PyTorch, where the fit runs; None is numpy.
    """

    point: Point
    law: TaskLaw
    assignment: Assignment
    covariance: Floats | None
    test_covariance: Floats | None
    test_context_length: int
    method: Method
    tol: float
    device: str | None = None
    kernel: Kernel | None = None
    query: Query = "independent"
    test_kernel: Kernel | None = None
    test_query: Query = "independent"

    @classmethod
    def of(
        cls,
        point: Point,
        *,
        tasks: TaskLaw,
        assignment: Assignment,
        task_covariance: ArrayLike | None,
        test_task_covariance: ArrayLike | None,
        test_context_length: int | None,
        method: Method,
        tol: float,
        device: str | None = None,
        kernel: Kernel | None = None,
        query: Query = "independent",
        test_kernel: Kernel | None = None,
        test_query: Query | None = None,
    ) -> "Experiment":
        """Check the arguments of a simulation, that it fits into memory, and that the device works."""
        if device is not None:
            _torch_on(device)
        law = check_law(tasks)
        covariance = check_task_covariance("task_covariance", task_covariance, point.d, law)
        test_covariance = check_task_covariance("test_task_covariance", test_task_covariance, point.d, law)
        require_memory(
            estimated_bytes(point),
            f"this simulation (d = {point.d}, {point.n_sequences} sequences, {point.n_tasks} tasks)",
            "reduce d, tau or kappa",
        )
        length = point.context_length
        if test_context_length is not None:
            length = one_whole("test_context_length", test_context_length, "examples in a test prompt")
        elif test_kernel is not None:
            length = kernel_length(test_kernel)
        checked = check_kernel(kernel, query, point.context_length)
        if test_kernel is None and checked is not None:
            test_kernel = checked if length == checked.context_length else checked.with_length(length)
        return cls(
            point=point,
            law=law,
            assignment=assignment,
            covariance=covariance,
            test_covariance=covariance if test_covariance is None else test_covariance,
            test_context_length=length,
            kernel=checked,
            query=query,
            test_kernel=check_kernel(test_kernel, query if test_query is None else test_query, length),
            test_query=query if test_query is None else test_query,
            method=method,
            tol=tol,
            device=device,
        )

    def sample(self, rng: np.random.Generator, tasks: Floats | None = None) -> Summaries:
        """Draw a pretraining set, on the given tasks or on fresh ones."""
        covariance = self.covariance if tasks is None else None
        return sample_summaries(
            self.point,
            self.law,
            rng,
            self.assignment,
            covariance=covariance,
            tasks=tasks,
            kernel=self.kernel,
            query=self.query,
        )

    def fit(self, data: Summaries) -> tuple[Floats, SolverReport]:
        """Fit Gamma."""
        gamma, report = ridge_regression(
            *self._arrays(data), self._penalty(self.point.ridge), method=self.method, tol=self.tol
        )
        return to_numpy(gamma), report

    def fit_path(self, data: Summaries, ridges: Sequence[float]) -> list[tuple[Floats, SolverReport]]:
        """Fit Gamma for every ridge."""
        fits = ridge_path(*self._arrays(data), [self._penalty(ridge) for ridge in ridges], tol=self.tol)
        return [(to_numpy(gamma), report) for gamma, report in fits]

    def _penalty(self, ridge: float) -> float:
        return self.point.n_sequences / self.point.d * ridge

    def _arrays(self, data: Summaries) -> tuple[Array, Array, Array]:
        """Return the data of the fit where it is to run."""
        arrays = data.query, data.context, data.target
        if self.device is None:
            return arrays
        torch = _torch_on(self.device)
        x, r, y = (torch.from_numpy(array).to(self.device) for array in arrays)
        return x, r, y

    def fresh(self) -> TaskMoments:
        """Return the task moments of the ICL test."""
        return moments_of_law(self.law, self.point.d, covariance=self.test_covariance)

    def seen(self, tasks: Floats | None) -> TaskMoments:
        """Return the task moments of the IDG test: the pretraining tasks, or their law if every prompt has its own."""
        if tasks is None:
            return moments_of_law(self.law, self.point.d, covariance=self.covariance)
        return moments_of_tasks(tasks)

    def error(self, gamma: Floats, moments: TaskMoments) -> float:
        """Return the exact error of Gamma on tasks of these moments."""
        statistics = None if self.test_kernel is None else self.test_kernel.statistics(self.test_query)
        return exact_error(gamma, moments, self.test_context_length, self.point.rho, statistics)

    def result(self, data: Summaries, gamma: Floats, solver: SolverReport, ridge: float) -> Simulation:
        """Return the exact errors of a fit with this ridge."""
        icl, idg = (self.error(gamma, moments) for moments in (self.fresh(), self.seen(data.tasks)))
        residual = data.target - KhatriRao(data.query, data.context).forward(gamma)
        return Simulation(
            icl=icl,
            idg=idg,
            gap=icl - idg,
            train=float(np.mean(residual**2)),
            point=replace(self.point, ridge=ridge),
            test_context_length=self.test_context_length,
            gamma=gamma,
            solver=solver,
        )


def _torch_on(device: str) -> Any:
    """Return PyTorch, if it is there and works on the device, or raise an error that says what to do."""
    if not isinstance(device, str):
        raise TypeError(f'device must be None (numpy) or a string such as "cuda" or "cpu", got {device!r}')
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise ImportError(f"device={device!r} needs PyTorch, which is not installed: pip install torch") from error
    try:
        torch.ones(2, dtype=torch.float64, device=device).sum().item()
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).split(". ")[0]
        raise ValueError(
            "device must be None (numpy) or a device on which PyTorch computes in double precision "
            f'(PyTorch {torch.__version__} here), such as "cpu", got {device!r}: {reason}'
        ) from error
    return torch


def estimated_bytes(point: Point) -> float:
    """Return the memory that drawing and fitting take with the iterative solver."""
    d, n = point.d, point.n_sequences
    tasks = 0.0 if np.isinf(point.n_tasks) else 3.0 * point.n_tasks * d * 8
    summaries = n * (2 * d + 1) * (8 + 4)  # in double and in single precision
    return tasks + summaries + 10.0 * 8 * (n + d * d) + 2e8
