"""All ridges of a list from one Krylov space: a ridge path at the price of about two fits, where tasks are alike."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from icltheory.resources import Blas, available_memory
from icltheory.simulate.conjugate_gradients import inner
from icltheory.simulate.khatri_rao import Array, KhatriRao
from icltheory.simulate.solve import Problem, SolverReport, solve

_COARSE = 0.25  # times tol / error of single precision: the relative residual, falling fast, from which on that will do
_SAFETY = 2.5  # by which the error of single precision on one vector is taken to bound that on others
_SHARE = 0.1  # of tol: the most by which one part of the answers may blur their residuals
_ROOM = 64  # vectors for which room is made at a time
_SPREAD = 100.0  # condition of E[r r^T] beyond which whitening it saves more than sharing a space


def ridge_path(
    x: Array, r: Array, target: Array, penalties: Sequence[float], *, tol: float = 1e-8, max_steps: int = 600
) -> list[tuple[Array, SolverReport]]:
    r"""Fit :math:`\hat G_\mu = \arg\min_G \sum_i (y_i - x_i^\top G r_i)^2 + \mu \|G\|_F^2` for every mu of a list.

    A penalty only shifts the matrix N of the normal equations, and a Krylov space does not change under a shift. The
    Lanczos recursion :math:`N V = V T + \beta v_+ e_m^\top`, whose first vector is b, gives for every mu at once

    .. math:: (T + \mu) c = |b|\,e_1, \qquad G_\mu = V c, \qquad |b - (N + \mu) G_\mu| = \beta\, |c_m| .

    (:math:`N = F^\top F`, b = F^T y; below the threshold :math:`N = F F^\top`, b = y and :math:`G = F^\top V c`.) The
    space grows until it holds the answer for the smallest penalty; the others are then in it. The first directions,
    which carry the bulk of every answer, are imaged in double precision, the later ones in single.

    The residual that is reported, and judged, is computed afresh from the answers; one that misses the tolerance is
    the beginning of a fit of its own. So is each where the shared space would not pay: it cannot be preconditioned, and
    for tasks of widely different strength (large alpha) whitening saves more than sharing. Such fits are made in the
    order of the penalties, and each begins at the combination of the answers so far that has the least residual.

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
        In the order of the penalties. The name "path" marks answers from the shared space, `report.steps` its size;
        their residual includes a bound on what single precision may hide of it, their seconds all the work shared.

    Raises
    ------
    SolverError
        As in `ridge_regression`.
    """
    for penalty in penalties:
        if not penalty >= 0:
            raise ValueError(f"penalties must be >= 0, got {penalty}")
    wanted = sorted({float(penalty) for penalty in penalties})
    if not wanted:
        return []
    blas = Blas()
    with blas.limit(1):
        problem = Problem.of(x, r, target, wanted[0], tol)
        with problem.parallel(blas.threads):
            shared = _Krylov(problem, max_steps).answers(wanted) if _worth_sharing(problem) else {}
            known = {penalty: answer for penalty, answer in shared.items() if answer[1].residual <= tol}
            for penalty in wanted:
                if penalty not in known:
                    answers = {mu: g for mu, (g, _) in known.items()}
                    start = shared[penalty][0] if shared else _guess(problem.right, answers, penalty)
                    known[penalty] = solve(problem.with_penalty(penalty), blas, start=start)
    return [known[float(penalty)] for penalty in penalties]


def _guess(right: Array, known: dict[float, Array], penalty: float) -> Array | None:
    r"""Return the combination of the answers known for other penalties that has the least residual for this one.

    It costs no product: :math:`N G_i = b - \mu_i G_i` is known, so that :math:`(N + \mu) G_i = b + (\mu - \mu_i) G_i`.
    """
    from array_api_compat import array_namespace

    if not known:
        return None
    xp = array_namespace(right)
    b = xp.reshape(right, (-1,))
    g = xp.stack([xp.reshape(answer, (-1,)) for answer in known.values()])
    images = xp.stack([b + (penalty - mu) * g[i, :] for i, mu in enumerate(known)])
    return xp.reshape((b @ xp.linalg.pinv(images, rtol=1e-12)) @ g, right.shape)


def _worth_sharing(problem: Problem) -> bool:
    f = problem.features
    if f.shape[0] < f.shape[1]:
        return True  # the dual system has no preconditioner that would be given up
    values = f.xp.linalg.eigvalsh(problem.whitening())
    return float(values[-1] / values[0]) < _SPREAD


class _Krylov:
    """A basis of the Krylov space of N and b, in which N is the tridiagonal matrix T.

    The vectors are not made orthogonal again: lost orthogonality only costs some steps, fewer than its repair. The
    relation between them holds to rounding without it.
    """

    def __init__(self, problem: Problem, max_steps: int) -> None:
        f, xp = problem.features, problem.features.xp
        self.problem, self.xp, self.primal = problem, xp, f.shape[0] >= f.shape[1]
        self.right = problem.right if self.primal else problem.target
        self.size = float(xp.linalg.vector_norm(self.right))
        self.vectors = self._room(0)
        self.diagonal: list[float] = []
        self.beside: list[float] = []  # the last one leads out of the space
        self.error = 0.0  # of an image in single precision, relative
        # the basis is the one thing here that grows; making room copies it
        max_steps = min(max_steps, int(available_memory() / (2 * 8 * min(f.shape))))
        w, following, residual, pivot = xp.reshape(self.right, (-1,)), self.size, 1.0, math.inf
        # the rest of the tolerance is left to rounding, and in the dual system to the change of norm
        while following > 0 and residual > 0.4 * problem.tol and self.count < max_steps:
            v = self._append(w / following)
            w = self._image(problem.fast if self._single_will_do(residual) else f, v)
            if not self.count:
                difference = float(xp.linalg.vector_norm(self._image(problem.fast, v) - w))
                self.error = difference / (float(xp.linalg.vector_norm(w)) or 1.0)
            w = w - following * self.vectors[self.count - 1, :] if self.count else w
            here = inner(v, w)
            w = w - here * v
            # elimination without pivots in T + mu
            pivot = here + problem.penalty - (following**2 / pivot if self.count else 0.0)
            following = float(xp.linalg.vector_norm(w))
            following = following if following > 1e-14 * here else 0.0  # the space is exhausted
            residual *= abs(following / pivot) if pivot else math.inf
            self.diagonal.append(here)
            self.beside.append(following)

    @property
    def count(self) -> int:
        return len(self.diagonal)

    def answers(self, penalties: Sequence[float]) -> dict[float, tuple[Array, SolverReport]]:
        """Return the answers for all penalties; some may miss the tolerance."""
        xp, like, shape = self.xp, self.right, self.problem.right.shape
        if self.size == 0:
            return {penalty: (xp.zeros_like(self.problem.right), self._report(penalty, 0.0)) for penalty in penalties}
        c = np.stack([self.size * self._coefficients(penalty) for penalty in penalties])
        g = xp.asarray(c, dtype=like.dtype, device=_device(like)) @ self.vectors[: self.count, :]
        if not self.primal:
            rows = [self.problem.features.adjoint(g[i, :]) for i in range(len(penalties))]
            g = xp.stack([xp.reshape(row, (-1,)) for row in rows])
        return {
            penalty: (xp.reshape(g[i, :], shape), self._report(penalty, residual))
            for i, (penalty, residual) in enumerate(zip(penalties, self._residuals(g, penalties), strict=True))
        }

    def _residuals(self, g: Array, penalties: Sequence[float]) -> list[float]:
        r"""Return the relative residuals of the normal equations at the rows of g: what was computed, plus a bound.

        Answers for neighbouring penalties are nearly the same: they are few orthonormal parts. Each is imaged afresh,
        in double precision, or in single if it is so small that the error stays below a share of the tolerance, or not
        at all if the image would. These errors are added to the residual.
        """
        xp, problem = self.xp, self.problem
        u, s, parts = xp.linalg.svd(g, full_matrices=False)
        largest, allowed = float(self._spectrum()[-1]), _SHARE * problem.tol * problem.size
        rest = xp.stack([xp.reshape(problem.right, (-1,)) - mu * g[i, :] for i, mu in enumerate(penalties)])
        blur = 0.0
        for i in range(parts.shape[0]):
            image_size = largest * float(s[i])
            if image_size <= allowed:
                blur += image_size
                continue
            error = _SAFETY * self.error * image_size
            single = error <= allowed
            blur += error if single else 0.0
            image = self._normal(problem.fast if single else problem.features, s[i] * parts[i, :])
            rest = rest - u[:, i, None] * image[None, :]
        return [problem.relative(rest[i, :]) + blur / problem.size for i in range(len(penalties))]

    def _normal(self, features: KhatriRao, g: Array) -> Array:
        """Return F^T F g in the precision of the features."""
        image = features.normal(self.xp.astype(self.xp.reshape(g, features.shape_of_g), features.x.dtype))
        return self.xp.astype(self.xp.reshape(image, (-1,)), g.dtype)

    def _image(self, features: KhatriRao, v: Array) -> Array:
        if self.primal:
            return self._normal(features, v)
        return self.xp.astype(features.forward(features.adjoint(self.xp.astype(v, features.x.dtype))), v.dtype)

    def _single_will_do(self, residual: float) -> bool:
        # errors of images weigh as the coefficients of the answers to come: more than the residual where it falls
        # slowly, by a power of 1 - rate^2 that was measured (tau = .5 to 4)
        slow = 1.0 - residual ** (2.0 / self.count) if residual < 1.0 else 0.0
        return residual * self.error < _COARSE * slow**2 * self.problem.tol

    def _append(self, v: Array) -> Array:
        if self.count == self.vectors.shape[0]:
            self.vectors = self.xp.concat([self.vectors, self._room(_ROOM)])
        self.vectors[self.count, :] = v
        return v

    def _room(self, count: int) -> Array:
        from array_api_compat import size

        return self.xp.empty((count, size(self.right)), dtype=self.right.dtype, device=_device(self.right))

    def _coefficients(self, penalty: float) -> NDArray[np.float64]:
        """Return c / |b|."""
        from scipy.linalg import solve_banded

        bands = np.zeros((3, self.count))
        bands[0, 1:] = bands[2, :-1] = self.beside[:-1]
        bands[1] = np.array(self.diagonal) + penalty
        return np.asarray(solve_banded((1, 1), bands, np.eye(self.count, 1)[:, 0]))

    def _spectrum(self) -> NDArray[np.float64]:
        """Return the Ritz values of N."""
        from scipy.linalg import eigvalsh_tridiagonal

        return np.asarray(eigvalsh_tridiagonal(self.diagonal, self.beside[:-1]))

    def _report(self, penalty: float, residual: float) -> SolverReport:
        values = self._spectrum() + penalty if self.count else np.ones(1)
        condition = float(values[-1] / values[0]) if values[0] > 0 else math.inf
        return self.problem.certificate("path", self.count, residual, condition)


def _device(array: Array) -> Array:
    from array_api_compat import device

    return device(array)
