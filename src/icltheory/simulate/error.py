"""The exact test error of any reduced attention model at finite size: no test prompt is drawn."""

import numpy as np

from icltheory.points import Floats
from icltheory.prompts.regimes import Statistics
from icltheory.prompts.tasks import TaskMoments


def prompt_moments(tasks: TaskMoments, context_length: int, rho: float, k2: float = 1.0) -> tuple[Floats, Floats]:
    r"""Return :math:`A = E\,w r^\top` (d x (d+1)) and :math:`B = E\,r r^\top` ((d+1) x (d+1)) over fresh prompts.

    With a task's signal variance :math:`s = |w|^2/d`, tokens of correlations K, :math:`k_2 = \frac1l \mathrm{tr} K^2`
    (1 for independent ones), and by Wick's theorem over the l context tokens,

    .. math::
        E[r \mid w] &= [\,w,\ s+\rho\,] \\
        E[r r^\top \mid w] &= \begin{bmatrix}
            \frac{d}{l}(k_2 s+\rho) I + (1+\frac{k_2}l) w w^\top & (s+\rho)\,w + \frac2l (k_2 s+\rho)\,w \\
            \cdot & (s+\rho)^2 + \frac2l (k_2 s^2 + 2 \rho s + \rho^2) \end{bmatrix} ,

    averaged here over the law of w. For :math:`|w|^2 = d` and :math:`k_2 = 1` it is the formula of Lu et al. 2025 (with
    :math:`(1+\rho)^2` in the corner); keeping s random makes it hold for Gaussian tasks too.
    """
    d = len(tasks.mean)
    label = tasks.signal_mean + rho * tasks.mean
    a = np.column_stack([tasks.second, label])
    b = np.empty((d + 1, d + 1))
    b[:d, :d] = (1 + k2 / context_length) * tasks.second
    b[np.arange(d), np.arange(d)] += (d / context_length) * (k2 * tasks.signal + rho)
    b[:d, d] = b[d, :d] = label + (2 / context_length) * (k2 * tasks.signal_mean + rho * tasks.mean)
    energy = tasks.signal_squared + 2 * rho * tasks.signal + rho**2
    b[d, d] = energy + (2 / context_length) * (energy + (k2 - 1) * tasks.signal_squared)
    return a, b


def exact_error(
    gamma: Floats, tasks: TaskMoments, context_length: int, rho: float, statistics: Statistics | None = None
) -> float:
    r"""Return :math:`E (y - \langle\Gamma, x r^\top\rangle)^2` over fresh prompts with tasks of the given moments.

    .. math:: e(\Gamma) = E s + \rho - \frac2d \mathrm{tr}(\Gamma A^\top) + \frac1d \mathrm{tr}(\Gamma B \Gamma^\top)

    with A and B of `prompt_moments`. Where the query is correlated with the context, `query_terms` come in addition.
    Nothing is approximate: it holds for weak and for strong correlations, at any d and l.

    Parameters
    ----------
    gamma : array of shape (d, d + 1)
        Any parameters, trained or not.
    tasks : TaskMoments
        Of fresh tasks for the ICL error, of the pretraining tasks for the IDG error.
    context_length : int
        Examples in a test prompt. It may differ from training: r is normalised by its own context length, so that the
        same Gamma applies, and A and B change.
    rho : float
        Label-noise variance of the test prompts.
    statistics : Statistics, optional
        k0, k1 and k2 of the test prompts, see `icltheory.prompts.Kernel.statistics`; the default is independent tokens.
    """
    d = len(tasks.mean)
    if gamma.shape != (d, d + 1):
        raise ValueError(f"gamma must have shape (d, d + 1) = {(d, d + 1)}, got {gamma.shape}")
    if not (statistics is None or isinstance(statistics, Statistics)):
        raise TypeError(f"statistics must be those of a kernel, such as kernel.statistics(query), got {statistics!r}")
    k2 = 1.0 if statistics is None else statistics.k2
    a, b = prompt_moments(tasks, context_length, rho, k2)
    linear = np.vdot(gamma, a)
    quadratic = np.vdot(gamma @ b, gamma)
    error = float(tasks.signal + rho - 2 * linear / d + quadratic / d)
    if statistics is None or statistics.k0 == 0:
        return error
    return error + query_terms(gamma, tasks, context_length, rho, statistics.k0, statistics.k1)


