"""The feature matrix of linear attention as an operator: row i is the Kronecker product of x_i and r_i."""

import itertools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

Array = Any  # of any array library that array-api-compat knows: numpy, PyTorch, CuPy, ...

_CACHE_BYTES = 1 << 21  # the share of x, r and workspace in a block: a common per-core cache
_DEVICE_BYTES = 1 << 28  # the same on an accelerator, where a block must keep all units busy
_PANELS = 8  # groups of rows summed separately, whatever the number of threads, so that sums do not depend on it
_KERNEL = 1_000_000  # multiplications in a product small enough for a kernel of OpenBLAS that is a fifth faster
_SLICE = 96  # rows in such a product; short sums also round less


class _Scratch(threading.local):
    """Arrays that every block writes over, a set for each thread: fresh ones would be mapped in page by page."""

    def __init__(self) -> None:
        self.held: dict[str, Array] = {}

    def array(self, name: str, shape: Sequence[int], like: Array) -> Array:
        """Return the array of that name, of any content, in the shape wanted."""
        size = math.prod(shape)
        if name not in self.held or self.held[name].size < size:
            self.held[name] = np.empty(size, like.dtype)
        return self.held[name][:size].reshape(shape)


class KhatriRao:
    r"""The n x d(d+1) matrix F with rows :math:`x_i \otimes r_i`, applied without being formed.

    .. math::
        F\,\mathrm{vec}(G) = \mathrm{rowsum}((X G) \odot R), \qquad
        F^\top u = X^\top (u \odot R), \qquad
        F F^\top = (X X^\top) \odot (R R^\top)

    One application costs 2 n d (d+1) operations and no memory to speak of. Rows are worked through in blocks that stay
    in cache, for d from 36 to 101 as stacks of slices so small that BLAS multiplies them without packing; `threads`
    panels of rows at a time where a `parallel` context is open. The result does not depend on the number of threads,
    to the last bit.

    Parameters
    ----------
    x : array of shape (n, d)
    r : array of shape (n, m)
        The two factors, of one floating dtype, which is the precision of the products, from one array library
        (numpy, PyTorch, ...) and on one device, where all products are then made.
    """

    def __init__(self, x: Array, r: Array) -> None:
        from array_api_compat import array_namespace, device, is_numpy_namespace

        self.xp = array_namespace(x, r)
        self.on_host = is_numpy_namespace(self.xp)
        self.device = device(x)
        self.x: Array = np.ascontiguousarray(x) if self.on_host else x
        self.r: Array = np.ascontiguousarray(r) if self.on_host else r
        self.shape = (int(x.shape[0]), int(x.shape[1] * r.shape[1]))
        self.shape_of_g = (int(x.shape[1]), int(r.shape[1]))
        at_hand = _CACHE_BYTES if str(self.device).startswith("cpu") else _DEVICE_BYTES
        a_row = (x.shape[1] + 2 * r.shape[1]) * self.xp.finfo(x.dtype).bits // 8
        rows = int(np.clip(at_hand // a_row, 64, at_hand >> 8))
        small = self.on_host and _KERNEL // 8 <= _SLICE * self.shape[1] <= _KERNEL
        self._slice = min(_SLICE, rows) if small else rows
        self._rows = rows // self._slice * self._slice
        self._map: Callable[..., Any] = map
        self._scratch = _Scratch()
        # panels of whole slices but for the last
        slices = -(-self.shape[0] // self._slice)
        panels = min(_PANELS, -(-self.shape[0] // self._rows)) if self.on_host else 1
        edges = [min(slices * i // panels * self._slice, self.shape[0]) for i in range(panels + 1)]
        self._panels = list(itertools.pairwise(edges))

    @contextmanager
    def parallel(self, threads: int) -> Iterator[None]:
        """Let up to `threads` panels be worked on at once inside this context (numpy only: others have their own)."""
        if threads <= 1 or len(self._panels) == 1:
            yield
            return
        with ThreadPoolExecutor(threads) as pool:
            self._map = pool.map
            try:
                yield
            finally:
                self._map = map

    def as_type(self, dtype: Any) -> "KhatriRao":
        """Return the operator in another precision."""
        return KhatriRao(self.xp.astype(self.x, dtype), self.xp.astype(self.r, dtype))

    def forward(self, g: Array) -> Array:
        """Return F vec(g), shape (n,), for g of shape (d, m)."""

        def panel(index: int) -> list[Array]:
            return [self.xp.reshape(self._fitted(x, r, g), (-1,)) for _, x, r in self._blocks(index)]

        return self.xp.concat(list(itertools.chain.from_iterable(self._run(panel))))

    def adjoint(self, u: Array) -> Array:
        """Return F^T u as an array of shape (d, m), for u of shape (n,)."""

        def panel(index: int) -> Array:
            return _sum(
                self._gathered(x, r, self.xp.reshape(u[rows], x.shape[:2])) for rows, x, r in self._blocks(index)
            )

        return _sum(self._run(panel))

    def normal(self, g: Array) -> Array:
        """Return F^T F vec(g) as an array of shape (d, m), in one pass over the rows."""

        def panel(index: int) -> Array:
            return _sum(self._gathered(x, r, self._fitted(x, r, g)) for _, x, r in self._blocks(index))

        return _sum(self._run(panel))

    def row_norms(self) -> Array:
        """Return the squared norm of every row, |x_i|^2 |r_i|^2."""
        return self.xp.vecdot(self.x, self.x) * self.xp.vecdot(self.r, self.r)

    def gram(self) -> Array:
        """Return the lower triangle of F^T F in Fortran order (p x p; the rest is zero). Numpy only."""
        from scipy.linalg import blas

        gram = np.zeros((self.shape[1], self.shape[1]), self.x.dtype, order="F")
        for rows in self.feature_blocks():
            gram = blas.dsyrk(1.0, rows.T, beta=1.0, c=gram, lower=1, overwrite_c=1)
        return gram

    def dual_gram(self) -> Array:
        """Return the lower triangle of F F^T (n x n; the rest is zero). Numpy only."""
        n = self.shape[0]
        gram = np.zeros((n, n), self.x.dtype)
        for start in range(0, n, 512):
            rows, columns = slice(start, start + 512), slice(0, min(start + 512, n))
            np.multiply(self.x[rows] @ self.x[columns].T, self.r[rows] @ self.r[columns].T, out=gram[rows, columns])
        return gram

    def feature_blocks(self) -> Iterator[Array]:
        """Yield the rows of F itself, some thousands of numbers at a time: for direct solvers and for tests."""
        rows = max(1, (1 << 22) // self.shape[1])
        for start in range(0, self.shape[0], rows):
            x, r = self.x[start : start + rows, :], self.r[start : start + rows, :]
            yield self.xp.reshape(x[:, :, None] * r[:, None, :], (x.shape[0], -1))

    def _fitted(self, x: Array, r: Array, g: Array) -> Array:
        """Return x_i^T g r_i for every row of a block."""
        if not self.on_host:
            return self.xp.vecdot(x @ g, r)
        return np.vecdot(np.matmul(x, g, out=self._scratch.array("rows", r.shape, r)), r)

    def _gathered(self, x: Array, r: Array, u: Array) -> Array:
        """Return the sum of u_i x_i r_i^T over a block."""
        if not self.on_host:
            return self.xp.sum(self.xp.matrix_transpose(x) @ (r * u[:, :, None]), axis=0)
        weighted = np.multiply(r, u[:, :, None], out=self._scratch.array("rows", r.shape, r))
        parts = self._scratch.array("parts", (len(x), x.shape[2], r.shape[2]), r)
        return np.sum(np.matmul(x.transpose(0, 2, 1), weighted, out=parts), axis=0)

    def _run(self, panel: Callable[[int], Any]) -> list[Any]:
        return list(self._map(panel, range(len(self._panels))))

    def _blocks(self, index: int) -> Iterator[tuple[slice, Array, Array]]:
        """Yield blocks of a panel: their rows, and x and r there as stacks of slices, (slices, their rows, columns)."""
        first, last = self._panels[index]
        for start, stop in itertools.pairwise(self._cuts(first, last)):
            rows = slice(start, stop)
            stack = max(1, (stop - start) // self._slice), -1
            yield rows, *(self.xp.reshape(part[rows, :], (*stack, part.shape[1])) for part in (self.x, self.r))

    def _cuts(self, first: int, last: int) -> list[int]:
        """Return where the blocks of a panel begin and end: whole slices, about equally many each, and what is left."""
        slices = (last - first) // self._slice
        blocks = -(-slices * self._slice // self._rows)
        cuts = [first + slices * i // blocks * self._slice for i in range(blocks)] + [first + slices * self._slice]
        return cuts if cuts[-1] == last else [*cuts, last]


def _sum(parts: Iterator[Array] | Sequence[Array]) -> Array:
    """Add in the order given."""
    terms = iter(parts)
    total = next(terms)
    for term in terms:
        total = total + term
    return total


def to_numpy(array: Array) -> Any:
    """Return a copy on the host as a numpy array, or the array itself if it is one."""
    from array_api_compat import is_cupy_array, is_torch_array

    if is_torch_array(array):
        return array.detach().cpu().numpy()
    return array.get() if is_cupy_array(array) else np.asarray(array)
