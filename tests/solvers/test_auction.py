"""The multiscale auction: exact on hard shapes, certified, the same bits however it is run."""

import numpy as np
import ot
import pytest

import epsilot
from epsilot import parallel
from epsilot.geometry import Dense, Grid, PointCloud
from epsilot.geometry.tree_index import Embedding
from epsilot.kernels import auction as kernels
from epsilot.metrics import METRICS
from epsilot.problems.balanced import Transport
from epsilot.problems.problem import Additive, make_problem
from epsilot.solvers import arc_simplex
from epsilot.solvers import auction as markets
from epsilot.solvers.auction import Auction, AuctionLevels, LevelState, _levels, cell_edges
from tuning import tune
from weights import even, random, sparse, uneven

EXACT = 1e-9


def uniform(rng, n, d):
    return rng.random((n, d))


def shifted(rng, n, d):
    return rng.normal(size=(n, d)) + 3.0


def duplicated(rng, n, d):
    return rng.random((5, d))[rng.integers(0, 5, n)]


def clustered(rng, n, d):
    return rng.integers(0, 3, (n, 1)) + 1e-6 * rng.normal(size=(n, d))


def collinear(rng, n, d):
    return rng.random((n, 1)) * np.arange(1.0, d + 1)


def far(rng, n, d):
    return 1e6 + rng.random((n, d))


def whole(rng, n, d):
    return rng.integers(0, 5, (n, d)).astype(float)


SHAPES = [uniform, shifted, duplicated, clustered, collinear, far, whole]
WEIGHTS = [even, random, uneven, sparse]


def exact_value(X, Y, a, b, metric):
    return ot.emd2(a, b, PointCloud(X, Y, metric).block(0, len(X)), numItermax=10**7)


def check(X, Y, a, b, metric, **keywords):
    """Solve, and compare with POT and with brute force."""
    result = epsilot.solve(
        PointCloud(X, Y, metric), a, b, rtol=EXACT, method="auction", on_limit="ignore", **keywords
    )
    C = PointCloud(X, Y, metric).block(0, len(X))
    size = max(result.value, 1e-9 * C.max())
    assert abs(result.value - exact_value(X, Y, a, b, metric)) <= 2 * EXACT * size
    assert result.gap <= EXACT * size
    f, g = result.potentials
    assert (f[:, None] + g <= C).all()
    plan = result.plan_operator.tosparse()
    assert np.abs(plan.sum(axis=1) - a).sum() + np.abs(plan.sum(axis=0) - b).sum() <= 1e-12
    return result


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_hard_shapes_are_exact(rng, shape, metric, weights):
    X, Y = shape(rng, 90, 2), uniform(rng, 90, 2) if shape is shifted else shape(rng, 90, 2)
    check(X, Y, weights(rng, 90), weights(rng, 90), metric)


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock", "cosine"])
@pytest.mark.parametrize("d", [1, 2, 3, 5, 10, 20, 64])
def test_every_dimension(rng, metric, d):
    X, Y = rng.normal(size=(120, d)), rng.normal(size=(100, d)) + 0.2
    check(X, Y, random(rng, 120), random(rng, 100), metric)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 300), (300, 1), (2, 300), (300, 7), (40, 700)])
def test_one_or_few_against_many(rng, n, m):
    for weights in (even, random):
        check(rng.random((n, 2)), rng.random((m, 2)), weights(rng, n), weights(rng, m), "euclidean")


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean"])
@pytest.mark.parametrize("weights", [even, random])
def test_levels_on_the_way_to_the_points(rng, metric, weights, monkeypatch):
    tune(monkeypatch, markets, max_coarsest_cells=8)
    X, Y = rng.random((1500, 2)), rng.normal(size=(1300, 2))
    check(X, Y, weights(rng, 1500), weights(rng, 1300), metric)


def test_a_million_ties(rng):
    X = np.zeros((60, 2))
    result = check(X, X, random(rng, 60), random(rng, 60), "sqeuclidean")
    assert result.value == 0


@pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock"])
def test_grids(rng, metric):
    A, B = rng.random((12, 17)), rng.random((12, 17))
    A[:4] = 0
    A, B = A / A.sum(), B / B.sum()
    result = epsilot.solve_grid(A, B, metric=metric, rtol=EXACT, method="auction")
    C = Grid(A.shape, B.shape, metric).block(0, A.size)
    assert result.value == pytest.approx(ot.emd2(A.ravel(), B.ravel(), C), rel=1e-9)
    assert result.converged


