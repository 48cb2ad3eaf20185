"""Flows on graphs: optima against HiGHS, cuts, bounds, and rejected input."""

import signal

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

import epsilot
from epsilot.errors import CertificateError
from epsilot.graphs import simplex
from epsilot.graphs.objective import check_flow, lower_bound
from epsilot.graphs.problem import Edges
from epsilot.graphs.simplex import FlowSimplex
from tuning import tune

N_PROBLEMS = 150


def drawn(seed):
    """Return the costs and capacities of a random graph, and masses before and after."""
    rng = np.random.default_rng([34, seed])
    n = int(rng.integers(2, 9))
    has_edge = rng.random((n, n)) < rng.choice([0.2, 0.5, 0.9])
    costs = rng.random((n, n)) if seed % 3 else rng.integers(0, 4, (n, n)) * 1.0
    capacities = np.full((n, n), np.inf)
    if seed % 2:
        capacities = np.where(rng.random((n, n)) < 0.3, np.inf, rng.random((n, n)) * 0.8)
    i, j = np.nonzero(has_edge)
    scale = 10.0 ** rng.integers(-3, 4)
    G = sparse.csr_array((scale * costs[i, j], (i, j)), shape=(n, n))
    U = sparse.csr_array((capacities[i, j], (i, j)), shape=(n, n))
    a, b = rng.dirichlet(np.ones(n), 2)
    if seed % 5 == 0:
        a, b = np.eye(n)[0], np.eye(n)[-1]
    return G, U, a, b


def optimum(G, U, a, b):
    """Return the optimum by HiGHS, or None if there is none."""
    G, n = G.tocoo(), a.size
    if G.nnz == 0:
        return 0.0 if np.allclose(a, b) else None
    A = np.zeros((n, G.nnz))
    np.add.at(A, (G.row, np.arange(G.nnz)), 1)
    np.add.at(A, (G.col, np.arange(G.nnz)), -1)
    bounds = [(0, None if np.isinf(u) else u) for u in U.tocoo().data]
    found = linprog(G.data, A_eq=A, b_eq=a - b, bounds=bounds)
    return found.fun if found.status == 0 else None


@pytest.mark.parametrize("first", range(0, N_PROBLEMS, 50))
def test_random_flows_equal_highs_or_are_cut(first):
    for seed in range(first, first + 50):
        check_against_highs(seed)


def check_against_highs(seed):
    """Compare one problem with HiGHS; return whether it is feasible."""
    G, U, a, b = drawn(seed)
    expected = optimum(G, U, a, b)
    if expected is None:
        with pytest.raises(epsilot.Infeasible) as caught:
            epsilot.solve_graph(G, a, b, capacity=U)
        check_cut(caught.value, G, U, a, b)
        return False
    result = epsilot.solve_graph(G, a, b, capacity=U)
    size = max(float(abs(G).max()), 1e-9)
    assert result.converged
    assert result.value == pytest.approx(expected, abs=1e-8 * size)
    assert result.lower_bound <= expected + 1e-9 * size
    F = result.flows.toarray()
    np.testing.assert_allclose(F.sum(axis=1) - F.sum(axis=0), a - b, atol=1e-12)
    assert (U.toarray() * (1 + 1e-12) >= F).all()
    return True


def check_cut(cut, G, U, a, b):
    """Check that a cut proves what it says, by sums of masses and capacities alone."""
    inside = np.isin(np.arange(a.size), cut.sources)
    room = U.toarray()[np.ix_(inside, ~inside)].sum()
    assert cut.excess == pytest.approx((a - b)[inside].sum() - room, abs=1e-12)
    assert cut.excess > 0
    assert not inside[cut.targets].any()


