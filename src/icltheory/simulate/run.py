"""Simulations, from sizes to errors: draw the pretraining set, fit Gamma, evaluate it exactly."""

from collections.abc import Sequence

from numpy.typing import ArrayLike

from icltheory.points import RNG, Point, check, generator
from icltheory.prompts.kernels import Kernel, Query
from icltheory.prompts.sampling import Assignment, kernel_length
from icltheory.prompts.tasks import TaskLaw
from icltheory.simulate.experiment import Experiment, Simulation
from icltheory.simulate.solve import Method


def linear_attention(
    *,
    d: int,
    tau: float | None = None,
    alpha: float | None = None,
    kappa: float | None = None,
    rho: float,
    ridge: float = 0.0,
    context_length: int | None = None,
    n_sequences: int | None = None,
    n_tasks: float | None = None,
    tasks: TaskLaw = "sphere",
    assignment: Assignment = "random",
    task_covariance: ArrayLike | None = None,
    test_task_covariance: ArrayLike | None = None,
    test_context_length: int | None = None,
    kernel: Kernel | None = None,
    query: Query = "independent",
    test_kernel: Kernel | None = None,
    test_query: Query | None = None,
    rng: RNG = None,
    method: Method = "auto",
    tol: float = 1e-8,
    device: str | None = None,
) -> Simulation:
    r"""Simulate in-context linear regression by linear attention at finite d.

    Tokens :math:`x_i \sim N(0, I_d/d)`, labels :math:`y_i = \langle w, x_i\rangle + N(0, \rho)`; each of n prompts of
    l examples uses one of k tasks, chosen uniformly. The model is
    :math:`\hat y = \langle \Gamma, x_{l+1} r^\top \rangle`,
    :math:`r = [\frac dl \sum y_i x_i^\top, \frac1l \sum y_i^2]`, fitted by

    .. math:: \hat\Gamma = \arg\min_\Gamma \sum_{\mu\le n} (y^\mu - \langle\Gamma, H^\mu\rangle)^2
              + \frac nd \lambda \|\Gamma\|_F^2 .

    Prompts are drawn exactly in O(d) each; both test errors are exact expectations, no test prompt is drawn. The
    cost is O(n d^2) a solver step and O(n d) memory.

    Parameters
    ----------
    d : int
        Token dimension.
    tau, alpha, kappa : float
        n/d^2, l/d and k/d, rounded to the nearest sizes; ``kappa=math.inf`` draws a fresh task for every prompt.
    n_sequences, context_length, n_tasks : int
        Sizes in place of the ratios.
    rho : float
        Label-noise variance.
    ridge : float, default 0
        Penalty lambda; 0 gives the least-squares fit, of minimum norm below the threshold n = d(d+1).
    tasks : {"sphere", "gaussian"}
        Law of the tasks: uniform with :math:`|w|^2 = d`, or :math:`N(0, C)`.
    assignment : {"random", "balanced"}
        Each prompt's task is chosen uniformly at random, or all tasks have equally many prompts (to within one), as in
        the published runs. The two agree as d -> infinity.
    task_covariance : array of shape (d,) or (d, d), optional
        C of Gaussian pretraining tasks: eigenvalues in the token basis, or a matrix; default the identity. The signal
        variance is its normalised trace, 1 for the spectra of `icltheory.prompts.covariance`.
    test_task_covariance : array of shape (d,) or (d, d), optional
        C of the fresh tasks of the ICL test; default that of training (``np.ones(d)`` is the identity).
    test_context_length : int, optional
        Examples in a prompt of both tests; default that of training.
    kernel : Kernel, optional
        Correlations of the tokens of a prompt, see `icltheory.prompts.Kernel`; the default is independent tokens. Its
        context length is that of training, which need not be given then.
    query : {"independent", "next"} or array of shape (l,)
        Correlations of the query with the context.
    test_kernel, test_query : optional
        The same in both tests; default those of training (at the test's length).
    rng : int, SeedSequence, BitGenerator, Generator or None
        Source of randomness; the same seed (0 included) gives the same draws, and results that agree to 1e-10 for
        any number of threads.
    method : {"auto", "cg", "dual", "primal", "svd"}
        Solver, see `icltheory.simulate.ridge_regression`.
    tol : float
        Relative residual required of conjugate gradients; the errors then carry a relative error of about as much.
    device : str, optional
        Where the fit runs: the default is numpy on the processor; "cuda", "cuda:1", "cpu", ... is PyTorch there, in the
        same precisions. Prompts are drawn, and results returned, as numpy arrays on the host in either case, and so
        are the same to `tol`; direct solvers run there too.

    Returns
    -------
    Simulation

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed.
    MemoryError
        Before anything large is allocated, with the estimate.
    SolverError
        If the fit did not reach `tol`.
    ImportError
        For a device without PyTorch.

    References
    ----------
    Lu, Letey, Zavatone-Veth, Maiti, Pehlevan, PNAS 122(28), 2025 (arXiv:2405.11751). The sampler and the exact
    error are this project's own.

    Examples
    --------
    >>> import icltheory as icl
    >>> sim = icl.simulate.linear_attention(d=20, tau=2.0, alpha=1.0, kappa=0.5, rho=0.01, ridge=0.1, rng=0)
    >>> law = icl.theory.linear_attention(**sim.point.ratios())
    >>> bool(abs(sim.icl / law.icl - 1) < 0.2)   # d = 20 is not infinity
    True
    """
    if kernel is not None and alpha is None and context_length is None:
        context_length = kernel_length(kernel)
    point = Point.of(
        d=d,
        tau=tau,
        alpha=alpha,
        kappa=kappa,
        rho=rho,
        ridge=ridge,
        context_length=context_length,
        n_sequences=n_sequences,
        n_tasks=n_tasks,
    )
    experiment = Experiment.of(
        point,
        tasks=tasks,
        assignment=assignment,
        task_covariance=task_covariance,
        test_task_covariance=test_task_covariance,
        test_context_length=test_context_length,
        kernel=kernel,
        query=query,
        test_kernel=test_kernel,
        test_query=test_query,
        method=method,
        tol=tol,
        device=device,
    )
    data = experiment.sample(generator(rng))
    gamma, solver = experiment.fit(data)
    return experiment.result(data, gamma, solver, point.ridge)


