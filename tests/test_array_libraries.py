"""PyTorch tensors run through the same operator and solvers; on a GPU, see tests/gpu/check.py."""

import numpy as np
import pytest

from . import array_checks


@pytest.mark.parametrize("check", array_checks.ALL, ids=lambda check: check.__name__)
def test_torch_on_the_cpu(check):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    check(lambda a: torch.from_numpy(np.array(a)), lambda t: t.numpy())


@pytest.mark.parametrize("check", array_checks.ALL, ids=lambda check: check.__name__)
def test_a_strict_implementation_of_the_standard(check):
    """array-api-strict refuses whatever the array API standard does not promise, so that any library will do."""
    strict = pytest.importorskip("array_api_strict")
    check(strict.asarray, np.asarray)