def test_directions_and_forms_of_graphs():
    networkx = pytest.importorskip("networkx")
    G = networkx.Graph()
    G.add_edge("x", "y", weight=1.0, limit=0.25)
    G.add_edge("x", "z", weight=2.0)
    G.add_edge("y", "z")  # costs 1
    result = epsilot.solve_graph(G, {"z": 1.0}, {"x": 1.0}, capacity="limit")
    assert result.value == pytest.approx(2.0)
    assert result.nodes == ("x", "y", "z")
    limited = epsilot.solve_graph(G, {"y": 1.0}, {"x": 1.0}, capacity="limit")
    assert limited.value == pytest.approx(0.25 + 0.75 * 3)
    assert limited.edge_flows() == pytest.approx(
        {("y", "x"): 0.25, ("y", "z"): 0.75, ("z", "x"): 0.75}
    )
    M = networkx.to_scipy_sparse_array(G, format="coo")
    assert epsilot.solve_graph(M, [0, 0, 3], [3, 0, 0]).value == pytest.approx(6.0)
    one_way = sparse.csr_array(np.array([[0, 1.0], [0, 0]]))
    assert epsilot.solve_graph(one_way, [0, 1], [1, 0], directed=False).value == 1.0
    with pytest.raises(epsilot.Infeasible, match="no flow exists"):
        epsilot.solve_graph(one_way, [0, 1], [1, 0])


def test_a_grid_has_the_value_of_solve_grid():
    networkx = pytest.importorskip("networkx")
    A, B = np.random.default_rng(3).dirichlet(np.ones(48), 2).reshape(2, 6, 8)
    result = epsilot.solve_graph(networkx.grid_2d_graph(6, 8), A.ravel(), B.ravel())
    grid = epsilot.solve_grid(A, B, rtol=1e-9)
    assert result.value == pytest.approx(grid.value, abs=1e-12)
    assert result.gap <= 1e-12
    f = result.potentials.reshape(6, 8)
    assert np.abs(np.diff(f, axis=0)).max() <= 1 + 1e-12


def test_masses_that_stay_cost_nothing():
    result = epsilot.solve_graph(sparse.eye_array(3).tocsr(), [1, 2, 3], [1, 2, 3])
    assert (result.value, result.lower_bound, result.flows.nnz) == (0.0, 0.0, 0)


def test_limits_keep_bounds():
    G, _, _, _ = drawn(8)
    n = 300
    rng = np.random.default_rng(0)
    G = sparse.random_array((n, n), density=0.1, rng=rng, format="csr")
    a, b = rng.dirichlet(np.ones(n), 2)
    exact = epsilot.solve_graph(G, a, b)
    limited = epsilot.solve_graph(G, a, b, max_seconds=1e-9, on_limit="ignore")
    assert limited.lower_bound <= exact.value <= limited.value + 1e-12
    assert limited.status in (epsilot.Status.MAX_SECONDS, epsilot.Status.CERTIFIED)


def test_a_limit_before_the_first_flow_is_told(monkeypatch):
    tune(monkeypatch, simplex, pivots_per_step=1)
    G = sparse.random_array((60, 60), density=0.2, rng=np.random.default_rng(0), format="csr")
    a, b = np.random.default_rng(1).dirichlet(np.ones(60), 2)
    with pytest.warns(epsilot.ConvergenceWarning, match="No feasible flow was found yet"):
        result = epsilot.solve_graph(G, a, b, max_seconds=1e-9)
    assert result.value == result.gap == np.inf
    assert np.isfinite(result.lower_bound)
    with pytest.raises(epsilot.NotConverged):
        epsilot.solve_graph(G, a, b, max_seconds=1e-9, on_limit="raise")


def test_a_saved_run_is_resumed_to_the_same_bits(monkeypatch, tmp_path):
    tune(monkeypatch, simplex, pivots_per_step=7)
    G = sparse.random_array((80, 80), density=0.2, rng=np.random.default_rng(2), format="csr")
    a, b = np.random.default_rng(3).dirichlet(np.ones(80), 2)
    whole, path, step = (
        epsilot.solve_graph(G, a, b, capacity=0.5),
        tmp_path / "run",
        FlowSimplex.step,
    )
    begun = []

    def interrupted(self, target, state, rng):
        begun.append(state)
        if len(begun) == 5:
            signal.raise_signal(signal.SIGINT)
        return step(self, target, state, rng)

    with monkeypatch.context() as patch:
        patch.setattr(FlowSimplex, "step", interrupted)
        half = epsilot.solve_graph(G, a, b, capacity=0.5, checkpoint=path, on_limit="ignore")
    assert half.status is epsilot.Status.INTERRUPTED
    assert half.n_iter == 5 < whole.n_iter
    assert half.lower_bound <= whole.value
    rest = epsilot.solve_graph(G, a, b, capacity=0.5, resume=path)
    assert (rest.value, rest.n_iter, rest.work) == (whole.value, whole.n_iter, whole.work)
    np.testing.assert_array_equal(rest.potentials, whole.potentials)
    with pytest.raises(epsilot.InvalidProblem, match="resume with the same problem"):
        epsilot.solve_graph(G, b, a, capacity=0.5, resume=path)