@pytest.mark.parametrize("weights", [even, random])
def test_costs_of_no_points(rng, weights):
    M, a, b = rng.normal(size=(150, 130)), weights(rng, 150), weights(rng, 130)
    result = epsilot.solve(M, a, b, rtol=EXACT, method="auction")
    assert result.value == pytest.approx(ot.emd2(a, b, M), rel=1e-9)
    assert result.converged


def same(left, right):
    """Tell whether two results are the same bits."""
    parts = [(x.value, x.lower_bound, x.work.operations, len(x.history)) for x in (left, right)]
    potentials = zip(left.potentials, right.potentials, strict=True)
    return parts[0] == parts[1] and all((x == y).all() for x, y in potentials)


@pytest.mark.parametrize("weights", [even, random])
def test_threads_do_not_matter(rng, weights, monkeypatch):
    tune(monkeypatch, parallel, min_entries_per_thread=1)
    tune(monkeypatch, markets, max_coarsest_cells=64)
    X, Y, a, b = rng.random((3000, 2)), rng.random((3000, 2)), weights(rng, 3000), even(rng, 3000)
    results = [
        epsilot.solve(PointCloud(X, Y), a, b, rtol=EXACT, method="auction", n_threads=n)
        for n in (1, 2, 5)
    ]
    assert same(results[0], results[1])
    assert same(results[0], results[2])


def opened(monkeypatch):
    """Return a list that gets the number of columns of every level that opens."""
    found, begin = [], AuctionLevels._open

    def watched(self, state, given=None):
        begin(self, state, given)
        found.append(state.heads.size)

    monkeypatch.setattr(AuctionLevels, "_open", watched)
    return found


START_COSTS = {
    "cloud": lambda cloud: cloud,
    "recovered": lambda cloud: Dense(cloud.block(0, cloud.shape[0])),
    "any cost": lambda cloud: Dense(cloud.block(0, cloud.shape[0]) ** 1.7),
}


@pytest.mark.parametrize("cost", START_COSTS)
@pytest.mark.parametrize(("n", "m", "weights"), [(900, 900, even), (700, 500, random)])
def test_good_potentials_spare_the_coarse_levels(rng, monkeypatch, n, m, weights, cost):
    tune(monkeypatch, markets, max_coarsest_cells=64)
    geometry = START_COSTS[cost](PointCloud(rng.random((n, 2)), rng.random((m, 2))))
    keywords = {"rtol": EXACT, "method": "auction"}
    a, b = weights(rng, n), weights(rng, m)
    cold = epsilot.solve(geometry, a, b, **keywords)
    levels = opened(monkeypatch)
    warm = epsilot.solve(geometry, a, b, potentials_init=cold.potentials, **keywords)
    assert len(levels) == 1
    assert warm.gap <= EXACT * warm.value
    assert warm.value == pytest.approx(cold.value, rel=2 * EXACT)
    assert warm.work.operations < 0.9 * cold.work.operations


def test_poor_potentials_are_left_for_the_coarse_levels(rng, monkeypatch):
    tune(monkeypatch, markets, max_coarsest_cells=64)
    cloud = PointCloud(rng.random((900, 2)), rng.random((900, 2)))
    keywords = {"rtol": EXACT, "method": "auction"}
    levels = opened(monkeypatch)
    cold = epsilot.solve(cloud, **keywords)
    from_the_coarsest = list(levels)
    levels.clear()
    poor = epsilot.solve(cloud, potentials_init=(np.zeros(900), rng.random(900)), **keywords)
    assert levels == [900, *from_the_coarsest]
    assert poor.value == cold.value
    assert poor.work.operations < 1.5 * cold.work.operations


