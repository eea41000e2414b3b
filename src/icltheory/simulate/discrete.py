"""Risk of the Bayes estimator for a finite list of tasks (dMMSE), from prompts drawn in a short form equal in law."""

from dataclasses import dataclass

import numpy as np

from icltheory.bayes import posterior
from icltheory.points import RNG, Floats, Point, generator, one_whole
from icltheory.prompts.tasks import TaskLaw, check_law, draw_tasks
from icltheory.simulate.batch import stream

_BLOCK = 1 << 16  # prompts x tasks at a time: what stays in a core's cache


@dataclass(frozen=True, kw_only=True)
class DiscreteRisk:
    """Measured risk of the Bayes estimator on one list of tasks.

    Attributes
    ----------
    icl, idg : float
        Error on fresh tasks, and on those of the list; label noise included.
    gap : float
        ``icl - idg``.
    d, context_length, n_tasks : int
        The sizes that were realised after rounding.
    """

    icl: float
    idg: float
    gap: float
    d: int
    context_length: int
    n_tasks: int


def bayes_discrete(
    *,
    d: int,
    alpha: float | None = None,
    kappa: float | None = None,
    rho: float,
    context_length: int | None = None,
    n_tasks: int | None = None,
    tasks: TaskLaw = "gaussian",
    prompts: int = 256,
    rng: RNG = None,
) -> DiscreteRisk:
    r"""Simulate the Bayes estimator that knows k tasks (dMMSE), on fresh tasks and on its own.

    Tokens :math:`x_i \sim N(0, I_d/d)`, labels :math:`y_i = \langle w, x_i\rangle + N(0, \rho)`; the estimator is the
    posterior mean :math:`\hat w = \sum_j p_j w_j` over a list of tasks :math:`w_1, \dots, w_k`
    (`icltheory.bayes.discrete`). The query token, its label noise and the prompt are independent, so that

    .. math:: E (y - \hat y)^2 = \rho + \frac1d E |w - \hat w|^2

    needs no query to be drawn. Of a context longer than d only the triangle of :math:`X = QR` matters to the
    estimator; by Bartlett's decomposition its entries are independent, :math:`\sqrt d\,R_{ii} \sim \chi_{l-i+1}` and
    :math:`\sqrt d\,R_{ij} \sim N(0, 1)` above, and :math:`Q^\top y = R w + N(0, \rho I_d)`. It is drawn directly: a
    prompt takes O(d^2) numbers, whatever its length, and O(k d^2) operations.

    Parameters
    ----------
    d : int
        Token dimension.
    alpha, kappa : float
        l/d and k/d, rounded to the nearest sizes.
    context_length, n_tasks : int
        Sizes in place of the ratios.
    rho : float
        Label-noise variance; the estimator knows it.
    tasks : {"gaussian", "sphere"}
        Law of the k tasks and of the fresh ones: :math:`N(0, I_d)`, or uniform with :math:`|w|^2 = d`.
    prompts : int, default 256
        Test prompts of either kind. All share one list of tasks: run several seeds for an error bar.
    rng : int, SeedSequence, BitGenerator, Generator or None
        Source of randomness; the same seed (0 included) gives the same result.

    Returns
    -------
    DiscreteRisk

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed.

    References
    ----------
    Raventos, Paul, Chen, Ganguli, 2023 (arXiv:2306.15063), for the estimator; Lu et al., PNAS 122(28), 2025
    (arXiv:2405.11751), for its gap. The integrated query and the short prompts are this project's own.

    Examples
    --------
    >>> import icltheory as icl
    >>> risk = icl.simulate.bayes_discrete(d=16, alpha=10.0, kappa=2.0, rho=0.01, rng=0)
    >>> round(risk.idg, 4), risk.icl > 0.5   # it knows its own tasks, and nothing else
    (0.01, True)
    """
    # the estimator is given, not trained: the number of sequences plays no part
    point = Point.of(
        d=d, n_sequences=1, alpha=alpha, kappa=kappa, rho=rho, context_length=context_length, n_tasks=n_tasks
    )
    if np.isinf(point.n_tasks):
        raise ValueError("kappa must be finite here, got inf: for endless Gaussian tasks see icltheory.bayes.ridge")
    count = one_whole("prompts", prompts, "test prompts of either kind")
    law, random = check_law(tasks), generator(rng)
    known = draw_tasks(int(point.n_tasks), point.d, law, random)
    fresh = draw_tasks(count, point.d, law, random)
    seen = known[random.integers(len(known), size=count)]
    icl, idg = (point.rho + _squared_distance(known, test, point, random) for test in (fresh, seen))
    return DiscreteRisk(
        icl=icl, idg=idg, gap=icl - idg, d=point.d, context_length=point.context_length, n_tasks=len(known)
    )


def _squared_distance(known: Floats, test: Floats, point: Point, rng: np.random.Generator) -> float:
    """Return the mean of |w - w_hat|^2/d over one prompt for each of the test tasks."""
    total, size = 0.0, max(1, _BLOCK // len(known))
    for start in range(0, len(test), size):
        w = test[start : start + size]
        tokens = short_contexts(len(w), point.d, point.context_length, rng)
        labels = np.einsum("bij,bj->bi", tokens, w)
        labels += np.sqrt(point.rho) * rng.standard_normal(labels.shape)
        estimate = posterior(tokens, labels, known, point.rho) @ known
        total += float(np.sum((w - estimate) ** 2))
    return total / test.size


def short_contexts(n: int, d: int, context_length: int, rng: np.random.Generator) -> Floats:
    """Draw n contexts of min(l, d) tokens, shape (n, min(l, d), d), that are worth l independent ones.

    For l > d they are the triangle of Bartlett's decomposition: X^T X has the law that l tokens give it.
    """
    tokens: Floats = rng.standard_normal((n, min(context_length, d), d)) / np.sqrt(d)
    if context_length <= d:
        return tokens
    tokens = np.triu(tokens)
    diagonal = np.arange(d)
    tokens[:, diagonal, diagonal] = np.sqrt(rng.chisquare(context_length - diagonal, size=(n, d)) / d)
    return tokens


@dataclass(frozen=True, kw_only=True)
class DiscreteJob:
    """One list of tasks on which to run `bayes_discrete`, and which of its repetitions this is."""

    d: int
    context_length: int
    n_tasks: int
    rho: float
    tasks: TaskLaw
    prompts: int
    seed: int = 0
    repetition: int = 0

    def price(self) -> float:
        """Guess the cost in the units of a fit's: multiplications, of which it has fewer a second than the fit."""
        return 4.0 * self.prompts * self.n_tasks * self.d * min(self.d, self.context_length)

    def run(self) -> DiscreteRisk:
        """Simulate."""
        names = ("dMMSE", self.d, self.context_length, self.n_tasks, self.rho, self.tasks, self.prompts)
        return bayes_discrete(
            d=self.d,
            context_length=self.context_length,
            n_tasks=self.n_tasks,
            rho=self.rho,
            tasks=self.tasks,
            prompts=self.prompts,
            rng=stream(self.seed, self.repetition, *names),
        )