def query_terms(gamma: Floats, tasks: TaskMoments, context_length: int, rho: float, k0: float, k1: float) -> float:
    r"""Return what a query that is correlated with the context adds to the error of any Gamma.

    With :math:`\Gamma = [G, g]`, :math:`t = \mathrm{tr}\,G`, :math:`k_0 = k^\top k`, :math:`k_1 = k^\top K k`,
    :math:`\beta = k_0/l`, and Wick's theorem over query and context, it is :math:`-2 L + Q + 2 C + S` averaged over w:

    .. math::
        L &= \beta \big( s t + \tfrac1d w^\top G w + \tfrac2d s\, w \cdot g \big) \\
        Q &= \tfrac{2\beta}{d} \big( w^\top G^2 w + t\, w^\top G w \big)
             + \tfrac{2 k_1}{l^2 d} \big( w^\top (G G^\top + G^2) w + t\, w^\top G w \big)
             + \tfrac{k_1 s + \rho k_0}{l^2} \big( t^2 + \mathrm{tr}\,G^2 \big) \\
        C &= \big( \tfrac{\beta}{d} (s + \rho) + \tfrac{2}{l^2 d} (k_1 s + \rho k_0) \big)
             \big( w^\top G g + t\, w \cdot g \big)
             + \tfrac{2}{d^2} \big( \beta + \tfrac{2 k_1}{l^2} \big)\, (w^\top G w)(w \cdot g) \\
        S &= \big( \tfrac{4 \beta}{d^2} (s + \rho) + \tfrac{8}{l^2 d^2} (k_1 s + \rho k_0) \big) (w \cdot g)^2 .

    Parameters
    ----------
    gamma, tasks, context_length, rho
        As in `exact_error`.
    k0, k1 : float
        Statistics of the query.
    """
    d, length = len(tasks.mean), context_length
    square, g = gamma[:, :d], gamma[:, d]
    t, beta = float(np.trace(square)), k0 / length
    twice = square @ square
    quadratic = float(np.vdot(square, tasks.second))  # E w^T G w
    along = float(tasks.mean @ g)
    with_signal = float(tasks.signal_mean @ g)
    linear = beta * (tasks.signal * t + quadratic / d + 2 * with_signal / d)
    both = float(np.vdot(twice, tasks.second))
    outer = float(np.vdot(square @ square.T, tasks.second))
    energy = k1 * tasks.signal + rho * k0
    squares = 2 * beta / d * (both + t * quadratic) + 2 * k1 / (length**2 * d) * (outer + both + t * quadratic)
    squares += energy / length**2 * (t**2 + float(np.trace(twice)))
    turned = square @ g
    plain = float(tasks.mean @ turned) + t * along  # E [w^T G g + t w.g], and with the factor s
    weighted = float(tasks.signal_mean @ turned) + t * with_signal
    cross = beta / d * (weighted + rho * plain) + 2 / (length**2 * d) * (k1 * weighted + rho * k0 * plain)
    if tasks.tasks is not None:
        w = tasks.tasks
        cubic = float(np.mean(np.einsum("ki,ki->k", w @ square, w) * (w @ g)))
        cross += 2 / d**2 * (beta + 2 * k1 / length**2) * cubic
    label, signal_label = float(g @ tasks.second @ g), float(g @ tasks.signal_second @ g)
    last = 4 * beta / d**2 * (signal_label + rho * label)
    last += 8 / (length**2 * d**2) * (k1 * signal_label + rho * k0 * label)
    return -2 * linear + squares + 2 * cross + last


def best_gamma(tasks: TaskMoments, context_length: int, rho: float) -> Floats:
    r"""Return the parameters of least error, :math:`\Gamma^\star = A B^{-1}`, shape (d, d + 1): infinite training data.

    Its `exact_error`, :math:`E s + \rho - \frac1d \mathrm{tr}(A B^{-1} A^\top)`, is the noise that no fit can undercut.

    Parameters
    ----------
    tasks, context_length, rho
        As in `exact_error`.

    Examples
    --------
    >>> from icltheory.prompts import moments_of_law
    >>> moments = moments_of_law("sphere", 2)
    >>> round(exact_error(best_gamma(moments, 4, 0.0), moments, 4, 0.0), 4)   # 1 - 1/(1 + (d + 1)/l)
    0.4286
    """
    a, b = prompt_moments(tasks, context_length, rho)
    scale = 1.0 / np.sqrt(np.diag(b))  # label energies and tasks may differ by many orders
    # least squares, as B is singular in the limit of one task and endless context; A then lies in its range
    solution = np.linalg.lstsq(scale[:, None] * b * scale, scale[:, None] * a.T, rcond=None)[0]
    best: Floats = solution.T * scale
    return best