@pytest.mark.parametrize("is_started", [False, True])
@pytest.mark.parametrize("is_dense", [False, True])
def test_a_run_goes_on_where_it_stopped(rng, tmp_path, monkeypatch, is_dense, is_started):
    tune(monkeypatch, markets, max_bids_per_step=50)
    tune(monkeypatch, markets, max_coarsest_cells=16)
    tune(monkeypatch, arc_simplex, pivots_per_step=20)
    cloud = PointCloud(rng.random((400, 2)), rng.random((300, 2)))
    geometry = Dense(cloud.block(0, 400)) if is_dense else cloud
    a, b = random(rng, 400), random(rng, 300)
    keywords = {"rtol": EXACT, "method": "auction"}
    if is_started:
        keywords["potentials_init"] = np.zeros(400), 0.1 * rng.random(300)
    whole_run = epsilot.solve(geometry, a, b, **keywords)
    path, limit = tmp_path / "run.npz", 0
    while True:
        limit += whole_run.n_iter // 4
        resume = {"resume": path} if path.exists() else {}
        part = epsilot.solve(
            geometry, a, b, checkpoint=path, max_iter=limit, on_limit="ignore", **resume, **keywords
        )
        assert part.gap >= 0
        if part.converged:
            break
    assert (part.value, part.n_iter) == (whole_run.value, whole_run.n_iter)
    assert part.work.operations == whole_run.work.operations


def test_the_auction_alone_is_optimal_to_its_eps(rng, monkeypatch):
    tune(monkeypatch, markets, unsold_assignment=1e-12)
    n = 400
    X, Y, p = rng.random((n, 2)), rng.random((n, 2)), even(rng, n)
    state = LevelState()
    arrays = markets.CloudAuctionLevels(Embedding(X, Y, METRICS["sqeuclidean"].key, 0.0), p, p)
    while not state.is_over:
        arrays.step(state)
    found = state.arrays
    held = found.mass > 0
    value = found.piece_cost[held] @ found.mass[held]
    exact = exact_value(X, Y, p, p, "sqeuclidean")
    assert held.sum() == n
    assert exact - 1e-12 <= value <= exact + state.eps
    C = PointCloud(X[state.rows], Y[state.cols]).block(0, n)
    leasts = (C + found.prices).min(axis=1)
    np.testing.assert_array_equal(state.leasts, leasts)
    i, j = found.piece_row[held], found.piece_col[held]
    assert (C[i, j] + found.prices[j] <= leasts[i] + state.eps * (1 + 1e-9)).all()


@pytest.mark.parametrize("weights", [even, random])
def test_the_gap_that_is_expected_is_proved(rng, weights, monkeypatch):
    tune(monkeypatch, arc_simplex, pivots_per_step=20)
    X, Y, p, q = rng.random((300, 2)), rng.random((300, 2)), weights(rng, 300), weights(rng, 300)
    solver, target = Auction(), Additive(PointCloud(X, Y), 0.0, p, q)
    objective, arrays = Transport(make_problem(PointCloud(X, Y), p, q)), _levels(target)
    state, _ = solver.init(target, rng)
    expected, proved = [], []
    while state.round == 0:
        solver.step(target, state, rng)
        if state.is_over and state.round == 0:
            expected.append(solver._gap(arrays, state) if state.is_open else arrays.gap(state))
            bracket = objective.evaluate(*solver.candidates(target, state)[0])
            proved.append(bracket.upper / bracket.lower - 1)
    expected, proved = np.array(expected), np.array(proved)
    is_feasible = np.isfinite(expected)
    assert is_feasible[0]
    # The proof improves the prices by c-transforms.
    assert (proved <= expected * (1 + 1e-9))[is_feasible].all()
    assert (expected <= 3 * proved)[is_feasible].all()


def test_a_loose_goal_is_met_before_the_first_optimum(rng, monkeypatch):
    tune(monkeypatch, arc_simplex, pivots_per_step=50)
    cloud = PointCloud(rng.random((2000, 2)), rng.random((2000, 2)))
    loose, exact = (epsilot.solve(cloud, rtol=x, method="auction") for x in (1e-2, EXACT))
    assert loose.converged
    assert loose.n_iter < exact.n_iter - 5


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean"])
def test_a_coarse_level_meets_a_loose_goal(rng, metric):
    """The cells of two clouds are small beside the distance of the clouds."""
    X, Y = rng.random((3000, 2)), rng.normal(size=(3000, 2)) + 4.0
    cloud, a, b = PointCloud(X, Y, metric), random(rng, 3000), random(rng, 3000)
    loose, exact = (epsilot.solve(cloud, a, b, rtol=x, method="auction") for x in (0.05, EXACT))
    assert loose.gap <= 0.05 * loose.lower_bound
    assert loose.lower_bound <= exact.value <= loose.value
    assert 4 * loose.work.operations < exact.work.operations
    assert loose.plan_operator.tosparse().nnz <= 2 * 6000


