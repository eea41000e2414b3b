"""How well the covariance of the test tasks is aligned with that of the pretraining tasks, by nine measures."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from icltheory.points import Floats, check
from icltheory.prompts.covariance import check_covariance, square_root
from icltheory.theory.structured_spectrum import Spectrum
from icltheory.theory.task_covariance import Equilibrium, eigenbasis, equilibrium, in_eigenbasis, task_covariance

Measure = Literal[
    "misalignment", "resolvent", "inverse", "cka", "cosine", "captured", "frobenius", "bures", "divergence"
]
# measure -> whether a larger value means a worse match, so that the error should rise with it
MEASURES: dict[Measure, bool] = {
    "misalignment": True,
    "resolvent": True,
    "inverse": True,
    "cka": False,
    "cosine": False,
    "captured": False,
    "frobenius": True,
    "bures": True,
    "divergence": True,
}


@dataclass(frozen=True, kw_only=True)
class AlignmentTable:
    """Measures of alignment of several test covariances with one training covariance, and the predicted ICL errors.

    Attributes
    ----------
    tests : tuple of str
        Names of the test covariances.
    measures : dict of arrays of shape (len(tests),)
        One array a measure.
    icl : array of shape (len(tests),)
        Predicted ICL errors.
    """

    tests: tuple[str, ...]
    measures: Mapping[Measure, Floats]
    icl: Floats


def alignment_kernel(
    *, tau: float, alpha: float, kappa: float, rho: float, ridge: float = 0.0, train: ArrayLike
) -> Floats:
    r"""Return K, against which the ICL error weighs the covariance of the test tasks.

    .. math:: e_{ICL} = e_0(\mathrm{trd}\,C_{te}) + \mathrm{trd}\,C_{te} K , \qquad
              K = q F - (q \xi - \nu^2) F_2 , \quad F = (s C + \nu)^{-1} , \quad F_2 = -dF/d\nu ,

    with the training covariance C and the scalars of `task_covariance`. K has the eigenvectors of C: the test
    covariance enters by its variances along them, and of two tests with equal signal variance the one with the smaller
    trace against K has the smaller error, whatever the context length of the test.

    Parameters
    ----------
    tau, alpha, kappa, rho, ridge : float
        One point, as in `task_covariance`.
    train : array of shape (d,) or (d, d)
        C.

    Returns
    -------
    array of the shape of `train`
        Eigenvalues in the token basis, or a symmetric matrix.

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed.

    References
    ----------
    Letey, Zavatone-Veth, Lu, Pehlevan, 2025 (arXiv:2509.26551), its alignment measure; here for every ridge.

    Examples
    --------
    >>> from icltheory.prompts.covariance import power_law
    >>> alignment_kernel(tau=4.0, alpha=2.0, kappa=1.0, rho=0.01, train=power_law(4, 1.0)).round(3).tolist()
    [0.235, 0.41, 0.533, 0.623]
    """
    state, vectors = _state(tau, alpha, kappa, rho, ridge, train)
    return _assemble(state.kernel()[0], vectors)


def alignment_table(
    *,
    tau: float,
    alpha: float,
    kappa: float,
    rho: float,
    ridge: float = 0.0,
    train: ArrayLike,
    tests: Mapping[str, ArrayLike],
    fraction: float = 0.9,
) -> AlignmentTable:
    r"""Measure the alignment of test covariances B with a training covariance C, and predict the ICL errors.

    The measures, with :math:`\mathrm{trd} = \frac1d \mathrm{tr}`:

    =================  ==========================================================================================
    ``misalignment``   :math:`\mathrm{trd}\,BK`, the part of the error in which the covariances meet [1]_
    ``resolvent``      :math:`\mathrm{trd}\,BF`, :math:`F = (sC + \nu)^{-1}`: knows noise and task number [1]_
    ``inverse``        :math:`\mathrm{trd}\,B C^{-1}`, inf if B reaches out of the range of C [1]_
    ``cka``            :math:`\mathrm{tr}\,HCHB / (|HCH| |HBH|)`, :math:`H = 1 - \frac1d 11^\top` in the token basis:
                       centred kernel alignment [2]_, 0 if either centred matrix is 0
    ``cosine``         :math:`\mathrm{tr}\,CB / (|C| |B|)`: kernel alignment [3]_
    ``captured``       :math:`\mathrm{tr}\,PB / \mathrm{tr}\,B`, with P the projector on the leading eigenvectors of C
                       that hold at least `fraction` of its trace (on part of an eigenspace: by its share)
    ``frobenius``      :math:`(\mathrm{trd}\,(B - C)^2)^{1/2}`
    ``bures``          :math:`(\mathrm{trd}\,[B + C - 2 (C^{1/2} B C^{1/2})^{1/2}])^{1/2}`: the 2-Wasserstein
                       distance of N(0, B) and N(0, C), over the root of d
    ``divergence``     :math:`\frac1d KL(N(0, B) \| N(0, C))`, inf if either is singular where the other is not
    =================  ==========================================================================================

    `icltheory.theory.alignment.MEASURES` tells which of them should rise with the error, and which should fall.

    Parameters
    ----------
    tau, alpha, kappa, rho, ridge : float
        One point, as in `task_covariance`.
    train : array of shape (d,) or (d, d)
        C.
    tests : mapping
        Name -> B, of shape (d,) or (d, d).
    fraction : float, default 0.9
        Of ``captured``, between 0 and 1.

    Returns
    -------
    AlignmentTable

    Raises
    ------
    ValueError, TypeError
        Naming the argument, its value and what is allowed.

    References
    ----------
    .. [1] Letey, Zavatone-Veth, Lu, Pehlevan, 2025 (arXiv:2509.26551), which compares these three with ``cka``.
    .. [2] Cortes, Mohri, Rostamizadeh, JMLR 13, 2012; Kornblith et al., ICML 2019.
    .. [3] Cristianini, Shawe-Taylor, Elisseeff, Kandola, NIPS 2001.

    Examples
    --------
    >>> from icltheory.prompts.covariance import power_law
    >>> c = power_law(40, 0.9)
    >>> table = alignment_table(
    ...     tau=4.0, alpha=2.0, kappa=1.0, rho=0.01, train=c,
    ...     tests={"same": c, "turned": c[::-1], "steeper": power_law(40, 2.5)},
    ... )
    >>> table.icl.round(3).tolist(), table.measures["cosine"].round(3).tolist()
    ([0.489, 0.823, 0.266], [1.0, 0.189, 0.829])
    """
    if not tests:
        raise ValueError("tests must name at least one test covariance, got none")
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction must be in (0, 1], got {fraction:g}")
    state, _ = _state(tau, alpha, kappa, rho, ridge, train)
    values, vectors, _ = eigenbasis(train)
    names = tuple(tests)
    c = _assemble(values, np.eye(len(values)) if vectors is None else vectors)
    b = [_dense(f"tests[{name!r}]", tests[name], len(values)) for name in names]
    along = np.array([in_eigenbasis(f"tests[{name!r}]", tests[name], train) for name in names])
    along = along.reshape(len(names), len(values))
    measures: dict[Measure, Floats] = {
        "misalignment": along @ state.kernel()[0] / len(values),
        "resolvent": along @ state.traces.first[0] / len(values),
        "inverse": np.array([_against_inverse(row, values) for row in along]),
        "cka": np.array([_cosine(_centred(c), _centred(other)) for other in b]),
        "cosine": np.array([_cosine(c, other) for other in b]),
        "captured": along @ _leading(values, fraction) / along.sum(axis=1),
        "frobenius": np.array([np.sqrt(np.mean((other - c) ** 2) * len(values)) for other in b]),
        "bures": np.array([_bures(c, other) for other in b]),
        "divergence": np.array([_divergence(row, values, other) for row, other in zip(along, b, strict=True)]),
    }
    laws = [
        task_covariance(tau=tau, alpha=alpha, kappa=kappa, rho=rho, ridge=ridge, train=train, test=tests[name])
        for name in names
    ]
    return AlignmentTable(tests=names, measures=measures, icl=np.array([float(law.icl) for law in laws]))


def rank_correlations(table: AlignmentTable, errors: ArrayLike | None = None) -> dict[Measure, float]:
    r"""Return Spearman's rank correlation of every measure with the error over the tests; 1 is a perfect order.

    Measures that should fall with the error count with their sign turned. Tied values share their mean rank. A
    measure that is the same for all tests has no rank correlation: nan.

    Parameters
    ----------
    table : AlignmentTable
    errors : array of shape (len(table.tests),), optional
        For instance simulated errors; default the predicted ones.

    Examples
    --------
    >>> from icltheory.prompts.covariance import power_law
    >>> table = alignment_table(
    ...     tau=4.0, alpha=2.0, kappa=1.0, rho=0.01, train=power_law(40, 0.9),
    ...     tests={str(exponent): power_law(40, exponent) for exponent in (0.0, 0.9, 2.5)},
    ... )
    >>> found = rank_correlations(table)
    >>> round(found["misalignment"], 6), round(found["cosine"], 6)   # a steeper test is easier than the same
    (1.0, 0.5)
    """
    target = np.asarray(table.icl if errors is None else errors, dtype=np.float64)
    if target.shape != table.icl.shape or np.any(np.isnan(target)):
        raise ValueError(f"errors must be {len(table.icl)} numbers, one a test of the table, got {errors!r}")
    found: dict[Measure, float] = {}
    for name, rises in MEASURES.items():
        ranks = [_ranks(values) - (len(target) + 1) / 2 for values in (table.measures[name], target)]
        size = float(np.linalg.norm(ranks[0]) * np.linalg.norm(ranks[1]))
        found[name] = float(np.vdot(*ranks)) / size * (1 if rises else -1) if size > 0 else float("nan")
    return found


def _ranks(values: Floats) -> Floats:
    """Return ranks from 1, tied values sharing their mean rank."""
    _, position, counts = np.unique(values, return_inverse=True, return_counts=True)
    mean: Floats = np.cumsum(counts) - (counts - 1) / 2
    return mean[position]


def _state(
    tau: float, alpha: float, kappa: float, rho: float, ridge: float, train: ArrayLike
) -> tuple[Equilibrium, Floats | None]:
    given = {"tau": tau, "alpha": alpha, "kappa": kappa, "rho": rho, "ridge": ridge}
    point = {name: check(name, value) for name, value in given.items()}
    for name, value in point.items():
        if value.ndim:
            raise TypeError(f"{name} must be one number here, got an array of shape {value.shape}")
    values, vectors, shares = eigenbasis(train)
    t, a, k, noise, penalty = (value.reshape(1) for value in point.values())
    return equilibrium(t, a, k, noise, penalty, Spectrum(values, shares)), vectors


def _assemble(values: Floats, vectors: Floats | None) -> Floats:
    return values if vectors is None else np.asarray((vectors * values) @ vectors.T)


def _dense(name: str, covariance: ArrayLike, d: int) -> Floats:
    checked = check_covariance(name, covariance, d)
    dense: Floats = np.diag(checked) if checked.ndim == 1 else checked
    return dense


def _against_inverse(along: Floats, values: Floats) -> float:
    seen = values > 0
    if np.any(along[~seen] > 1e-10 * along.max()):
        return float("inf")
    return float((along[seen] / values[seen]).sum()) / len(values)


def _centred(matrix: Floats) -> Floats:
    rows = matrix - matrix.mean(axis=0)
    return np.asarray(rows - rows.mean(axis=1, keepdims=True))


def _cosine(a: Floats, b: Floats) -> float:
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(np.vdot(a, b)) / size if size > 0 else 0.0


def _leading(values: Floats, fraction: float) -> Floats:
    """Return the diagonal of P: 1 on the fewest leading eigenvectors with that share of the trace, by share on ties."""
    ordered = np.sort(values)[::-1]
    # half a unit of rounding, so that a fraction reached exactly is reached
    count = int(np.searchsorted(np.cumsum(ordered), fraction * ordered.sum() * (1 - 1e-12))) + 1
    edge = ordered[min(count, len(values)) - 1]
    tied = np.isclose(values, edge, rtol=1e-9, atol=0.0)
    above = (values > edge) & ~tied
    projector: Floats = above.astype(np.float64)
    projector[tied] = (min(count, len(values)) - above.sum()) / tied.sum()
    return projector


def _bures(c: Floats, b: Floats) -> float:
    root = square_root(c)
    overlap = np.sqrt(np.maximum(np.linalg.eigvalsh(root @ b @ root), 0.0)).sum()
    return float(np.sqrt(max(np.trace(c) + np.trace(b) - 2 * overlap, 0.0) / len(c)))


def _divergence(along: Floats, values: Floats, b: Floats) -> float:
    spectrum = np.linalg.eigvalsh(b)
    if min(spectrum[0] / spectrum[-1], values.min() / values.max()) < 1e-13:
        return float("inf")
    logarithms = np.log(values).sum() - np.log(spectrum).sum()
    return float(0.5 * ((along / values).sum() + logarithms) / len(values) - 0.5)
