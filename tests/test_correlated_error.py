"""The exact error on correlated prompts, against sums over all pairings of Gaussian variables (Wick), and samples."""

import itertools

import numpy as np
import pytest

from icltheory.prompts import draw_tasks, moments_of_law, moments_of_tasks
from icltheory.prompts.kernels import Kernel
from icltheory.simulate import exact_error

KERNELS = {
    "exponential": Kernel.exponential(1.5, 3),
    "power law": Kernel.power_law(0.3, 3),
    "one token": Kernel.exponential(np.inf, 3),
    "matrix": Kernel.from_matrix(
        [[1.0, -0.5, 0.3, 0.2], [-0.5, 1.0, 0.1, -0.6], [0.3, 0.1, 1.0, 0.4], [0.2, -0.6, 0.4, 1.0]],
        includes_query=True,
    ),
}


def moment(covariance, variables):
    """Return the expectation of a product of Gaussian variables of mean zero: the sum over all pairings."""
    if not variables:
        return 1.0
    first, *rest = variables
    return sum(covariance[first, other] * moment(covariance, rest[:i] + rest[i + 1 :]) for i, other in enumerate(rest))


def slow_error(gamma, w, kernel, query, rho):
    """Expand (y - sum_ij Gamma_ij x_i r_j)^2 into products of tokens and labels, and take each one's expectation."""
    d, length = len(w), kernel.context_length
    k = kernel.query_vector(query)
    tokens = np.kron(np.block([[kernel.matrix(), k[:, None]], [k[None, :], np.ones((1, 1))]]), np.eye(d)) / d
    labels = np.kron(np.eye(length + 1), w)  # y_a = w.x_a + noise
    both = np.vstack([np.eye(tokens.shape[0]), labels])
    covariance = both @ tokens @ both.T
    covariance[-length - 1 :, -length - 1 :] += rho * np.eye(length + 1)
    x = lambda a, i: a * d + i  # noqa: E731
    y = lambda a: (length + 1) * d + a  # noqa: E731
    # x_i r_j as a list of (coefficient, variables)
    parts = []
    for i, j in itertools.product(range(d), range(d + 1)):
        for a in range(length):
            last = [y(a)] if j == d else [x(a, j)]
            parts.append((gamma[i, j] * (1.0 if j == d else d) / length, [x(length, i), y(a), *last]))
    target = [y(length)]
    error = moment(covariance, target * 2)
    error -= 2 * sum(c * moment(covariance, target + v) for c, v in parts)
    return error + sum(c * e * moment(covariance, v + u) for (c, v), (e, u) in itertools.product(parts, repeat=2))


@pytest.mark.parametrize("query", ["independent", "next"])
@pytest.mark.parametrize("name", KERNELS)
def test_every_pairing(name, query):
    kernel, rng, rho = KERNELS[name], np.random.default_rng(1), 0.3
    gamma, tasks = rng.standard_normal((2, 3)), rng.standard_normal((2, 2))
    expected = np.mean([slow_error(gamma, w, kernel, query, rho) for w in tasks])
    found = exact_error(gamma, moments_of_tasks(tasks), 3, rho, kernel.statistics(query))
    assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("law", ["sphere", "gaussian"])
def test_a_law_is_the_mean_over_its_tasks(law):
    """A quadrature over the tasks of d = 2: angles, and norms for the Gaussian law."""
    nodes, weights = np.polynomial.laguerre.laggauss(8)  # |w|^2/2 is exponential at d = 2
    norms = np.sqrt(2 * nodes) if law == "gaussian" else np.array([np.sqrt(2.0)])
    shares = weights if law == "gaussian" else np.ones(1)
    angles = np.arange(16) * np.pi / 8
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    kernel, gamma = KERNELS["matrix"], np.random.default_rng(0).standard_normal((2, 3))
    statistics = kernel.statistics("next")
    rings = [exact_error(gamma, moments_of_tasks(norm * circle), 3, 0.2, statistics) for norm in norms]
    assert exact_error(gamma, moments_of_law(law, 2), 3, 0.2, statistics) == pytest.approx(shares @ rings, rel=1e-10)


def test_a_structured_law_against_many_tasks():
    rng = np.random.default_rng(0)
    covariance = np.array([1.8, 0.9, 0.3])
    tasks = draw_tasks(400_000, 3, "gaussian", rng, covariance=covariance)
    gamma, statistics = rng.standard_normal((3, 4)), KERNELS["exponential"].statistics("next")
    exact = exact_error(gamma, moments_of_law("gaussian", 3, covariance=covariance), 3, 0.2, statistics)
    parts = [exact_error(gamma, moments_of_tasks(part), 3, 0.2, statistics) for part in np.split(tasks, 40)]
    assert abs(np.mean(parts) - exact) < 4 * np.std(parts) / np.sqrt(40) < 0.02 * exact


def test_weak_and_strong_limits_of_the_paper():
    """Letey et al. 2026 print leading orders, for weak correlations and for strong ones: the rest falls like 1/d."""
    rho, alpha = 0.1, 2.0
    rest = {"weak": [], "strong": []}
    for d in (80, 320):
        length, rng = int(alpha * d), np.random.default_rng(0)
        square = 0.5 * np.eye(d) + 0.3 * rng.standard_normal((d, d)) / np.sqrt(d)
        gamma, t, norm = np.column_stack([square, np.zeros(d)]), np.trace(square) / d, np.vdot(square, square)
        found = Kernel.exponential(2.0, length).statistics("next")
        weak = rho + 1 - 2 * t * (1 + found.k0 / alpha) + (1 + (found.k2 + rho) / alpha) * norm / d
        weak += (found.k1 + found.k0 * rho) * t**2 / alpha**2 + 2 / alpha * found.k0 * t**2
        same = Kernel.exponential(np.inf, length).statistics("next")  # k0 = k2 = l, k1 = l^2
        strong = 1 + rho - 2 * same.k0 / length * d * t + same.k2 / length * norm
        strong += same.k1 / length**2 * (np.vdot(square, square.T) + (d * t) ** 2)
        for name, expected, statistics in (("weak", weak, found), ("strong", strong, same)):
            rest[name].append(exact_error(gamma, moments_of_law("sphere", d), length, rho, statistics) / expected - 1)
    for few, many in rest.values():
        assert abs(few) < 0.06
        assert few / many == pytest.approx(4.0, rel=0.2)


def test_a_kernel_in_place_of_its_statistics():
    with pytest.raises(TypeError, match="statistics must be those of a kernel"):
        exact_error(np.eye(2, 3), moments_of_law("sphere", 2), 3, 0.2, KERNELS["matrix"])


def test_no_correlation_is_the_error_as_it_was():
    gamma = np.random.default_rng(0).standard_normal((3, 4))
    moments = moments_of_law("gaussian", 3)
    plain = exact_error(gamma, moments, 5, 0.2)
    assert exact_error(gamma, moments, 5, 0.2, Kernel.independent(5).statistics("next")) == plain
