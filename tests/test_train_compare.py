"""The closed form of the reduced model on a training's own data."""

import math

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install -e '.[train]'")

import torch

from icltheory.prompts import stream_prompts
from icltheory.train import Data, Model, Optimization, Training, closed_form, compare_closed_form, train
from icltheory.train.data import held_out


def features(n, *, rho=0.1, d=3, length=6, seed=0):
    """Return H of every sequence, from its definition, and the labels."""
    (p,) = stream_prompts(d=d, context_length=length, n_sequences=n, n_tasks=math.inf, rho=rho, rng=seed, batch_size=n)
    rows = np.stack([np.append(d / length * y @ x, np.mean(y**2)) for x, y in zip(p.x, p.y, strict=True)])
    return np.einsum("bi,bj->bij", p.query, rows).reshape(n, d * (d + 1)), p.target


@pytest.mark.parametrize("n", [5, 12, 60])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("convention", ["scaled", "unscaled"])
def test_it_is_the_solution_of_the_normal_equations(n, ridge, convention):
    training = Training(
        data=Data(d=3, context_length=6, n_sequences=n, rho=0.1, convention=convention), dtype="float64", test=2
    )
    rows, label = features(n)
    if ridge:
        solution = np.linalg.solve(rows.T @ rows + n / 3 * ridge * np.eye(12), rows.T @ label)
    else:
        solution = np.linalg.pinv(rows) @ label
    c = 3.0 if convention == "unscaled" else 1.0  # prompts are sqrt(3) as large there, H 3^1.5 and the label sqrt(3)
    gamma = closed_form(training, ridge=ridge).gamma.detach().numpy() * c
    np.testing.assert_allclose(gamma.ravel(), solution, rtol=1e-6, atol=1e-9)


def test_a_reduced_model_trained_to_convergence_has_no_gap_and_few_steps_leave_one():
    data = Data(d=3, alpha=2.0, n_sequences=60, rho=0.1)

    def gap(steps, convention="scaled"):
        settings = Optimization(steps=steps, batch_size=60, learning_rate=0.05, validation=0)
        training = Training(
            data=Data(**{**vars(data), "convention": convention}),
            model=Model(name="reduced"),
            optimization=settings,
            dtype="float64",
            test=500,
        )
        return compare_closed_form(train(training))

    for convention in ("scaled", "unscaled"):
        found = gap(4000, convention)
        assert abs(found.gap_train) < 1e-6
        assert abs(found.gap_icl.value) < 1e-3
        assert found.distance.value < 1e-5
    early = gap(20)
    assert early.gap_train > 0.01
    assert early.distance.value > 0.01


def test_the_gap_is_the_difference_of_the_errors_with_the_error_of_pairs():
    data = Data(d=3, alpha=2.0, tau=30.0, rho=0.1)
    trained = train(
        Training(data=data, optimization=Optimization(steps=800, learning_rate=0.01, validation=0), test=3000)
    )
    found = compare_closed_form(trained)
    for name in ("icl", "idg"):
        gap, ours, theirs = getattr(found, f"gap_{name}"), getattr(trained, name), getattr(found, name)
        assert gap.value == pytest.approx(ours.value - theirs.value, abs=1e-5)
        prompts = held_out(trained.training, name, 3000, torch.device("cpu"))
        with torch.no_grad():
            losses = [
                (model(prompts.x, prompts.y, prompts.query) - prompts.label).double().square()
                for model in (trained.model, found.closed)
            ]
        assert gap.se == pytest.approx(float((losses[0] - losses[1]).std() / 3000**0.5), rel=1e-6)
    assert found.gap_train == pytest.approx(trained.train - found.train, abs=1e-5)


def test_linear_attention_reaches_the_closed_form_where_sequences_abound_and_not_where_they_do_not():
    def found(tau):
        settings = Optimization(steps=3000, learning_rate=0.01, validation=0)
        return compare_closed_form(train(Training(data=Data(d=4, alpha=2.0, tau=tau, rho=0.1), optimization=settings)))

    many, few = found(60.0), found(2.0)
    assert abs(many.gap_icl.value) < 0.02 * many.icl.value
    assert -0.02 < many.gap_train < 0  # it has d more effective parameters
    assert few.distance.value > 0.1


def test_data_without_a_closed_form_are_refused():
    with pytest.raises(ValueError, match="fixed data set"):
        closed_form(Training(data=Data(d=3, alpha=2.0, rho=0.1)))
    every = Data(d=3, alpha=2.0, tau=2.0, rho=0.1, layout="interleaved", loss="all")
    with pytest.raises(ValueError, match="more than one label"):
        closed_form(Training(data=every, model=Model(name="gpt2")))


def test_a_model_on_another_device_or_precision_is_compared_in_its_own():
    training = Training(
        data=Data(d=3, alpha=2.0, tau=4.0, rho=0.1), optimization=Optimization(steps=5, validation=0), test=20
    )
    assert closed_form(training).gamma.dtype == torch.float32
