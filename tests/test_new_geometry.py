"""A geometry that the library has never seen goes through every public call."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import epsilot
from epsilot.display.page import python_call
from epsilot.engine import starts
from epsilot.engine.execute import execute
from epsilot.engine.request import Request
from epsilot.geometry.base import Coarsening, HalvedGrid, Places, PublicCall
from epsilot.problems.problem import Clipped, Penalised
from epsilot.solvers import solver_class
from tuning import tune

#: What float64 may add to a comparison of values.
ROUND_OFF = 1e-9


class Circle(epsilot.Geometry):
    """Lengths of arcs between angles, with nothing but what a geometry must have."""

    def __init__(self, x, y, delta=0.0):
        self.x, self.y, self.delta = x, y, delta
        self.shape = x.size, y.size

    def block(self, start, stop):
        apart = np.abs(self.x[start:stop, None] - self.y) % (2 * np.pi)
        return np.minimum(apart, 2 * np.pi - apart) + self.delta

    def shifted(self, delta):
        return type(self)(self.x, self.y, self.delta + delta)


class Sectors(Circle):
    """The same with cells, coordinates and a call of its own."""

    can_coarsen = True

    @property
    def places(self):
        X, Y = (np.stack([np.cos(z), np.sin(z)], axis=1) for z in (self.x, self.y))
        return Places(X, Y, None)

    def call(self):
        return PublicCall("solve", ("Sectors(x, y)",), {})

    def coarsen(self, n_cells, p, q):
        (x, p), (y, q) = (gathered(z, w, n_cells) for z, w in ((self.x, p), (self.y, q)))
        from_rows, from_cols = Sectors(self.x, y), Sectors(self.y, x)
        return Coarsening(Sectors(x, y), p, q, from_rows, from_cols, self.delta)

    def halved(self):
        if self.x.size % 2 or not np.array_equal(self.x, self.y):
            return None
        x = self.x.reshape(-1, 2).mean(axis=1)
        return HalvedGrid(
            Sectors(x, x, self.delta),
            lambda p: p.reshape(-1, 2).sum(axis=1),
            lambda g: np.repeat(g, 2),
        )


def gathered(angles, weights, n_cells):
    """Return the middles and masses of sectors that have any."""
    sector = np.floor(angles / (2 * np.pi) * n_cells)
    kinds, place = np.unique(sector, return_inverse=True)
    return (kinds + 0.5) * 2 * np.pi / n_cells, np.bincount(place, weights)


def angles(n, m, seed=0):
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(0, 2 * np.pi, n), rng.uniform(0, 2 * np.pi, m)
    return x, y, rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))


X, Y, A, B = angles(14, 11)
CIRCLE = Circle(X, Y)
M = CIRCLE.block(0, 14)

SOLVING = [x.name for x in epsilot.methods()]
KINDS = {
    "balanced": {},
    "entropic": {"reg": 0.3},
    "partial": {"mass": 0.5},
    "entropic partial": {"mass": 0.5, "reg": 0.3},
    "kl": {"unbalanced": 2.0},
    "total variation": {"unbalanced": 2.0, "unbalanced_type": "tv"},
}


def kind_of(about):
    """Return the keywords of a kind of problem that a method serves."""
    if about.form == Penalised.form:
        return KINDS["kl"]
    return KINDS["entropic partial"] if about.form == Clipped.form else {}


@pytest.mark.parametrize("method", SOLVING)
def test_every_method_takes_it_or_says_that_it_cannot(method):
    about = solver_class(method).about
    asked = {"method": method, "on_limit": "ignore", **kind_of(about)}
    accuracy = {"tol": 0.1} if about.form == Clipped.form else {"rtol": 0.1}
    if about.needs_dense or about.needs_lattice or about.needs_line or about.needs_arcs:
        with pytest.raises(epsilot.InvalidProblem, match=f"{method} (needs|cannot solve)"):
            epsilot.solve(CIRCLE, A, B, **asked, **accuracy)
        return
    found = epsilot.solve(CIRCLE, A, B, **asked, **accuracy)
    stored = epsilot.solve(M, A, B, **asked, **accuracy)
    assert found.converged
    for bounds in (found, stored):
        assert bounds.lower_bound <= min(found.value, stored.value) + ROUND_OFF


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_problem_takes_it(kind):
    found, stored = (epsilot.solve(cost, A, B, **KINDS[kind]) for cost in (CIRCLE, M))
    assert found.converged
    assert max(found.lower_bound, stored.lower_bound) <= min(found.value, stored.value) + ROUND_OFF
    parts = {"plan": found.plan_operator, "potentials": found.potentials}
    audit = epsilot.certify(CIRCLE, A, B, **parts, **KINDS[kind])
    assert audit.gap <= found.gap + ROUND_OFF


def test_calls_that_return_plans_take_it():
    best = epsilot.solve(M, A, B, rtol=1e-9).value
    with pytest.raises(epsilot.InvalidProblem, match="cannot give cheaply"):
        epsilot.exact(CIRCLE, A, B)
    plan = epsilot.round_plan(np.outer(A, B), A, B)
    assert epsilot.certify(CIRCLE, A, B, plan=plan).upper >= best - ROUND_OFF
    batch = epsilot.solve_batch([CIRCLE, CIRCLE], [A, A], [B, B], rtol=1e-6)
    np.testing.assert_allclose(batch.value, best, rtol=1e-5)


def test_a_checkpoint_continues_it(tmp_path):
    asked = {"rtol": 1e-4, "method": "sinkhorn", "on_limit": "ignore", "seed": 3}
    whole = epsilot.solve(CIRCLE, A, B, **asked)
    file = tmp_path / "run.npz"
    stopped = epsilot.solve(CIRCLE, A, B, **asked, max_iter=20, checkpoint=file)
    assert not stopped.converged
    found = epsilot.solve(Circle(X, Y), A, B, **asked, resume=file)
    assert found.value == whole.value
    np.testing.assert_array_equal(found.plan, whole.plan)
    with pytest.raises(epsilot.InvalidProblem):
        epsilot.solve(Circle(X + 0.1, Y), A, B, **asked, resume=file)


@pytest.mark.parametrize("kind", [Circle, Sectors])
def test_a_result_is_drawn_and_reported(kind, tmp_path):
    result = epsilot.solve(kind(X, Y), A, B, rtol=0.01)
    result.save(tmp_path / "result.npz")
    result.plot()
    result.report(tmp_path / "result.html")
    text = (tmp_path / "result.html").read_text(encoding="utf-8")
    assert ("sources blue" in text) == (kind is Sectors)
    data = "M" if kind is Circle else "Sectors(x, y)"
    assert python_call(result).endswith(f"epsilot.solve({data}, a, b, rtol=0.01)")


@pytest.mark.parametrize("reg", [None, 0.3])
def test_a_barycentre_takes_it(reg):
    rng = np.random.default_rng(1)
    H = rng.dirichlet(np.ones(12), 3)
    x = np.arange(12) * (2 * np.pi / 12)
    found, stored = (
        epsilot.barycenter(H, cost, rtol=0.01, reg=reg)
        if reg is None
        else epsilot.barycenter(H, cost, reg=reg, tol=1e-3)
        for cost in (Circle(x, x), Circle(x, x).matrix())
    )
    assert found.converged
    assert max(found.lower_bound, stored.lower_bound) <= min(found.value, stored.value) + ROUND_OFF
    audit = epsilot.certify(Circle(x, x), H, barycenter=found.barycenter) if reg is None else None
    assert audit is None or audit.upper <= found.value * (1 + 1e-6)


def test_a_coarse_version_starts_it(monkeypatch):
    tune(monkeypatch, starts, n_cells=8)
    x, y, a, b = angles(60, 50, seed=2)
    with pytest.raises(epsilot.InvalidProblem, match="multiscale=True was given for"):
        epsilot.solve(Circle(x, y), a, b, multiscale=True)
    best = epsilot.solve(Circle(x, y).matrix(), a, b, rtol=1e-9).value
    for n_large in (1000, 40):  # with and without a version between the two
        tune(monkeypatch, starts, min_points_of_middle=n_large)
        tune(monkeypatch, starts, n_middle=20)
        cost = Sectors(x, y, delta=0.25)
        found = epsilot.solve(cost, a, b, multiscale=True, method="sinkhorn", rtol=0.01)
        assert found.converged
        assert found.lower_bound <= best + 0.25 + ROUND_OFF <= found.value + 2 * ROUND_OFF
        (f, _), seen = coarse_potentials(cost, a, b), cost.matrix()
        bound = a @ f + b @ (seen - f[:, None]).min(axis=0)
        assert bound >= 0.9 * (best + 0.25)  # a good start, the shift included


def coarse_potentials(cost, a, b):
    """Return potentials that extend from coarse versions of a problem, coarsest first."""
    potentials = None
    for level in starts.coarse_levels(cost, a, b):
        request = Request(**level.keywords(potentials), on_limit="ignore")
        potentials = level.extended(execute(level.problem, request))
    return potentials


def test_coarser_versions_start_a_barycentre(monkeypatch):
    from epsilot.barycenters import family

    monkeypatch.setattr(family, "MIN_CELLS_TO_COARSEN", 10)
    x = np.arange(32) * (2 * np.pi / 32)
    H = np.random.default_rng(3).dirichlet(np.ones(32), 2)
    called = []
    monkeypatch.setattr(
        Sectors, "halved", lambda self, ask=Sectors.halved: called.append(self.shape) or ask(self)
    )
    found = epsilot.barycenter(H, Sectors(x, x), rtol=0.02, method="ibp")
    assert found.converged
    assert (32, 32) in called
    assert (16, 16) in called


def test_angles_are_compared_as_the_circle_does():
    ends = [np.stack([np.cos(z), np.sin(z)], axis=1) for z in (X, Y)]
    np.testing.assert_allclose(2 * np.sin(M / 2), cdist(*ends), atol=1e-12)
