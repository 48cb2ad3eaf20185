"""Methods on the semi-dual of barycentres: its slope, and each method line by line."""

import itertools

import numpy as np
import pytest
from barycenter_problems import make

import epsilot
from epsilot.barycenters import semi_dual
from epsilot.barycenters.family import make_family
from epsilot.barycenters.semi_dual import LBFGS, BlockPDASMD, evaluate, inner, quasi_newton
from epsilot.barycenters.stages import FamilyTarget, Stage
from epsilot.finite_sum.algorithm import draw
from tuning import tune

ETA = 0.1


def stored(family):
    return [(x.problem.p, x.problem.geometry.block(0, x.problem.p.size)) for x in family.supports]


def softmax(t):
    e = np.exp(t - t.max())
    return e / e.sum()


class Steps:
    """Steps of a solver at one η, from a point."""

    def __init__(self, solver, family, G, eta=ETA, seed=0):
        self.solver, self.target = solver, FamilyTarget(family, eta, Stage.FALL)
        self.rng = np.random.default_rng(seed)
        self.state, _ = solver.init(self.target, self.rng, (G.ravel(),))

    def next(self):
        """Take a step; return its work."""
        return self.solver.step(self.target, self.state, self.rng)


def family_and_point(name, rng, size=0.1):
    family = make_family(*make(name).args)
    return family, family.centred(size * rng.normal(size=family.shape))


NAMES = ["squared", "ragged", "zeros", "without weight"]


