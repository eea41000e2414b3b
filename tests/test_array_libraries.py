"""PyTorch tensors run through the same operator and solvers; on a GPU, see tests/gpu/check.py."""

import sys

import numpy as np
import pytest

import icltheory as icl

from . import array_checks

POINT = {"d": 36, "alpha": 1.0, "kappa": 0.5, "rho": 0.01, "rng": 0}


@pytest.mark.parametrize("check", array_checks.ALL, ids=lambda check: check.__name__)
def test_torch_on_the_cpu(check, torch):
    check(lambda a: torch.from_numpy(np.array(a)), lambda t: t.numpy())


@pytest.mark.parametrize("check", array_checks.ALL, ids=lambda check: check.__name__)
def test_a_strict_implementation_of_the_standard(check):
    """array-api-strict refuses whatever the array API standard does not promise, so that any library will do."""
    strict = pytest.importorskip("array_api_strict")
    check(strict.asarray, np.asarray)


@pytest.mark.parametrize("cache", [1 << 16, 1 << 18, 1 << 21])
def test_numpy_whatever_the_blocks(cache, monkeypatch):
    monkeypatch.setattr(icl.simulate.khatri_rao, "_CACHE_BYTES", cache)
    for check in array_checks.ALL:
        check(np.array, np.asarray)


def test_stacks_of_slices_give_the_same_bits_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(icl.simulate.khatri_rao, "_CACHE_BYTES", 1 << 18)
    x, r, u = array_checks.draw(40, 5000)
    features = icl.simulate.khatri_rao.KhatriRao(x, r)
    alone = features.normal(features.adjoint(u))
    with features.parallel(3):
        np.testing.assert_array_equal(features.normal(features.adjoint(u)), alone)


def same(here, there):
    assert type(there.gamma) is np.ndarray
    assert there.point == here.point
    assert there.solver.name == here.solver.name
    np.testing.assert_allclose(there.gamma, here.gamma, rtol=0, atol=1e-9 * np.abs(here.gamma).max())
    for risk in ("icl", "idg", "gap", "train"):
        assert getattr(there, risk) == pytest.approx(getattr(here, risk), rel=1e-8)


@pytest.mark.parametrize(("tau", "method"), [(0.6, "auto"), (2.0, "cg"), (0.6, "cg"), (1.1, "primal")])
def test_a_simulation_on_a_device_is_the_simulation(tau, method, torch, monkeypatch):
    point = {**POINT, "tau": tau, "ridge": 1e-3, "method": method, "tol": 1e-11}
    here = icl.simulate.linear_attention(**point)
    used = []
    fit = icl.simulate.experiment.ridge_regression
    monkeypatch.setattr(
        icl.simulate.experiment, "ridge_regression", lambda x, *rest, **more: used.append(x) or fit(x, *rest, **more)
    )
    same(here, icl.simulate.linear_attention(**point, device="cpu"))
    assert [isinstance(x, torch.Tensor) for x in used] == [True]


@pytest.mark.parametrize("tau", [0.6, 2.0])
def test_a_path_on_a_device_is_the_path(tau, torch):
    point = {**POINT, "tau": tau, "ridges": [1.0, 1e-3], "tol": 1e-11}
    for here, there in zip(
        icl.simulate.linear_attention_path(**point),
        icl.simulate.linear_attention_path(**point, device="cpu"),
        strict=True,
    ):
        same(here, there)


@pytest.mark.parametrize("run", ["linear_attention", "linear_attention_path"])
def test_a_device_that_is_not_there(run, torch, monkeypatch):
    point = {**POINT, "tau": 2.0, **({"ridges": [1.0]} if run == "linear_attention_path" else {})}
    simulate = getattr(icl.simulate, run)
    missing = ["gpu", "meta"] if torch.cuda.is_available() else ["gpu", "meta", "cuda"]
    for device in missing:
        with pytest.raises(
            ValueError, match=f"device must be None .* computes in double precision .*, got '{device}': "
        ):
            simulate(**point, device=device)
    with pytest.raises(TypeError, match=r"device must be None \(numpy\) or a string .*, got 0"):
        simulate(**point, device=0)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"device='cpu' needs PyTorch, which is not installed: pip install torch"):
        simulate(**point, device="cpu")
    simulate(**point)
