"""The exact test error against prompts drawn token by token."""

import numpy as np
import pytest

from icltheory.prompts import draw_tasks, moments_of_law, moments_of_tasks
from icltheory.simulate import exact_error
from icltheory.simulate.error import prompt_moments

from .reference import summarise, token_prompts


@pytest.mark.parametrize("law", ["sphere", "gaussian"])
@pytest.mark.parametrize("kind", ["icl", "idg"])
@pytest.mark.parametrize(("d", "length", "rho"), [(3, 2, 0.5), (4, 12, 0.05)])
def test_against_sampled_prompts(law, kind, d, length, rho):
    rng = np.random.default_rng(3)
    n = 400_000
    gamma = 0.5 * np.eye(d, d + 1) + 0.3 * rng.standard_normal((d, d + 1))
    if kind == "icl":
        moments, tasks = moments_of_law(law, d), draw_tasks(n, d, law, rng)
    else:
        seen = draw_tasks(3, d, law, rng)
        moments, tasks = moments_of_tasks(seen), seen[rng.integers(3, size=n)]
    query, context, target = summarise(*token_prompts(tasks, length, rho, rng))
    squares = (target - np.einsum("ni,ij,nj->n", query, gamma, context)) ** 2
    exact = exact_error(gamma, moments, length, rho)
    assert abs(squares.mean() - exact) < 4 * squares.std() / np.sqrt(n)
    assert 4 * squares.std() / np.sqrt(n) < 0.05 * exact  # precise enough to see a 5 % fault


@pytest.mark.parametrize("length", [1, 2, 5])
def test_every_entry_of_the_moments_of_a_prompt(length):
    """A and B entry by entry, for few tasks: the entries that couple w to the label energy are small in the error."""
    rng = np.random.default_rng(4)
    n, rho = 400_000, 0.3
    seen = np.array([[1.5, 0.2], [0.8, -1.0]])
    tasks = seen[rng.integers(2, size=n)]
    a, b = prompt_moments(moments_of_tasks(seen), length, rho)
    _, context, _ = summarise(*token_prompts(tasks, length, rho, rng))
    for exact, left in ((a, tasks), (b, context)):
        products = left[:, :, None] * context[:, None, :]
        error = products.std(axis=0) / np.sqrt(n)
        assert np.all(np.abs(products.mean(axis=0) - exact) < 4 * error)
    assert error[0, 2] < 0.03 * abs(b[0, 2])  # precise enough to tell 1 + 2/l from 1 + 1/l at l = 5


def test_the_corner_is_the_square_of_one_plus_rho():
    """A published formula has 1 + rho^2 there (facts/peers.md)."""
    _, b = prompt_moments(moments_of_law("sphere", 3), 10**9, 0.5)
    assert b[3, 3] == pytest.approx(1.5**2, rel=1e-8)


def test_a_model_that_predicts_zero_has_the_label_variance():
    assert exact_error(np.zeros((4, 5)), moments_of_law("gaussian", 4), 3, 0.2) == pytest.approx(1.2)


def test_wrong_shape():
    with pytest.raises(ValueError, match=r"gamma must have shape \(d, d \+ 1\) = \(4, 5\), got \(5, 4\)"):
        exact_error(np.zeros((5, 4)), moments_of_law("sphere", 4), 3, 0.2)
