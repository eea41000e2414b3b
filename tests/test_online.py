"""One-pass training: the theory against its equations integrated naively, the simulation against one step at a time."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

import icltheory as icl
from icltheory.points import Point
from icltheory.prompts.tasks import draw_tasks
from icltheory.simulate.error import prompt_moments
from icltheory.simulate.online import DivergenceError, _advance, _sequences
from icltheory.theory.online_dynamics import gauss_rule
from icltheory.theory.online_finite import finite_modes, finite_noise, mean_task

POINT = {"alpha": 1.0, "kappa": 0.5, "rho": 0.1}


def test_the_check_values_to_the_printed_digits():
    """facts/online.md."""
    curve = icl.theory.online(t=[1, 2, 3, 5], step_size=0.4, **POINT)
    assert [f"{e:.3f}" for e in curve.icl] == ["1.149", "1.182", "1.195", "1.204"]
    assert [f"{e:.3f}" for e in curve.idg] == ["0.713", "0.696", "0.701", "0.707"]


def spectrum(kappa, nodes=2000):
    """Return nodes and weights of a plain trapezoid rule in the angle across the bulk, and the atom at 0."""
    if math.isinf(kappa):
        return np.ones(1), np.ones(1)
    low, high = (1 - kappa**-0.5) ** 2, (1 + kappa**-0.5) ** 2
    angle = (np.arange(nodes) + 0.5) * np.pi / nodes
    a = (low + high) / 2 + (high - low) / 2 * np.cos(angle)
    weight = kappa * ((high - low) / 2 * np.sin(angle)) ** 2 / (2 * nodes * a)
    return np.append(a, 0.0), np.append(weight, max(0.0, 1 - kappa))


def integrate(t, eta, *, alpha, kappa, rho, ridge=0.0, batch_size=1):
    """The equations as derived, in time counted in steps/d^2: mean and variance of every mode."""
    a, w = spectrum(kappa, 150)
    x, n = (1 + rho) / alpha, len(a)

    def errors(m, v):
        idg = rho + 1 - 2 * np.sum(w * a * m) + np.sum(w * (a + x) * (m**2 + v))
        return rho + 1 - 2 * np.sum(w * m) + (1 + x) * np.sum(w * (m**2 + v)), idg

    def velocity(steps, state):
        m, v = state[:n], state[n:]
        h = eta(steps * batch_size)
        noise = h**2 * errors(m, v)[1] * (a + x) / batch_size
        return np.concatenate([h * (a - (a + x + ridge) * m), -2 * h * (a + x + ridge) * v + noise])

    out = solve_ivp(
        velocity, (0, max(t) / batch_size), np.zeros(2 * n), t_eval=np.array(t) / batch_size, rtol=1e-10, atol=1e-12
    )
    assert out.success
    return [(*errors(y[:n], y[n:]), np.sum(w * (a + x) * y[n:]), (1 + x) * np.sum(w * y[n:])) for y in out.y.T]


@pytest.mark.parametrize("kappa", [0.3, 1.0, 2.5, math.inf])
@pytest.mark.parametrize(
    ("alpha", "rho", "ridge", "batch"), [(1.0, 0.1, 0.0, 1), (3.0, 0.4, 0.7, 1), (0.5, 0.0, 0.2, 4)]
)
def test_against_the_equations(kappa, alpha, rho, ridge, batch):
    point = {"alpha": alpha, "kappa": kappa, "rho": rho, "ridge": ridge, "batch_size": batch}
    eta, t = 0.7 * float(icl.theory.stability_edge(**point)), [0.1, 0.7, 3.0]
    for step_size in (eta, lambda time: eta / (1 + time)):
        curve = icl.theory.online(t=t, step_size=step_size, **point)
        slow = integrate(t, step_size if callable(step_size) else lambda _: eta, **point)
        fast = np.array([curve.icl, curve.idg, curve.idg_noise, curve.icl_noise]).T
        np.testing.assert_allclose(fast, slow, rtol=1e-8)
        np.testing.assert_allclose(curve.gap, curve.icl - curve.idg, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kappa", [0.02, 0.6, 1.0, 1.7, 40.0])
def test_gauss_rule_integrates_the_spectrum(kappa):
    a, w = gauss_rule(kappa, 40)
    low, high = (1 - kappa**-0.5) ** 2, (1 + kappa**-0.5) ** 2

    def density(angle):
        at = (low + high) / 2 + (high - low) / 2 * math.cos(angle)
        return at, kappa * ((high - low) / 2 * math.sin(angle)) ** 2 / (2 * math.pi * at)

    for f in (lambda a: a, lambda a: a**2, lambda a: a**5, lambda a: 1 / (a + 0.3), lambda a: math.exp(-a)):
        exact = quad(lambda angle, f=f: f(density(angle)[0]) * density(angle)[1], 0, math.pi, epsabs=1e-13, limit=300)[
            0
        ]
        exact += max(0.0, 1 - kappa) * f(0.0)
        assert w @ [f(node) for node in a] == pytest.approx(exact, rel=1e-10)
    assert a.min() >= 0
    assert w.sum() == pytest.approx(1, rel=1e-14)


@pytest.mark.parametrize("kappa", [0.3, 2.0, math.inf])
@pytest.mark.parametrize("ridge", [0.0, 0.5, 50.0])
@pytest.mark.parametrize("batch", [1, 3])
def test_the_edge_is_where_growth_begins(kappa, ridge, batch):
    """The largest eigenvalue of the variance equations changes sign there."""
    alpha, rho = 2.0, 0.3
    edge = icl.theory.stability_edge(alpha=alpha, kappa=kappa, rho=rho, ridge=ridge, batch_size=batch)
    a, w = spectrum(kappa, 300)
    r = a + (1 + rho) / alpha
    for eta, sign in ((0.999 * edge, -1), (1.001 * edge, 1)):
        h = eta / batch
        matrix = -2 * h * np.diag(r + ridge) + h**2 * np.outer(r, w * r)
        assert np.sign(np.linalg.eigvals(matrix).real.max()) == sign
    if ridge == 0:
        assert edge == pytest.approx(2 * batch / (1 + 1.3 / 2), rel=1e-14)


@pytest.mark.parametrize("kappa", [0.3, 2.0, math.inf])
@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_the_limit_is_where_curves_end(kappa, ridge):
    point = {"alpha": 2.0, "kappa": kappa, "rho": 0.3, "ridge": ridge, "batch_size": 2}
    eta = np.array([0.2, 0.9]) * icl.theory.stability_edge(**point)
    limit, curve = icl.theory.online_limit(step_size=eta, **point), icl.theory.online(t=400, step_size=eta, **point)
    for name in ("icl", "idg", "gap", "icl_noise", "idg_noise", "edge", "stable"):
        np.testing.assert_allclose(getattr(curve, name), getattr(limit, name), rtol=1e-9, atol=1e-14, err_msg=name)
    # step by step smaller, it tends to the fit with this ridge on endless data
    fit = icl.theory.linear_attention(tau=math.inf, **{k: point[k] for k in ("alpha", "kappa", "rho", "ridge")})
    small = icl.theory.online_limit(step_size=1e-9, **point)
    np.testing.assert_allclose((small.icl, small.idg), (fit.icl, fit.idg), rtol=1e-8)


def test_without_decay_noise_adds_the_same_to_both_errors():
    eta = np.array([1e-6, 0.3, 0.9]) * icl.theory.stability_edge(**POINT)
    limit = icl.theory.online_limit(step_size=eta, **POINT)
    fit = icl.theory.linear_attention(tau=math.inf, **POINT)
    np.testing.assert_allclose(limit.gap, fit.gap, rtol=1e-13)
    np.testing.assert_allclose(limit.idg, fit.idg / (1 - eta / limit.edge), rtol=1e-13)


def test_start_and_batches_and_many_tasks():
    start = icl.theory.online(t=0, step_size=0.3, **POINT)
    assert (start.icl, start.idg) == pytest.approx((1.1, 1.1), rel=1e-13)
    assert start.icl_noise == pytest.approx(0, abs=1e-13)
    one = icl.theory.online(t=[0.5, 4], step_size=0.3, **POINT, ridge=0.1)
    ten = icl.theory.online(t=[0.5, 4], step_size=3.0, batch_size=10, **POINT, ridge=0.1)
    np.testing.assert_allclose(ten.icl, one.icl, rtol=1e-14)
    assert ten.edge[0] == pytest.approx(10 * one.edge[0])
    many = icl.theory.online(t=[0.5, 4], step_size=0.3, alpha=1, kappa=[[1e12], [math.inf]], rho=0.1)
    np.testing.assert_allclose(many.icl[0], many.icl[1], rtol=1e-10)
    assert np.all(many.gap[1] == 0)


def test_broadcasting():
    kwargs = {"t": [0.0, 2.0, 0.5], "alpha": [[1.0], [4.0]], "kappa": 0.5, "rho": 0.1, "ridge": [[0.0], [0.2]]}
    curve = icl.theory.online(step_size=[0.2, 0.3, 0.2], **kwargs)
    for name in ("t", "icl", "idg", "gap", "icl_noise", "idg_noise", "edge", "stable"):
        assert getattr(curve, name).shape == (2, 3)
    alone = icl.theory.online(t=0.5, step_size=0.2, alpha=4, kappa=0.5, rho=0.1, ridge=0.2)
    assert alone.icl.shape == ()
    assert alone.icl == pytest.approx(curve.icl[1, 2], rel=1e-9)
    scheduled = icl.theory.online(step_size=lambda t: 0.2 if t < 1 else 0.1, **kwargs)
    assert scheduled.icl[1, 2] == pytest.approx(alone.icl, rel=1e-8)
    assert icl.theory.online(t=[], step_size=0.1, **POINT).icl.shape == (0,)


def test_unstable_steps_are_refused_or_shown():
    with pytest.raises(ValueError, match=r"step_size must be below the edge of stability, 0.952381 here"):
        icl.theory.online(t=1, step_size=1.0, **POINT)
    with pytest.raises(ValueError, match=r"step_size\(t\) must be below the edge"):
        icl.theory.online(t=1, step_size=lambda t: 1 / (1 + t), **POINT)
    shown = icl.theory.online(t=[1, 5, 20], step_size=1.2, **POINT, allow_unstable=True)
    assert np.all(np.diff(shown.idg) > 0)
    assert not shown.stable.any()
    settling = icl.theory.online(t=[0, 5], step_size=lambda t: 1.2 / (1 + t), **POINT, allow_unstable=True)
    assert settling.stable.tolist() == [False, True]
    with pytest.raises(OverflowError, match="ask for t below"):
        icl.theory.online(t=1e5, step_size=1.2, **POINT, allow_unstable=True)
    limit = icl.theory.online_limit(step_size=[0.9, 1.0], **POINT)
    assert np.isfinite(limit.icl).tolist() == limit.stable.tolist() == [True, False]
    assert np.isinf([limit.icl[1], limit.idg[1], limit.icl_noise[1], limit.idg_noise[1]]).all()


@pytest.mark.parametrize("function", ["theory", "simulate"])
@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        (
            {"d": 10, "kappa": 0.01},
            ValueError,
            "kappa must be large enough that n_tasks rounds to at least 1 at d = 10",
        ),
        ({"t": -1}, ValueError, "t must be >= 0 and finite, got -1"),
        ({"t": math.inf}, ValueError, "t must be >= 0 and finite, got inf"),
        ({"t": "now"}, TypeError, "t must be a number"),
        ({"step_size": 0}, ValueError, "step_size must be > 0 and finite, or a function of t, got 0"),
        ({"step_size": lambda t: -t}, ValueError, r"step_size\(t\) must be >= 0 and finite, got -"),
        ({"step_size": lambda t: "x"}, TypeError, r"step_size\(t\) must be a number, got 'x'"),
        ({"batch_size": 0}, ValueError, "batch_size must be an integer >= 1, got 0"),
        ({"kappa": -1}, ValueError, "kappa must be > 0, got -1"),
        ({"ridge": -1}, ValueError, "ridge must be >= 0 and finite, got -1"),
    ],
)
def test_bad_arguments_are_named(function, fault, error, message):
    arguments = {"t": [1.0], "step_size": 0.3, **POINT, **fault}
    if function == "simulate":
        arguments |= {"d": 10, "rng": 0}
    with pytest.raises(error, match=message):
        getattr(icl, function).online(**arguments)


def one_by_one(blocks, batch, schedule, ridge, d):
    """Make every step as it is written."""
    gamma = np.zeros((d, d + 1))
    query, context, target = (np.concatenate([getattr(b, f) for b in blocks]) for f in ("query", "context", "target"))
    for start in range(0, len(target), batch):
        eta, gradient = schedule(start / d**2), np.zeros_like(gamma)
        for mu in range(start, start + batch):
            h = np.outer(query[mu], context[mu])
            gradient += (target[mu] - np.sum(gamma * h)) * h / batch
        gamma = gamma + eta / d * (gradient - ridge / d * gamma)
    return gamma


@pytest.mark.parametrize("batch", [1, 3, 70])
@pytest.mark.parametrize("ridge", [0.0, 0.8])
@pytest.mark.parametrize("kappa", [0.5, math.inf])
def test_blocks_of_steps_are_steps_one_by_one(batch, ridge, kappa):
    d, n = 12, 420

    def schedule(t):
        return 0.5 * batch**0.5 / (1 + t)

    run = icl.simulate.online(
        d=d, t=n / d**2, step_size=schedule, alpha=1.5, kappa=kappa, rho=0.2, ridge=ridge, batch_size=batch, rng=3
    )
    assert run.point.n_sequences == n
    task_stream, stream = np.random.default_rng(3).spawn(2)
    seen = None if math.isinf(kappa) else draw_tasks(6, d, "sphere", task_stream)
    blocks = list(_sequences(run.point, "sphere", seen, stream, [n]))
    np.testing.assert_allclose(run.gamma, one_by_one(blocks, batch, schedule, ridge, d), rtol=1e-9, atol=1e-12)
    moments = icl.prompts.moments_of_law("sphere", d)
    assert run.icl == icl.simulate.exact_error(run.gamma, moments, 18, 0.2)
    known = moments if seen is None else icl.prompts.moments_of_tasks(seen)
    assert run.idg == icl.simulate.exact_error(run.gamma, known, 18, 0.2)
    assert run.gap == run.icl - run.idg


def test_a_stretch_longer_than_what_is_drawn_at_once():
    point = Point.of(d=3, n_sequences=1, alpha=1, kappa=1, rho=0.1)
    seen = draw_tasks(3, 3, "sphere", np.random.default_rng(0))

    def targets(sizes):
        return np.concatenate([b.target for b in _sequences(point, "sphere", seen, np.random.default_rng(1), sizes)])

    np.testing.assert_array_equal(targets([9000, 200]), targets([1, 4095, 3, 5000, 101]))
    assert len(np.unique(targets([9200]))) == 9200


def test_the_draws_do_not_depend_on_the_times():
    kwargs = {"d": 10, "step_size": 0.3, **POINT, "rng": 5}
    often = icl.simulate.online(t=[[0.7, 0.0], [2.0, 0.03]], **kwargs)
    once = icl.simulate.online(t=2, **kwargs)
    assert often.t.shape == often.icl.shape == (2, 2)
    assert once.icl.shape == ()
    assert often.icl[1, 0] == pytest.approx(once.icl, rel=1e-12)
    assert (often.icl[0, 1], often.idg[0, 1]) == pytest.approx((1.1, 1.1))
    assert icl.simulate.online(t=[], **kwargs).icl.shape == (0,)
    assert icl.simulate.online(t=2, **{**kwargs, "rng": 6}).icl != once.icl


def test_strong_decay_within_a_block():
    """The rescaling by the accumulated decay loses no digits."""
    d = 6
    kwargs = {"d": d, "t": 60 / d**2, "step_size": 0.2, "alpha": 2.0, "kappa": math.inf, "rho": 0.1, "rng": 0}
    run = icl.simulate.online(**kwargs, ridge=0.5 * d**2 / 0.2)
    blocks = list(_sequences(run.point, "sphere", None, np.random.default_rng(0).spawn(2)[1], [60]))
    np.testing.assert_allclose(
        run.gamma, one_by_one(blocks, 1, lambda _: 0.2, run.point.ridge, d), rtol=1e-9, atol=1e-13
    )
    with pytest.raises(ValueError, match=r"ridge must be at most d\^2/\(2 step_size\) = 90"):
        icl.simulate.online(**kwargs, ridge=91.0)


def test_divergence_is_explained():
    with pytest.raises(DivergenceError, match=r"diverged: at t = .* step_size is 3 there; .* below 0.9524") as caught:
        icl.simulate.online(d=20, t=20, step_size=3.0, **POINT, rng=0)
    assert 0 < caught.value.t < 20
    copy = pickle.loads(pickle.dumps(caught.value))  # it crosses process boundaries
    assert (str(copy), copy.t) == (str(caught.value), caught.value.t)


def test_steps_leave_their_input_alone():
    point = Point.of(d=4, n_sequences=8, alpha=1, kappa=math.inf, rho=0.1)
    block = next(_sequences(point, "sphere", None, np.random.default_rng(0), [8]))
    gamma = np.ones((4, 5))
    after, residual = _advance(gamma, block, np.full(8, 0.1), 1, 0.0)
    assert np.all(gamma == 1)
    # the first residual is that of the parameters handed in
    assert residual[0] == pytest.approx(block.target[0] - block.query[0] @ gamma @ block.context[0])
    halves = replace(block, query=block.query[4:], context=block.context[4:], target=block.target[4:])
    first = replace(block, query=block.query[:4], context=block.context[:4], target=block.target[:4])
    middle, _ = _advance(gamma, first, np.full(4, 0.1), 1, 0.0)
    np.testing.assert_allclose(_advance(middle, halves, np.full(4, 0.1), 1, 0.0)[0], after, rtol=1e-12)


def test_finite_modes_have_the_exact_moments_of_a_prompt():
    d, length, rho = 20, 30, 0.2
    modes = finite_modes(d, length / d, 0.5, rho, 0.0)
    _, fresh = prompt_moments(icl.prompts.moments_of_law("sphere", d), length, rho)
    tasks = draw_tasks(10, d, "sphere", np.random.default_rng(0))
    a, seen = prompt_moments(icl.prompts.moments_of_tasks(tasks), length, rho)
    # traces: of sphere tasks, whose covariance has trace d exactly
    assert d * modes.weight @ modes.second == pytest.approx(np.trace(seen), rel=1e-13)
    assert d * modes.weight @ modes.fresh_second == pytest.approx(np.trace(fresh), rel=1e-13)
    assert d * modes.weight @ modes.a == pytest.approx(np.trace(a), rel=1e-13)
    assert d * modes.weight @ modes.fresh_a == pytest.approx(d, rel=1e-13)
    assert (modes.second[-1], modes.fresh_second[-1]) == pytest.approx((seen[-1, -1], fresh[-1, -1]))


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("kappa", [0.5, 2.0])
def test_the_mean_task_against_drawn_tasks(kappa, ridge):
    """The mean of Gamma with and without the coupling to the last feature, dense and averaged over draws."""
    d, length, rho = 60, 90, 0.2
    shift = mean_task(30, d, length / d, kappa, rho, ridge)

    def error(a, r, elapsed, tested):
        rates, basis = np.linalg.eigh(r)
        gamma = a @ basis @ np.diag((1 - np.exp(-(rates + ridge) * elapsed)) / (rates + ridge)) @ basis.T
        return (np.trace(gamma @ tested[1] @ gamma.T) - 2 * np.trace(gamma @ tested[0].T)) / d

    for elapsed in (0.3, 3.0):
        found = []
        for seed in range(80):
            tasks = draw_tasks(round(kappa * d), d, "sphere", np.random.default_rng(seed))
            seen = prompt_moments(icl.prompts.moments_of_tasks(tasks), length, rho)
            fresh = prompt_moments(icl.prompts.moments_of_law("sphere", d), length, rho)
            a, r = (array.copy() for array in seen)
            a[:, d] = r[d, :d] = r[:d, d] = 0
            found.append([error(*seen, elapsed, seen) - error(a, r, elapsed, (a, r))])
            found[-1].append(error(*seen, elapsed, fresh) - error(a, r, elapsed, fresh))
        mean, spread = np.mean(found, axis=0), np.std(found, axis=0) / math.sqrt(80)
        assert np.all(np.abs(shift(elapsed) - mean) < 4 * spread + 0.01 * np.abs(mean))
        assert abs(mean[0]) > 20 * spread[0]


def test_the_error_of_the_mean_task_feeds_the_noise(monkeypatch):
    """A constant error c that the modes do not hold adds c at once, and its noise by and by."""
    import sys

    module = sys.modules["icltheory.theory.online"]
    point = {"t": [1e-6, 5.0], "step_size": 0.6, "alpha": 1.0, "kappa": 0.5, "rho": 0.1, "d": 40}
    curves = []
    for c in (0.0, 0.1):
        monkeypatch.setattr(module, "mean_task", lambda *_arguments, c=c: lambda _elapsed: (c, c))
        curves.append(icl.theory.online(**point))
    added = curves[1].idg - curves[0].idg
    assert added[0] == pytest.approx(0.1, rel=1e-4)
    assert added[1] > 0.2  # f = .63: by 1/(1 - f) in the end
    assert curves[1].gap == pytest.approx(
        curves[0].gap + (curves[1].icl_noise - curves[1].idg_noise) - (curves[0].icl_noise - curves[0].idg_noise)
    )


def shared_component(tasks, basis, x, m, v):
    """Average |u|^2 r_a^2 over the tasks, exactly over the context noise n ~ N(0, x); less the product of averages."""
    w2 = (tasks @ basis) ** 2
    task, size = (1 - m) ** 2 + v, m**2 + v
    each, r2 = task * w2 + size * x, w2 + x  # means of u_b^2 and r_a^2, given the task
    same = (1 - m) ** 2 * w2 * (w2 + x) - 4 * m * (1 - m) * x * w2 + m**2 * (x * w2 + 3 * x**2)
    same += v * (w2**2 + 6 * w2 * x + 3 * x**2)
    product = each.sum(axis=1, keepdims=True) * r2 - each * r2 + same
    return (product.mean(axis=0) - each.mean(axis=0).sum() * r2.mean(axis=0)) / len(m)


@pytest.mark.parametrize(("kappa", "x"), [(0.5, 0.7), (2.0, 0.7), (8.0, 5.0)])
def test_the_covariance_by_shared_components(kappa, x):
    """Of drawn tasks, against the formula at their eigenvalues; alpha is so large that label energies do not vary."""
    d, alpha = 120, 1e6
    rho = alpha * x - 1
    found = []
    for seed in range(6):
        tasks = draw_tasks(int(kappa * d), d, "sphere", np.random.default_rng(seed))
        a, basis = np.linalg.eigh(tasks.T @ tasks / len(tasks))
        a = np.maximum(a, 0.0)
        mean, variance = 0.8 * a / (a + 0.5), 0.3 + 0.2 * a / (1 + a)
        modes = replace(
            finite_modes(d, alpha, kappa, rho, 0.0),
            weight=np.full(d + 1, 1 / d),
            a=np.append(a, 0.0),
            second=np.append(a + x, 0.0),
        )
        m, v = np.append(mean, 0.0), np.append(variance, 0.0)
        total = finite_noise(modes, d, alpha, kappa)(m, v)
        formula = (total - ((1 + 2 / d) * (modes.error(m, v) - rho) + rho) * modes.second)[:-1]
        exact = shared_component(tasks, basis, x, mean, variance)
        found.append([[np.mean(g * formula), np.mean(g * exact)] for g in (1 / (1 + a), a, a**2, np.cos(2 * a))])
    formula, exact = np.mean(found, axis=0).T
    error = np.std(np.array(found)[:, :, 1], axis=0, ddof=1) / math.sqrt(6)
    assert np.all(np.abs(formula - exact) < 4 * error + 4 / d * np.abs(exact).max())
    assert np.all(error < 0.03 * np.abs(exact).max())