def test_a_callback_sees_the_bounds():
    seen = []
    result = epsilot.solve_graph(PATH, [1, 0], [0, 1], callback=seen.append, progress=True)
    assert [record.gap for record in seen] == [result.gap]
    assert result.history == seen


def test_false_answers_are_not_proved():
    edges = Edges(2, np.array([0]), np.array([1]), np.array([1.0]), np.array([np.inf]))
    supply = np.array([1.0, -1.0])
    check_flow(edges, supply, np.array([1.0]))
    with pytest.raises(CertificateError, match="misses the masses"):
        check_flow(edges, supply, np.array([0.9]))
    with pytest.raises(CertificateError, match="above its capacity"):
        check_flow(edges._replace(capacities=np.array([0.5])), supply, np.array([1.0]))
    # Potentials that exceed a cost pay for it.
    assert lower_bound(edges, supply, np.array([5.0, 0.0])) <= 1.0
    assert lower_bound(edges, supply, np.array([1.0, 0.0])) == pytest.approx(1.0)


@pytest.mark.parametrize("room", [5.0, 1e9, 1e150, 1.7e308, 5e-324])
def test_capacities_of_any_size_are_taken(room):
    """A capacity far above the mass limits nothing; one far below it is a closed edge."""
    rng = np.random.default_rng(4)
    costs = rng.random((8, 8))
    limits = room * rng.uniform(0.5, 1, (8, 8))
    limits = np.where(np.eye(8, k=1) + np.eye(8, k=-7), np.inf, np.maximum(limits, 5e-324))
    a, b = rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(8))
    G, R = sparse.csr_array(costs), sparse.csr_array(limits)
    result = epsilot.solve_graph(G, a, b, capacity=R)
    assert result.converged
    assert (result.flows.toarray() <= limits).all()
    ring = sparse.csr_array(np.where(np.isinf(limits), costs, 0.0))
    unlimited = epsilot.solve_graph(G if room > 1 else ring, a, b)
    assert result.value == pytest.approx(unlimited.value, rel=1e-9)


PATH = sparse.csr_array(np.array([[0, 1.0], [1.0, 0]]))
REFUSED = {
    "type": (lambda: epsilot.solve_graph([[0, 1]], [1], [1]), "must be a networkx graph"),
    "shape": (lambda: epsilot.solve_graph(PATH[:1], [1], [1]), "square array"),
    "cost": (lambda: epsilot.solve_graph(-PATH, [1, 0], [0, 1]), "from 0 to 1 has the cost -1"),
    "capacity": (lambda: epsilot.solve_graph(PATH, [1, 0], [0, 1], capacity=-1), "capacity is -1"),
    "pattern": (
        lambda: epsilot.solve_graph(PATH, [1, 0], [0, 1], capacity=0 * PATH[:, :1] @ PATH[:1]),
        "lacks an entry",
    ),
    "masses": (lambda: epsilot.solve_graph(PATH, [1, 0, 0], [0, 1]), "one mass for each of the 2"),
    "negative": (lambda: epsilot.solve_graph(PATH, [-1, 2], [0, 1]), "the mass -1 at node 0"),
    "totals": (lambda: epsilot.solve_graph(PATH, [1, 0], [0, 2]), "totals must be equal"),
    "stranger": (lambda: epsilot.solve_graph(PATH, {7: 1.0}, {0: 1.0}), "holds the node 7"),
    "empty": (lambda: epsilot.solve_graph(PATH, [0, 0], [0, 0]), "both must have mass"),
    "rtol": (lambda: epsilot.solve_graph(PATH, [1, 0], [0, 1], rtol=-1), "rtol is -1"),
    "overflow": (
        lambda: epsilot.solve_graph(1e180 * PATH, [1e200, 0], [0, 1e200]),
        "the costs reach 1e\\+180 and the moved mass is 1e\\+200",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_gets_one_sentence(name):
    call, sentence = REFUSED[name]
    with pytest.raises(epsilot.InvalidProblem, match=sentence):
        call()