def test_pieces_make_room(rng, monkeypatch):
    grown = []
    grow = markets._grow
    monkeypatch.setattr(markets, "_grow", lambda state: (grown.append(1), grow(state)))
    zeros = np.zeros
    monkeypatch.setattr(
        markets.np,
        "zeros",
        lambda shape, *args, **kw: zeros(12 if shape == 3 * 160 else shape, *args, **kw),
    )
    full = np.full
    monkeypatch.setattr(
        markets.np,
        "full",
        lambda shape, *args, **kw: full(16 if shape == 4 * 160 else shape, *args, **kw),
    )
    X, Y = rng.random((80, 2)), rng.random((80, 2))
    check(X, Y, random(rng, 80), random(rng, 80), "sqeuclidean")
    assert grown


def test_a_hopeless_level_is_left_to_the_simplex(rng, monkeypatch):
    tune(monkeypatch, markets, max_bids_per_step=10)
    tune(monkeypatch, markets, max_bids_per_row=0.1)
    check(rng.random((60, 2)), rng.random((60, 2)), random(rng, 60), random(rng, 60), "euclidean")


@pytest.mark.parametrize("max_iter", [1, 3, 8, 15])
def test_limits_leave_a_feasible_plan(rng, max_iter, monkeypatch):
    tune(monkeypatch, markets, max_coarsest_cells=16)
    cloud = PointCloud(rng.random((500, 2)), rng.random((600, 2)))
    a, b = random(rng, 500), random(rng, 600)
    result = epsilot.solve(
        cloud, a, b, rtol=EXACT, method="auction", max_iter=max_iter, on_limit="ignore"
    )
    exact = exact_value(cloud.X, cloud.Y, a, b, "sqeuclidean")
    assert result.lower_bound <= exact * (1 + 1e-12)
    assert result.value >= exact * (1 - 1e-12)
    assert result.n_iter <= max_iter


def test_a_loose_plan_is_a_list_of_few_arcs(rng):
    cloud = PointCloud(np.round(6 * rng.random((700, 2))), np.round(6 * rng.random((600, 2))))
    a, b = random(rng, 700), random(rng, 600)
    result = epsilot.solve(cloud, a, b, rtol=0.1, method="auction")
    assert result.gap > 1e-3 * result.value  # left before the simplex
    assert result.plan_operator.tosparse().nnz <= 8 * 1300


def test_corners_place_everything(rng):
    left, right = rng.random(50) * (rng.random(50) < 0.5), rng.random(70)
    right *= left.sum() / right.sum()
    i, j, flow = kernels.corner(left, right, 1e-19)
    np.testing.assert_allclose(np.bincount(i, flow, 50), left, atol=1e-14)
    np.testing.assert_allclose(np.bincount(j, flow, 70), right, atol=1e-14)
    assert flow.min() > 0


def test_flows_between_cells_are_divided_among_their_points(rng):
    n, m, n_cells, m_cells = 41, 57, 8, 16
    p, q = uneven(rng, n), sparse(rng, m)
    edges = cell_edges(n, n_cells), cell_edges(m, m_cells)
    row_cells, col_cells = (np.repeat(np.arange(x.size - 1), np.diff(x)) for x in edges)
    P, Q = np.bincount(row_cells, p), np.bincount(col_cells, q)
    flow = np.outer(P, Q)
    arcs = np.nonzero(flow)
    i, j, mass = kernels.divided(*arcs, flow[arcs], *edges, p.copy(), q.copy(), 1e-19)
    assert mass.min() > 0
    assert mass.size <= n + m + arcs[0].size
    np.testing.assert_allclose(np.bincount(i, mass, n), p, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(np.bincount(j, mass, m), q, rtol=1e-9, atol=1e-15)
    between = np.zeros((n_cells, m_cells))
    np.add.at(between, (row_cells[i], col_cells[j]), mass)
    np.testing.assert_allclose(between, flow, rtol=1e-9, atol=1e-15)


def test_memory_is_known(rng):
    problem = make_problem(PointCloud(rng.random((10, 2)), rng.random((20, 2))))
    assert Auction().memory(problem) == 30 * 1200
