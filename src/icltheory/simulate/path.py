"""All ridges of a list from one Krylov space: a ridge path at the price of about two fits."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from icltheory.resources import Blas, available_memory
from icltheory.simulate.khatri_rao import Array, KhatriRao, to_numpy
from icltheory.simulate.solve import Problem, SolverReport, ridge_regression

_COARSE = 2e-3  # relative residual above which a new direction matters enough to be imaged in double precision
_EVERY = 8  # directions between two looks at the residual
_ROOM = 64  # vectors for which room is made at a time
_SPREAD = 20.0  # condition of E[r r^T] beyond which whitening it saves more than sharing a space


def ridge_path(
    x: Array, r: Array, target: Array, penalties: Sequence[float], *, tol: float = 1e-8, max_steps: int = 600
) -> list[tuple[Array, SolverReport]]:
    r"""Fit :math:`\hat G_\mu = \arg\min_G \sum_i (y_i - x_i^\top G r_i)^2 + \mu \|G\|_F^2` for every mu of a list.

    A penalty only shifts the matrix N of the normal equations, and a Krylov space does not change under a shift. The
    Arnoldi relation :math:`N V = V_+ \bar H` with orthonormal V, whose first vector is b, gives for every mu at once

    .. math:: (H + \mu) c = |b|\,e_1, \qquad G_\mu = V c, \qquad |b - (N + \mu) G_\mu| = \bar h\, |c_m| .

    (:math:`N = F^\top F`, b = F^T y; below the threshold :math:`N = F F^\top`, b = y and :math:`G = F^\top V c`.) The
    space grows until it holds the answer for the smallest penalty; the others are then in it. The first directions,
    which carry the bulk of every answer, are imaged in double precision, the later ones in single. The residual that
    is reported, and judged, is computed afresh in double; an answer that misses the tolerance is replaced by that of
    `ridge_regression`. So is every answer where the shared space would not pay: it cannot be preconditioned, and
    for tasks of widely different strength (large alpha) whitening saves more than sharing.

    Parameters
    ----------
    x, r, target
        As in `ridge_regression`.
    penalties : sequence of float
        mu >= 0, in any order.
    tol : float
        Relative residual required for each of them.
    max_steps : int
        Limit on the size of the space.

    Returns
    -------
    list of (G, report)
        In the order of the penalties. The name "path" marks answers from the shared space, `report.steps` its size.

    Raises
    ------
    SolverError
        As in `ridge_regression`.
    """
    for penalty in penalties:
        if not penalty >= 0:
            raise ValueError(f"penalties must be >= 0, got {penalty}")
    answers: list[tuple[Array, SolverReport] | None] = [None] * len(penalties)
    if penalties:
        blas = Blas()
        with blas.limit(1):
            problem = Problem.of(x, r, target, float(min(penalties)), tol)
            if _worth_sharing(problem):
                fast = problem.single()
                with problem.features.parallel(blas.threads), fast.parallel(blas.threads):
                    space = _Krylov(problem, fast, max_steps)
                    answers = [space.answer(problem.with_penalty(float(penalty))) for penalty in penalties]
    return [
        answer or ridge_regression(x, r, target, float(penalty), tol=tol)
        for answer, penalty in zip(answers, penalties, strict=True)
    ]


def _worth_sharing(problem: Problem) -> bool:
    f = problem.features
    if f.shape[0] < f.shape[1]:
        return True  # the dual system has no preconditioner that would be given up
    values = f.xp.linalg.eigvalsh(problem.whitening())
    return float(values[-1] / values[0]) < _SPREAD


class _Krylov:
    """An orthonormal basis of the Krylov space of N and b, with the Hessenberg matrix of N in it."""

    def __init__(self, problem: Problem, fast: KhatriRao, max_steps: int) -> None:
        f = problem.features
        self.xp, self.primal = f.xp, f.shape[0] >= f.shape[1]
        self.right = problem.right if self.primal else problem.target
        self.size = float(self.xp.linalg.vector_norm(self.right))
        self.vectors = self._room(0)
        self.hessenberg = np.zeros((1, 0))
        residual = 1.0
        # the basis is the one thing here that grows; making room copies it
        max_steps = min(max_steps, int(available_memory() / (2 * 8 * min(f.shape))))
        v, following = self.xp.reshape(self.right, (-1,)), self.size
        # half of the tolerance is left to rounding, and in the dual system to the change of norm
        while following > 0 and residual > 0.5 * problem.tol and self.count < max_steps:
            self._append(v / following)
            v, following = self._arnoldi(f if residual > _COARSE else fast)
            if self.count % _EVERY == 0 or following == 0:
                residual = following * abs(self._coefficients(problem.penalty)[-1])

    @property
    def count(self) -> int:
        return self.hessenberg.shape[1]

    def answer(self, problem: Problem) -> tuple[Array, SolverReport] | None:
        """Return the answer for the problem's penalty, or None if it misses the tolerance."""
        xp = self.xp
        if self.size == 0:
            return xp.zeros_like(problem.right), problem.certificate("path", 0, 0.0, 1.0)
        c = xp.asarray(
            self.size * self._coefficients(problem.penalty), dtype=self.right.dtype, device=_device(self.right)
        )
        v = xp.reshape(c @ self.vectors[: self.count, :], self.right.shape)
        g = v if self.primal else problem.features.adjoint(v)
        residual = problem.residual(g)
        if residual > problem.tol:
            return None
        return g, problem.certificate("path", self.count, residual, self._condition(problem.penalty))

    def _image(self, features: KhatriRao, v: Array) -> Array:
        v = self.xp.astype(self.xp.reshape(v, self.right.shape), features.x.dtype)
        image = features.normal(v) if self.primal else features.forward(features.adjoint(v))
        return self.xp.astype(self.xp.reshape(image, (-1,)), self.right.dtype)

    def _append(self, v: Array) -> None:
        if self.count == self.vectors.shape[0]:
            self.vectors = self.xp.concat([self.vectors, self._room(_ROOM)])
        self.vectors[self.count, :] = v
        grown = np.zeros((self.count + 2, self.count + 1))
        grown[:-1, :-1] = self.hessenberg
        self.hessenberg = grown

    def _arnoldi(self, features: KhatriRao) -> tuple[Array, float]:
        """Image the last vector, fill its column of the Hessenberg matrix, return what is new in it and its norm."""
        m, xp = self.count, self.xp
        basis = self.vectors[:m, :]
        w = self._image(features, basis[m - 1, :])
        for _ in range(2):  # twice is enough
            overlap = basis @ w
            w = w - overlap @ basis
            self.hessenberg[:m, m - 1] += to_numpy(overlap)
        norm = float(xp.linalg.vector_norm(w))
        norm = norm if norm > 1e-14 * abs(self.hessenberg[m - 1, m - 1]) else 0.0  # the space is exhausted
        self.hessenberg[m, m - 1] = norm
        return w, norm

    def _room(self, count: int) -> Array:
        from array_api_compat import size

        return self.xp.empty((count, size(self.right)), dtype=self.right.dtype, device=_device(self.right))

    def _coefficients(self, penalty: float) -> NDArray[np.float64]:
        """Return c / |b|."""
        first = np.zeros(self.count)
        first[0] = 1.0
        return np.asarray(np.linalg.solve(self.hessenberg[:-1] + penalty * np.eye(self.count), first))

    def _condition(self, penalty: float) -> float:
        square = self.hessenberg[:-1]
        values = np.linalg.eigvalsh((square + square.T) / 2) + penalty
        return float(values[-1] / values[0]) if values[0] > 0 else float("inf")


def _device(array: Array) -> Array:
    from array_api_compat import device

    return device(array)
