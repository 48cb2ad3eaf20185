"""Sparse costs: exact values against HiGHS, cuts that prove infeasibility, and rejected input."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

import epsilot
from epsilot import deadline
from epsilot.problems.kinds import UserProblem
from epsilot.problems.plan import Arcs
from epsilot.problems.rounding import round_on_arcs
from epsilot.problems.unbalanced import Unbalanced
from epsilot.solvers import network_simplex
from epsilot.solvers.network_simplex import TUNING
from epsilot_lab.studies.sparse import agrees, is_cut

N_PROBLEMS = 150


@pytest.mark.parametrize("first", range(0, N_PROBLEMS, 50))
def test_random_problems_equal_highs_or_are_cut(first):
    for seed in range(first, first + 50):
        assert agrees(seed) in ("optimum", "cut")


BASE = np.array([[1.0, 4.0, np.inf], [np.inf, 2.0, 1.0]])
ARCS = [0, 0, 1, 1], [0, 1, 1, 2], [1.0, 4.0, 2.0, 1.0]
A, B = [0.5, 0.5], [0.4, 0.3, 0.3]
STORED = sparse.csr_array(np.where(np.isfinite(BASE), BASE, 0.0))
LARGEST32 = np.finfo(np.float32).max
FORMS = {
    "list": BASE.tolist(),
    "float max": np.where(np.isinf(BASE), np.finfo(float).max, BASE),
    "float32 max": np.where(np.isinf(BASE), LARGEST32, BASE).astype(np.float32),
    "masked": np.ma.masked_invalid(BASE),
    "csr": STORED,
    "csc": STORED.tocsc(),
    "coo": STORED.tocoo(),
    "coo matrix": sparse.coo_matrix(STORED),
    "arcs in any order": epsilot.Sparse([1, 1, 0, 0, 0], [2, 1, 1, 0, 0], [1, 2, 4, 9, 1], (2, 3)),
}


@pytest.mark.parametrize("name", FORMS)
def test_all_forms_are_the_same_cost(name):
    result = epsilot.solve(FORMS[name], A, B)
    assert (result.value, result.lower_bound) == pytest.approx((1.5, 1.5))
    assert result.method == "network_simplex"


@pytest.mark.parametrize("costs", [[2.0, 1.0, 3.0], [1.0, 2.0, 3.0]])
def test_of_parallel_arcs_in_order_the_cheapest_counts(costs):
    M = epsilot.Sparse([0, 0, 1], [0, 0, 1], costs, (2, 2))
    assert M.n_arcs == 2
    assert epsilot.solve(M).value == pytest.approx(2.0)


def test_explicit_zeros_are_arcs():
    M = sparse.csr_array((np.array([0.0, 1.0, 0.0]), ([0, 0, 1], [0, 1, 1])), shape=(2, 2))
    assert epsilot.solve(M).value == 0.0


METHODS = {
    "sinkhorn": ({"method": "sinkhorn", "eps": 0.01}, 1.5, 0.01),
    "entropic": ({"reg": 0.01}, 1.5, 0.03),
    "total variation": ({"unbalanced": 10.0, "unbalanced_type": "tv"}, 1.5, 1e-9),
    "limit": ({"max_seconds": 1e-9, "on_limit": "ignore"}, 1.5, 2.0),
    "warm": ({"potentials_init": ([0.0, 0.0], [1.0, 1.0, 1.0])}, 1.5, 1e-9),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_use_allowed_arcs_only(name):
    given, expected, tolerance = METHODS[name]
    result = epsilot.solve(BASE, A, B, **given)
    assert result.value == pytest.approx(expected, abs=tolerance)
    assert result.lower_bound <= result.value
    assert not result.plan[np.isinf(BASE)].any()


#: The last row and the last column have no arcs; their mass vanishes.
ALONE = np.array([[1.0, 4.0, np.inf, np.inf], [np.inf, 2.0, 1.0, np.inf], [np.inf] * 4])
PENALTIES = {
    "kl": {"unbalanced": 1.0},
    "kl per point": {"unbalanced": ([1.0, 2.0, 0.5], 1.0)},
    "kl with entropy": {"unbalanced": 1.0, "reg": 0.1},
    "tv with entropy": {"unbalanced": 2.0, "unbalanced_type": "tv", "reg": 0.1},
}


@pytest.mark.parametrize("name", PENALTIES)
def test_penalties_on_arcs_are_those_beside_pairs_too_expensive_to_use(name):
    keywords = PENALTIES[name]
    goal = {"tol": 1e-9} if "reg" in keywords else {"rtol": 1e-7}
    a, b = [0.5, 0.7, 0.2], [0.4, 0.3, 0.3, 0.1]
    result = epsilot.solve(ALONE, a, b, **keywords, **goal)
    full = epsilot.solve(np.minimum(ALONE, 400.0), a, b, **keywords, **goal)
    assert result.converged
    assert result.value == pytest.approx(full.value, rel=1e-6)
    assert result.lower_bound <= full.value
    assert full.lower_bound <= result.value
    assert not result.plan[np.isinf(ALONE)].any()
    assert all(np.isfinite(x).all() for x in result.potentials)


ONE_SIDED = {
    "kl rows": {"unbalanced": (np.inf, 1.0)},
    "kl columns": {"unbalanced": ([1.0, 2.0, 0.5], np.inf)},
    "kl rows with entropy": {"unbalanced": (np.inf, 1.0), "reg": 0.1},
    "tv rows": {"unbalanced": (np.inf, 2.0), "unbalanced_type": "tv"},
    "tv columns": {"unbalanced": (200.0, np.inf), "unbalanced_type": "tv"},
    "tv columns with entropy": {"unbalanced": (2.0, np.inf), "unbalanced_type": "tv", "reg": 0.1},
}


@pytest.mark.parametrize("max_iter", [None, 0])
@pytest.mark.parametrize("name", ONE_SIDED)
def test_one_side_may_keep_its_masses_if_all_of_it_has_arcs(name, max_iter):
    keywords = ONE_SIDED[name]
    a, b = np.array([0.5, 0.7, 0.0]), np.array([0.4, 0.3, 0.6, 0.0])
    goal = {"tol": 1e-9} if "reg" in keywords else {"rtol": 1e-7}
    full = epsilot.solve(np.minimum(ALONE, 4000.0), a, b, **keywords, **goal)
    limits = {"max_iter": max_iter, "on_limit": "ignore"}
    result = epsilot.solve(ALONE, a, b, **keywords, **goal, **limits)
    assert result.lower_bound <= full.value
    assert full.lower_bound <= result.value < np.inf
    assert not result.plan[np.isinf(ALONE)].any()
    axis, weights = (0, b) if "columns" in name else (1, a)
    np.testing.assert_allclose(result.plan.sum(axis=axis), weights, atol=1e-12)
    if max_iter is None:
        assert result.converged
        assert result.value == pytest.approx(full.value, rel=1e-6)


@pytest.mark.parametrize("divergence", ["kl", "tv"])
@pytest.mark.parametrize("prices", [(np.inf, 1.0), (1.0, np.inf)])
def test_points_that_a_plan_leaves_out_take_their_cheapest_arc(prices, divergence):
    kind = Unbalanced(*prices, divergence)
    a, b = np.array([0.5, 0.7]), np.array([0.4, 0.3, 0.3])
    problem = kind.problem(UserProblem(epsilot.Sparse(*ARCS, BASE.shape), a, b))
    found = kind.objective(problem, None).rounded(Arcs.none(BASE.shape))
    axis, weights = (1, a) if prices[0] == np.inf else (0, b)
    plan = problem.mass * found.plan.toarray()
    np.testing.assert_allclose(plan.sum(axis=axis), weights, atol=1e-15)
    expected = 0.5 * 1 + 0.7 * 1 if prices[0] == np.inf else 0.4 * 1 + 0.3 * 2 + 0.3 * 1
    assert problem.mass * problem.unit * found.cost == pytest.approx(expected)


@pytest.mark.parametrize("divergence", ["kl", "tv"])
def test_exact_points_without_arcs_are_cut(divergence):
    a, b = [0.5, 0.7, 0.2], [0.4, 0.3, 0.3, 0.1]
    with pytest.raises(epsilot.Infeasible, match=r"sources must keep a mass of 0\.2") as rows:
        epsilot.solve(ALONE, a, b, unbalanced=(np.inf, 1.0), unbalanced_type=divergence)
    assert rows.value.sources.tolist() == [2]
    assert rows.value.targets.size == 0
    assert rows.value.excess == pytest.approx(0.2)
    with pytest.raises(epsilot.Infeasible, match=r"targets must keep a mass of 0\.1") as cols:
        epsilot.solve(ALONE, a, b, unbalanced=(1.0, np.inf), unbalanced_type=divergence)
    assert cols.value.targets.tolist() == [0, 1, 2]
    assert cols.value.excess == pytest.approx(0.1)


def test_targets_without_mass_take_none_under_kl():
    M = np.array([[1.0, np.inf], [np.inf, 1.0]])
    with pytest.raises(epsilot.Infeasible, match="no arc to a target with mass"):
        epsilot.solve(M, [0.5, 0.5], [1.0, 0.0], unbalanced=(np.inf, 1.0))
    assert epsilot.solve(
        M, [0.5, 0.5], [1.0, 0.0], unbalanced=(np.inf, 1.0), unbalanced_type="tv"
    ).value == pytest.approx(2.0)


def test_high_penalties_on_separate_arcs_are_certified():
    """Each part misses some mass, at a penalty far above the costs."""
    M = np.array([[0.3, np.inf], [np.inf, 0.5]])
    result = epsilot.solve(M, [0.6, 0.4], [0.3, 0.7], unbalanced=300.0, unbalanced_type="tv")
    assert result.converged
    assert result.value == pytest.approx(0.3 * 0.3 + 0.4 * 0.5 + 300 * 0.6, rel=1e-12)


def weighted_arcs(n, degree):
    """Return a cost on random arcs, and the marginals of a random flow on them."""
    rng = np.random.default_rng(4)
    rows, cols = np.repeat(np.arange(n), degree), rng.integers(0, n, n * degree)
    M = epsilot.Sparse(rows, cols, rng.random(rows.size), (n, n))
    flow = rng.random(rows.size) / rows.size
    return M, np.bincount(rows, flow, n), np.bincount(cols, flow, n)


def test_few_arcs_are_solved_without_an_auction_and_many_with_one(monkeypatch):
    M, a, b = weighted_arcs(60, 5)
    expected = epsilot.solve(M, a, b)
    monkeypatch.setattr(network_simplex, "TUNING", replace(TUNING, max_whole_nodes=0))
    result = epsilot.solve(M, a, b)
    assert result.value == pytest.approx(expected.value, rel=1e-12)
    assert result.work.operations != expected.work.operations


def test_certify_and_batches_take_sparse_costs():
    result = epsilot.solve(BASE, A, B)
    audit = epsilot.certify(STORED, A, B, plan=np.outer(A, B), potentials=result.potentials)
    assert audit.lower == pytest.approx(1.5)
    assert audit.upper >= 1.5 - 1e-12
    batch = epsilot.solve_batch([BASE, STORED, np.full((2, 3), np.inf)], A, B, on_error="collect")
    assert batch.value[:2] == pytest.approx([1.5, 1.5])
    assert "no plan exists" in batch.errors[2]


def test_long_chains_are_solved():
    # Potentials rise along the chain to about n times the largest cost.
    n = 3000
    rows = np.concatenate([np.arange(n), np.arange(n - 1)])
    cols = np.concatenate([np.arange(n), np.arange(1, n)])
    costs = np.where(rows == cols, 1.0, 0.0)
    a, b = np.full(n, 1 / n), np.full(n, 1 / n)
    a[0], a[-1] = 2 / n, 0.0
    # The last place of such potentials is 4.5e-13, more than a relative gap of 1e-9 (3.3e-13).
    result = epsilot.solve(epsilot.Sparse(rows, cols, costs, (n, n)), a, b, rtol=1e-8)
    assert result.converged
    assert result.value == pytest.approx(1 / n, abs=1e-9)


def test_rounding_stops_at_a_deadline():
    # All mass of a chain moves on by one place, along a path of every length in turn.
    n = 40
    i = np.arange(n)
    C = np.full((n, n), np.inf)
    C[i, i] = C[i[1:], i[:-1]] = 1.0
    a, b = (x / n for x in np.random.default_rng(5).dirichlet(np.ones(n), 2) + 1 / n)
    M, core = epsilot.geometry.as_geometry(C), Arcs((n, n), i, i, np.minimum(a, b))
    phases = []
    is_over = deadline.until(lambda: phases.append(0) is None and len(phases) > 3)
    with is_over, pytest.raises(deadline.OutOfTime):
        round_on_arcs(core, a, b, M, 1.0)
    assert len(phases) == 4


X, Y = np.random.default_rng(2).random((2, 40, 2))
NEAR = {
    "squared radius": ({"max_distance": 0.4}, "sqeuclidean"),
    "radius": ({"max_distance": 0.5}, "euclidean"),
    "all pairs": ({"max_distance": 9.0}, "cityblock"),
    "callable": ({"max_distance": 0.4}, lambda x, Y: np.abs(x - Y).max(axis=1)),
    "neighbours": ({"k_neighbors": 12}, "euclidean"),
    "neighbours, callable": ({"k_neighbors": 12}, lambda x, Y: np.abs(x - Y).max(axis=1)),
    "partial": ({"max_distance": 0.05, "mass": 0.1}, "euclidean"),
}


def near(C, D, max_distance=None, k_neighbors=None, **keywords):
    """Return the costs with far pairs forbidden, by sorting all of them."""
    if max_distance is not None:
        return np.where(max_distance >= D, C, np.inf)
    ranks = [np.argsort(np.argsort(D, axis=axis), axis=axis) for axis in (0, 1)]
    return np.where(np.minimum(*ranks) < k_neighbors, C, np.inf)


@pytest.mark.parametrize("name", NEAR)
def test_near_pairs_of_points_are_those_of_the_matrix(name):
    given, metric = NEAR[name]
    C = np.array([metric(x, Y) for x in X]) if callable(metric) else cdist(X, Y, metric)
    D = np.sqrt(C) if metric == "sqeuclidean" else C
    kept = {key: value for key, value in given.items() if key == "mass"}
    expected = epsilot.solve(near(C, D, **given), **kept)
    result = epsilot.solve_sample(X, Y, metric=metric, **given)
    assert result.value == pytest.approx(expected.value, rel=1e-9)
    assert result.method == "network_simplex"


def test_too_small_a_radius_is_cut():
    with pytest.raises(epsilot.Infeasible) as caught:
        epsilot.solve_sample(X, Y, max_distance=0.05)
    C = np.where(cdist(X, Y) <= 0.05, 1.0, np.inf)
    assert is_cut(caught.value, C, np.full(40, 1 / 40), np.full(40, 1 / 40), None)


REFUSED = {
    "no arc": (lambda: epsilot.solve(sparse.csr_array((3, 3))), "3 of the sources .* 0 of the"),
    "empty row": (lambda: epsilot.solve(sparse.csr_array([[1.0, 0], [0, 0]])), "no plan exists"),
    "three axes": (lambda: epsilot.solve(sparse.coo_array(np.ones((2, 2, 2)))), "must be a matrix"),
    "complex": (lambda: epsilot.solve(STORED * 1j), "complex128"),
    "negative price": (
        lambda: epsilot.solve(BASE, A, B, unbalanced=([1, -1], 1.0), unbalanced_type="tv"),
        "holds -1 for point 1",
    ),
    "power": (lambda: epsilot.solve_sample(X, Y, metric="euclidean", p=0), "p is 0"),
    "NaN of a metric": (
        lambda: epsilot.solve_sample(X, Y, metric=lambda u, v: np.nan, max_distance=1.0),
        "returned nan",
    ),
    "radius": (lambda: epsilot.solve_sample(X, Y, max_distance=-1), "max_distance is -1"),
    "neighbours": (lambda: epsilot.solve_sample(X, Y, k_neighbors=0), "k_neighbors is 0"),
    "both": (lambda: epsilot.solve_sample(X, Y, max_distance=1, k_neighbors=2), "leave one out"),
    "nan": (lambda: epsilot.solve(np.where(np.isinf(BASE), np.nan, BASE)), "or inf where"),
    "minus inf": (lambda: epsilot.solve(-BASE), "is -inf"),
    "method": (lambda: epsilot.solve(BASE, A, B, method="pdasmd"), "needs a cost for every pair"),
    "dense": (lambda: epsilot.solve(np.eye(2), method="network_simplex"), "needs a sparse cost"),
    "partial entropy": (lambda: epsilot.solve(BASE, A, B, mass=0.1, reg=1.0), "leave out reg"),
    "exact points": (
        lambda: epsilot.solve(BASE, A, B, unbalanced=([1, np.inf], 1), unbalanced_type="tv"),
        "inf for one whole side",
    ),
    "barycentre": (lambda: epsilot.barycenter([A, A], BASE), "forbids some pairs"),
    "pairwise": (lambda: epsilot.pairwise([A, A], sparse.eye_array(2).tocsr()), "sparse matrix"),
    "index": (lambda: epsilot.Sparse([2], [0], [1.0], (2, 3)), "rows holds 2"),
    "lengths": (lambda: epsilot.Sparse([0, 1], [0], [1.0], (2, 3)), "one entry for each arc"),
    "shape": (lambda: epsilot.Sparse([0], [0], [1.0], 3), "two numbers"),
    "types": (lambda: epsilot.Sparse([0.5], [0], [1.0], (2, 3)), "integers"),
    "nan beside inf": (
        lambda: epsilot.solve([[np.inf, 1.0], [2.0, np.nan]]),
        "row 1, column 1 is nan",
    ),
    "cost": (lambda: epsilot.Sparse([0], [0], [np.nan], (2, 3)), "is nan"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_gets_one_sentence(name):
    call, sentence = REFUSED[name]
    with pytest.raises(epsilot.InvalidProblem, match=sentence):
        call()


def test_points_without_mass_may_lead_to_points_without_mass():
    """In a problem with an entropy, whose potentials are -inf where there is no mass."""
    M = np.array([[4.0, np.inf, 4.6], [np.inf, -0.5, np.inf]])
    result = epsilot.solve(M, [0.0, 1.8], [0.0, 1.8, 0.0], reg=12.0, method="sinkhorn")
    assert result.converged
    np.testing.assert_array_equal(result.plan, [[0, 0, 0], [0, 1.8, 0]])


@pytest.mark.parametrize("seed", [4, 24, 59])
@pytest.mark.parametrize("cost", [0.0, 3.7])
def test_equal_costs_on_arcs_are_certified_to_the_last_bit(seed, cost):
    """Masses of nine decades, beside which prices of artificial arcs leave their round-off."""
    rng = np.random.default_rng(seed)
    flow = np.where(rng.random((6, 24)) < 0.3, 1e17 * 10 ** rng.uniform(-9, 0, (6, 24)), 0.0)
    flow[np.arange(24) % 6, np.arange(24)] += 1e8
    M = np.where(flow > 0, cost, np.inf)
    result = epsilot.solve(M, flow.sum(axis=1), flow.sum(axis=0), rtol=1e-9)
    assert result.converged
    assert result.lower_bound == pytest.approx(cost * flow.sum(), rel=1e-12, abs=0)