def linear_attention_path(
    *,
    ridges: Sequence[float],
    d: int,
    tau: float | None = None,
    alpha: float | None = None,
    kappa: float | None = None,
    rho: float,
    context_length: int | None = None,
    n_sequences: int | None = None,
    n_tasks: float | None = None,
    tasks: TaskLaw = "sphere",
    assignment: Assignment = "random",
    task_covariance: ArrayLike | None = None,
    test_task_covariance: ArrayLike | None = None,
    test_context_length: int | None = None,
    kernel: Kernel | None = None,
    query: Query = "independent",
    test_kernel: Kernel | None = None,
    test_query: Query | None = None,
    rng: RNG = None,
    tol: float = 1e-8,
    device: str | None = None,
) -> list[Simulation]:
    r"""Simulate one pretraining set for a list of ridges, which share the work of one fit where that pays.

    The draws are those of `linear_attention` with the same seed: each result is, to `tol`, what it returns for that
    ridge. See `icltheory.simulate.ridge_path` for how, and for when the fits cannot be shared.

    Parameters
    ----------
    ridges : sequence of float
        Penalties lambda >= 0, in any order.
    d, tau, alpha, kappa, rho, context_length, n_sequences, n_tasks
        As in `linear_attention`.
    tasks, assignment, task_covariance, test_task_covariance, test_context_length, rng, tol, device
        As there.
    kernel, query, test_kernel, test_query
        As there.

    Returns
    -------
    list of Simulation
        In the order of the ridges.

    Raises
    ------
    ValueError, TypeError, MemoryError, SolverError, ImportError
        As in `linear_attention`.

    Examples
    --------
    >>> import icltheory as icl
    >>> path = icl.simulate.linear_attention_path(
    ...     ridges=[1e-4, 0.1, 10.0], d=20, tau=1.5, alpha=1.0, kappa=1.0, rho=0.1, rng=0
    ... )
    >>> path[0].icl > path[1].icl > path[2].icl   # so few sequences want a strong ridge
    True
    """
    checked = [float(check("ridge", ridge)) for ridge in ridges]
    if kernel is not None and alpha is None and context_length is None:
        context_length = kernel_length(kernel)
    point = Point.of(
        d=d,
        tau=tau,
        alpha=alpha,
        kappa=kappa,
        rho=rho,
        context_length=context_length,
        n_sequences=n_sequences,
        n_tasks=n_tasks,
    )
    experiment = Experiment.of(
        point,
        tasks=tasks,
        assignment=assignment,
        task_covariance=task_covariance,
        test_task_covariance=test_task_covariance,
        test_context_length=test_context_length,
        kernel=kernel,
        query=query,
        test_kernel=test_kernel,
        test_query=test_query,
        method="auto",
        tol=tol,
        device=device,
    )
    data = experiment.sample(generator(rng))
    fits = experiment.fit_path(data, checked)
    return [experiment.result(data, gamma, solver, ridge) for (gamma, solver), ridge in zip(fits, checked, strict=True)]
