"""The feature matrix of linear attention as an operator: row i is the Kronecker product of x_i and r_i."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]

_CACHE_BYTES = 1 << 20  # a block's share of x, r and workspace: half of a common per-core cache
_PANELS = 8  # groups of rows summed separately, whatever the number of threads, so that sums do not depend on it


class KhatriRao:
    r"""The n x d(d+1) matrix F with rows :math:`x_i \otimes r_i`, applied without being formed.

    .. math::
        F\,\mathrm{vec}(G) = \mathrm{rowsum}((X G) \odot R), \qquad
        F^\top u = X^\top (u \odot R), \qquad
        F F^\top = (X X^\top) \odot (R R^\top)

    One application costs 2 n d (d+1) operations and no memory to speak of. Rows are worked through in blocks that stay
    in cache; `threads` of them at a time where a `parallel` context is open. The result does not depend on the
    number of threads, to the last bit.

    Parameters
    ----------
    x : array of shape (n, d)
    r : array of shape (n, m)
        The two factors, of one floating dtype, which is the precision of the products.
    """

    def __init__(self, x: Array, r: Array) -> None:
        self.x, self.r = np.ascontiguousarray(x), np.ascontiguousarray(r)
        self.shape = (len(x), x.shape[1] * r.shape[1])
        bytes_a_row = (x.shape[1] + 2 * r.shape[1]) * x.itemsize
        self._rows = int(np.clip(_CACHE_BYTES // bytes_a_row, 64, 4096))
        self._map: Callable[..., Any] = map
        panels = min(_PANELS, -(-len(x) // self._rows))
        edges = np.linspace(0, len(x), panels + 1).astype(int)
        self._panels = list(itertools.pairwise(edges))
        self._work = [np.empty((self._rows, r.shape[1]), x.dtype) for _ in self._panels]

    @contextmanager
    def parallel(self, threads: int) -> Iterator[None]:
        """Let up to `threads` panels be worked on at once inside this context."""
        if threads <= 1 or len(self._panels) == 1:
            yield
            return
        with ThreadPoolExecutor(threads) as pool:
            self._map = pool.map
            try:
                yield
            finally:
                self._map = map

    def as_type(self, dtype: type[np.floating[Any]]) -> "KhatriRao":
        """Return the operator in another precision."""
        return KhatriRao(self.x.astype(dtype), self.r.astype(dtype))

    def forward(self, g: Array) -> Array:
        """Return F vec(g), shape (n,), for g of shape (d, m)."""
        out = np.empty(len(self.x), self.x.dtype)

        def panel(index: int) -> None:
            for rows, work in self._blocks(index):
                np.matmul(self.x[rows], g, out=work)
                np.einsum("ij,ij->i", work, self.r[rows], out=out[rows])

        self._run(panel)
        return out

    def adjoint(self, u: Array) -> Array:
        """Return F^T u as an array of shape (d, m), for u of shape (n,)."""

        def panel(index: int) -> Array:
            total = self._zeros()
            for rows, work in self._blocks(index):
                np.multiply(self.r[rows], u[rows, None], out=work)
                total += self.x[rows].T @ work
            return total

        return _sum(self._run(panel))

    def normal(self, g: Array) -> Array:
        """Return F^T F vec(g) as an array of shape (d, m), in one pass over the rows."""

        def panel(index: int) -> Array:
            total = self._zeros()
            for rows, work in self._blocks(index):
                np.matmul(self.x[rows], g, out=work)
                fitted = np.einsum("ij,ij->i", work, self.r[rows])
                np.multiply(self.r[rows], fitted[:, None], out=work)
                total += self.x[rows].T @ work
            return total

        return _sum(self._run(panel))

    def row_norms(self) -> Array:
        """Return the squared norm of every row, |x_i|^2 |r_i|^2."""
        norms: Array = np.einsum("ij,ij->i", self.x, self.x) * np.einsum("ij,ij->i", self.r, self.r)
        return norms

    def dual_gram(self) -> Array:
        """Return the lower triangle of F F^T (n x n; the rest is zero)."""
        n = len(self.x)
        gram = np.zeros((n, n), self.x.dtype)
        for start in range(0, n, 512):
            rows, columns = slice(start, start + 512), slice(0, min(start + 512, n))
            np.multiply(self.x[rows] @ self.x[columns].T, self.r[rows] @ self.r[columns].T, out=gram[rows, columns])
        return gram

    def feature_blocks(self) -> Iterator[Array]:
        """Yield the rows of F itself, some thousands of numbers at a time: for the direct solver and for tests."""
        rows = max(1, (1 << 22) // self.shape[1])
        for start in range(0, len(self.x), rows):
            x, r = self.x[start : start + rows], self.r[start : start + rows]
            yield (x[:, :, None] * r[:, None, :]).reshape(len(x), -1)

    def _run(self, panel: Callable[[int], Any]) -> list[Any]:
        return list(self._map(panel, range(len(self._panels))))

    def _blocks(self, index: int) -> Iterator[tuple[slice, Array]]:
        first, last = self._panels[index]
        for start in range(first, last, self._rows):
            stop = min(start + self._rows, last)
            yield slice(start, stop), self._work[index][: stop - start]

    def _zeros(self) -> Array:
        return np.zeros((self.x.shape[1], self.r.shape[1]), self.x.dtype)


def _sum(parts: Sequence[Array]) -> Array:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
