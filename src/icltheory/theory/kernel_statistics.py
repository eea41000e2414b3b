"""From kernels to the statistics that the theory of correlated prompts takes, and a warning where it does not apply."""

import warnings
from collections.abc import Sequence

import numpy as np

from icltheory.points import Floats
from icltheory.prompts.kernels import Kernel, Query, require_kernel
from icltheory.prompts.regimes import Regime

Kernels = Kernel | Sequence[Kernel]


class CorrelationWarning(UserWarning):
    """Tokens are so strongly correlated that the theory, which takes k0, k1 and k2 to be of order 1, may be wrong.

    Attributes
    ----------
    kernel : Kernel
        The first of the kernels for which that is so.
    regime : Regime
        What it is instead of weak, and why.
    """

    def __init__(self, kernel: Kernel, regime: Regime, others: int) -> None:
        self.kernel, self.regime = kernel, regime
        more = f", and {others} more" if others else ""
        super().__init__(
            f"correlations are not weak but {regime.name} ({kernel.name}{more}): {regime.reason}; the theory may be "
            "wrong there, simulate.linear_attention(kernel=...) is exact"
        )


def statistics_of(kernels: Kernels, query: Query, *, stacklevel: int = 3) -> tuple[Floats, Floats, Floats]:
    """Return k0, k1 and k2, of shape () for one kernel and (m,) for m of them; warn unless all are weak.

    Parameters
    ----------
    kernels : Kernel or sequence of Kernel
    query : {"independent", "next"} or array of shape (l,)
    stacklevel : int
        Of the warning: 3 is the caller's caller.
    """
    many = list(all_kernels("kernel", kernels))
    outside = [(each, regime) for each in many if (regime := each.regime(query)).name != "weak"]
    if outside:
        warnings.warn(CorrelationWarning(*outside[0], len(outside) - 1), stacklevel=stacklevel)
    found = [each.statistics(query).possible() for each in many]
    values = np.array([[s.k0, s.k1, s.k2] for s in found]).T
    k0, k1, k2 = values[:, 0] if isinstance(kernels, Kernel) else values
    return np.asarray(k0), np.asarray(k1), np.asarray(k2)


def all_kernels(name: str, kernels: Kernels) -> Sequence[Kernel]:
    """Return the kernels as a sequence of at least one, or raise an error under the argument's name."""
    many = [kernels] if isinstance(kernels, Kernel) else kernels
    if not isinstance(many, Sequence) or not many or not all(isinstance(each, Kernel) for each in many):
        raise TypeError(f"{name} must be a Kernel or a list of them, got {kernels!r}")
    return many


def of_both(
    alpha: Floats,
    d: int | None,
    kernel: Kernels | None,
    query: Query,
    test_kernel: Kernels | None,
    test_query: Query | None,
) -> dict[str, Floats]:
    """Return the arguments that `correlated_context` takes for prompts of these kernels, in training and tests."""
    if kernel is None:
        require_kernel(query)
    independent = np.zeros(()), np.zeros(()), np.ones(())
    train = independent if kernel is None else statistics_of(kernel, query, stacklevel=4)
    if kernel is not None and d is not None:
        _require_length("kernel", kernel, alpha * d)
    tested, asked = kernel if test_kernel is None else test_kernel, query if test_query is None else test_query
    test = independent if tested is None else statistics_of(tested, asked, stacklevel=4)
    test_alpha = alpha
    if test_kernel is not None and d is not None:
        test_alpha = context_lengths(test_kernel) / np.asarray(float(d))
    elif test_kernel is not None and kernel is not None:
        test_alpha = alpha * (context_lengths(test_kernel) / context_lengths(kernel))
    names = ("k0", "k1", "k2", "test_k0", "test_k1", "test_k2")
    return {"test_alpha": test_alpha, **dict(zip(names, train + test, strict=True))}


def _require_length(name: str, kernels: Kernels, wanted: Floats) -> None:
    """Raise an error if a kernel is of other prompts than those asked for."""
    lengths, wanted = np.broadcast_arrays(context_lengths(kernels), np.round(wanted))
    if np.any(lengths != wanted):
        i = np.flatnonzero(lengths != wanted)[0]
        raise ValueError(
            f"{name} must have the context length of the prompts, {wanted.flat[i]:g}, got {lengths.flat[i]:g}; "
            "leave alpha and context_length out to take the kernel's"
        )


def context_lengths(kernels: Kernels) -> Floats:
    """Return the kernels' context lengths, of the same shape as their statistics."""
    lengths = np.array([each.context_length for each in all_kernels("kernel", kernels)], dtype=np.float64)
    return lengths.reshape(()) if isinstance(kernels, Kernel) else lengths