@pytest.mark.parametrize("name", NAMES)
def test_value_and_slope_are_written_out(name, rng):
    family, G = family_and_point(name, rng)
    at = evaluate(family, G, ETA)
    parts, columns = [], []
    for (p, C), g in zip(stored(family), G, strict=True):
        parts.append(ETA * p @ np.log(np.exp((g - C) / ETA).sum(axis=1)))
        columns.append(sum(x * softmax((g - row) / ETA) for x, row in zip(p, C, strict=True)))
    b = family.weights @ np.array(columns)
    assert at.value == pytest.approx(family.weights @ parts, rel=1e-12)
    np.testing.assert_allclose(at.gradient, np.array(columns) - b, atol=1e-13)
    assert at.error == pytest.approx(family.weights @ abs(np.array(columns) - b).sum(axis=1))
    direction, h = family.centred(rng.normal(size=G.shape)), 1e-5
    ahead, behind = (evaluate(family, G + t * direction, ETA).value for t in (h, -h))
    slope = inner(family, at.gradient, direction)
    assert slope == pytest.approx((ahead - behind) / (2 * h), rel=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_a_point_nearby_changes_nothing(name, rng):
    family, G = family_and_point(name, rng)
    near = evaluate(family, G, ETA)
    moved = G + family.centred(rng.normal(size=G.shape))
    first, second = evaluate(family, moved, ETA), evaluate(family, moved, ETA, near)
    assert first.value == pytest.approx(second.value, rel=1e-13)
    np.testing.assert_allclose(first.gradient, second.gradient, atol=1e-13)


def test_grids_and_stored_costs_have_one_semi_dual(rng):
    shape = 4, 5
    A = rng.random((3, 20))
    A /= A.sum(axis=1, keepdims=True)
    cells = np.indices(shape).reshape(2, -1)
    M = abs(cells[:, :, None] - cells[:, None]).sum(axis=0).astype(float)
    lazy = make_family(A, epsilot.Grid(shape, shape, "cityblock", 1.0))
    stored_costs = make_family(A, M)
    G = lazy.centred(rng.normal(size=lazy.shape))
    first, second = (evaluate(x, G, 0.5) for x in (lazy, stored_costs))
    assert first.value == pytest.approx(second.value, rel=1e-12)
    np.testing.assert_allclose(first.gradient, second.gradient, atol=1e-12)


def listing(family, G, n_outer, seed, constant=3.0):
    """Return the snapshots of Algorithm 1 with tuples of rows as components, all steps written."""
    w, data, rng = family.weights, stored(family), np.random.default_rng(seed)
    n_inner = -(-sum(p.size for p, _ in data) // len(data))
    snap, y, z = G, G, G
    for s in range(n_outer):
        tau1, tau2 = 2 / (s + 4), 0.5
        h = ETA / constant
        alpha = h / tau1
        mu = evaluate(family, snap, ETA).gradient
        rows = [draw(rng, np.cumsum(p), n_inner, 1)[1].ravel() for p, _ in data]
        found = []
        for t in range(n_inner):
            v = tau1 * z + tau2 * snap + (1 - tau1 - tau2) * y
            g = mu.copy()
            for k, (_, C) in enumerate(data):
                row = C[rows[k][t]]
                g[k] += softmax((v[k] - row) / ETA) - softmax((snap[k] - row) / ETA)
            g -= w @ g
            z, y = z - alpha * g, v - h * g
            found.append(y)
        snap = np.mean(found, axis=0)
        yield snap


@pytest.mark.parametrize("name", NAMES)
def test_pdasmd_is_the_listing(name, rng, monkeypatch):
    tune(monkeypatch, semi_dual, max_mirror_step=0.0)  # no step is too long
    family, G = family_and_point(name, rng)
    loops = Steps(BlockPDASMD(), family, G, seed=5)
    before = evaluate(family, G, ETA).value
    for expected in listing(family, G, 4, seed=5):
        loops.next()
        G, error = loops.state.columns, loops.state.violation
        np.testing.assert_allclose(G, expected, atol=1e-12)
        at = evaluate(family, G, ETA)
        assert error == pytest.approx(at.error, rel=1e-9)
        assert at.value < before
        assert abs(family.mean(G)).max() < 1e-14
        before = at.value


def test_pdasmd_goes_back_when_the_semi_dual_rises(rng, monkeypatch):
    tune(monkeypatch, semi_dual, max_mirror_step=1e3)
    family, G = family_and_point("squared", rng)
    loops = Steps(BlockPDASMD(), family, G, 0.01)
    values = []
    for _ in range(40):
        loops.next()
        values.append(evaluate(family, loops.state.columns, 0.01).value)
    assert loops.state.step_scale < loops.solver.longest
    assert values == sorted(values, reverse=True)


def test_a_seed_fixes_the_bits():
    args = make("images").args
    runs = [epsilot.barycenter(*args, method="pdasmd", seed=seed) for seed in (1, 1, 2)]
    values = [run.value for run in runs]
    assert values[0] == values[1] != values[2]
    assert [run.seed for run in runs] == [1, 1, 2]


def test_work_of_an_outer_loop(rng):
    family, G = family_and_point("squared", rng)
    loops = Steps(BlockPDASMD(), family, G)
    k, m, n = 4, 15, 15
    first, second = (loops.next() for _ in range(2))
    assert second.units == {"softmax": 2 * k * n * m, "inner": k * n * m, "vector": 15 * k * n * m}
    assert first.units["softmax"] == 3 * k * n * m


def inverse_hessian(pairs, H):
    """Return the BFGS matrix of pairs of flat vectors, by its definition."""
    for s, y in pairs:
        rho = 1 / (s @ y)
        V = np.eye(s.size) - rho * np.outer(y, s)
        H = V.T @ H @ V + rho * np.outer(s, s)
    return H


def test_directions_of_lbfgs_are_those_of_the_matrix(rng):
    family, G = family_and_point("l1", rng)
    steps, points = Steps(LBFGS(memory=3), family, G), []
    root = np.sqrt(family.weights)[:, None]
    for _ in range(6):
        steps.next()
        G = steps.state.columns
        points.append(evaluate(family, G, ETA))
    flat = [(root * x.columns, root * x.gradient) for x in points]
    pairs = [
        ((x1 - x0).ravel(), (g1 - g0).ravel())
        for (x0, g0), (x1, g1) in itertools.pairwise(flat[2:])
    ]
    at = points[-1]
    scale = np.tile(1 / np.maximum(at.mean, 0.03 / at.mean.size), len(root))
    s, y = pairs[-1]
    H = inverse_hessian(pairs, np.diag((s @ y) / (y @ (scale * y)) * scale))
    expected = -(H @ flat[-1][1].ravel()).reshape(G.shape) / root
    found = quasi_newton(family, steps.state, at, ETA, steps.state.slots())
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("eta", [0.1, 1e-3, 1e-5])
@pytest.mark.parametrize("name", NAMES)
def test_lbfgs_lowers_the_semi_dual(name, eta, rng):
    family, G = family_and_point(name, rng, size=0.0)
    steps, value = Steps(LBFGS(), family, G, eta), evaluate(family, G, eta).value
    for _ in range(25):
        steps.next()
        now = evaluate(family, steps.state.columns, eta).value
        assert now <= value + 1e-14
        value = now


REFUSED = [
    ({"method": "lbfgs", "memory": 0}, "memory is 0; it must be"),
    ({"method": "pdasmd", "seed": -1}, "seed is -1; it must be"),
    ({"method": "pdasmd", "step_constant": 0.0}, "step_constant is 0.0; it must be"),
]


@pytest.mark.parametrize(("keywords", "sentence"), REFUSED)
def test_refusals_are_one_sentence(keywords, sentence):
    with pytest.raises(epsilot.InvalidProblem, match=sentence):
        epsilot.barycenter([[1, 0, 0]], np.eye(3), **keywords)


def test_rows_must_be_at_hand():
    images = np.ones((2, 400, 400))
    with pytest.raises(epsilot.InvalidProblem, match="pdasmd draws rows of the costs"):
        epsilot.barycenter_grid(images, method="pdasmd")
