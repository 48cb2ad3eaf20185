"""The functions of POT for unregularised problems agree with POT, and are certified."""

import warnings

import numpy as np
import ot
import pytest
from scipy.sparse import coo_array

import epsilot.pot
from epsilot.errors import InvalidProblem

jax = pytest.importorskip("jax")
torch = pytest.importorskip("torch")

# PyTorch warns of every sparse tensor that POT makes.
pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks")

#: Constructors of arrays of each backend.
BACKENDS = {"numpy": np.asarray, "torch": torch.as_tensor, "jax": jax.numpy.asarray}


def problem(n=7, m=9, seed=0):
    """Return weights and costs of a small problem."""
    rng = np.random.default_rng(seed)
    a, b = rng.random(n) + 0.1, rng.random(m) + 0.1
    return a / a.sum(), b / b.sum(), rng.random((n, m))


@pytest.fixture(params=BACKENDS)
def array(request):
    return BACKENDS[request.param]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", BACKENDS)
def test_results_have_the_type_of_the_arguments(name, dtype):
    a, b, M = (BACKENDS[name](x.astype(dtype)) for x in problem())
    plan, log = epsilot.pot.emd(a, b, M, log=True)
    for x in (plan, log["u"], log["v"]):
        assert type(x) is type(M)
        assert x.dtype == M.dtype
    assert log["warning"] is None
    assert 0 <= log["gap"] <= 1e-11 * log["cost"]
    assert log["cost"] - log["gap"] == pytest.approx(log["lower_bound"], rel=1e-15)


def test_plans_costs_and_duals_are_those_of_pot(array):
    a, b, M = map(array, problem())
    plan, log = epsilot.pot.emd(a, b, M, log=True)
    theirs, their_log = ot.emd(a, b, M, log=True)
    np.testing.assert_allclose(np.asarray(plan), np.asarray(theirs), atol=1e-15)
    assert float(log["cost"]) == pytest.approx(float(their_log["cost"]), rel=1e-13)
    for name in ("u", "v"):
        np.testing.assert_allclose(np.asarray(log[name]), np.asarray(their_log[name]), atol=1e-12)
    assert set(log) - set(their_log) == {"lower_bound", "gap"}


@pytest.mark.parametrize("center_dual", [True, False])
def test_duals_are_feasible_and_centred(center_dual):
    a, b, M = problem()
    a[0] = b[0] = 0.0
    a, b = a / a.sum(), b / b.sum()
    log = epsilot.pot.emd(a, b, M, log=True, center_dual=center_dual)[1]
    assert (log["u"][:, None] + log["v"] <= M + 1e-14).all()
    # Potentials are centred wherever weights are empty, as in POT.
    assert a @ log["u"] == pytest.approx(b @ log["v"])
    assert a @ log["u"] + b @ log["v"] == pytest.approx(log["cost"])


def test_gradients_are_those_of_pot():
    found = []
    for module in (ot, epsilot.pot):
        a, b, M = (torch.tensor(x, requires_grad=True) for x in problem())
        module.emd2(a, b, M).backward()
        found.append([x.grad.numpy() for x in (a, b, M)])
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_empty_lists_are_uniform_weights_and_lists_are_arrays():
    value = epsilot.pot.emd2([], [], [[0.0, 1.0], [1.0, 0.0]])
    assert value == 0
    assert epsilot.pot.emd([], [], np.eye(3)).sum() == pytest.approx(1)


def test_each_column_of_b_is_a_problem():
    a, b, M = problem()
    stacked = np.column_stack([b, b[::-1]])
    assert epsilot.pot.emd2(a, stacked, M) == [
        epsilot.pot.emd2(a, b, M),
        epsilot.pot.emd2(a, b[::-1].copy(), M),
    ]
    value, log = epsilot.pot.emd2(a, stacked, M, log=True, return_matrix=True)[1]
    assert (log["G"] * M).sum() == pytest.approx(value)


def test_b_is_rescaled_or_refused_as_in_pot():
    a, b, M = problem()
    assert epsilot.pot.emd2(a, 2 * b, M, check_marginals=False) == pytest.approx(ot.emd2(a, b, M))
    with pytest.raises(AssertionError, match="must have the same sum"):
        epsilot.pot.emd2(a, 2 * b, M)
    with pytest.raises(AssertionError, match="shapes"):
        epsilot.pot.emd(b, a, M)


def test_negative_weights_are_reported_by_pot():
    a, b, M = problem()
    a[0], a[1] = -a[1], a[0] + 2 * a[1]
    with pytest.warns(UserWarning, match="infeasible"):
        _, log = epsilot.pot.emd(a, b, M, log=True, check_marginals=False)
    assert log["result_code"] != 1


def test_costs_that_are_no_numbers_are_refused():
    a, b, M = problem()
    M[1, 2] = np.nan
    for function in (epsilot.pot.emd, epsilot.pot.emd2):
        with pytest.raises(InvalidProblem, match="nan"):
            function(a, b, M)


def test_a_limit_below_the_fewest_pivots_is_a_certified_plan_with_a_warning():
    a, b, M = problem(60, 60)
    with pytest.warns(UserWarning, match="numItermax"):
        plan, log = epsilot.pot.emd(a, b, M, numItermax=2, log=True)
    np.testing.assert_allclose(plan.sum(axis=1), a)
    best = epsilot.pot.emd2(a, b, M, numItermax=200)
    assert log["lower_bound"] <= best < log["cost"]
    with pytest.warns(UserWarning, match="numItermax"):
        assert epsilot.pot.emd2(a, b, M, numItermax=2) == pytest.approx(log["cost"])


def test_threads_are_checked_and_ignored():
    a, b, M = problem()
    for function in (epsilot.pot.emd, epsilot.pot.emd2):
        with pytest.warns(DeprecationWarning, match="numThreads") as caught:
            function(a, b, M, numThreads="max")
        assert caught[0].filename == __file__
    with pytest.raises(ValueError, match="numThreads"):
        epsilot.pot.emd(a, b, M, numThreads="many")


def test_integer_weights_are_reported():
    weights = np.array([1, 1])
    for function in (epsilot.pot.emd, epsilot.pot.emd2):
        with pytest.warns(UserWarning, match="integers") as caught:
            function(weights, weights, np.eye(2))
        assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="integers"):
        assert epsilot.pot.emd(weights, weights, np.eye(2)).dtype.kind == "i"


def test_large_problems_start_from_given_potentials():
    a, b, M = problem(300, 310)
    value, log = epsilot.pot.emd2(a, b, M, log=True)
    start = log["u"], log["v"]
    assert epsilot.pot.emd2(a, b, M, potentials_init=start) == pytest.approx(value, rel=1e-13)


@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_sparse_costs_are_arcs(name):
    a, b, M = problem()
    kept = np.ones_like(M, dtype=bool)
    kept[0, :4] = False
    i, j = np.nonzero(kept)
    if name == "numpy":
        cost = coo_array((M[i, j], (i, j)), shape=M.shape)
    else:
        a, b = torch.tensor(a), torch.tensor(b)
        cost = torch.sparse_coo_tensor(np.array([i, j]), torch.tensor(M[i, j]), M.shape)
        cost.requires_grad_(True)
    dense = epsilot.pot.emd2(np.asarray(a), np.asarray(b), np.where(kept, M, 1e3))
    plan = epsilot.pot.emd(a, b, cost if name == "numpy" else cost.detach())
    value, log = epsilot.pot.emd2(a, b, cost, log=True, return_matrix=True)
    assert float(value if name == "numpy" else value.detach()) == pytest.approx(dense)
    assert log["gap"] <= 1e-11
    assert (plan.toarray() if name == "numpy" else plan.to_dense().numpy())[0, :4].sum() == 0
    if name == "torch":
        value.backward()
        np.testing.assert_allclose(cost.grad.to_dense().numpy(), plan.to_dense().numpy())


@pytest.mark.parametrize(
    "cost",
    [coo_array(([1.0], ([0], [0])), shape=(2, 2)), np.array([[1.0, np.inf], [np.inf, np.inf]])],
    ids=["sparse", "dense"],
)
def test_infeasible_costs_are_reported_by_pot(cost):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, log = epsilot.pot.emd(np.full(2, 0.5), np.full(2, 0.5), cost, log=True)
    assert log["result_code"] != 1
    assert "no plan exists" in log["uncertified"]


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock", "minkowski"])
def test_points_on_a_line(array, metric):
    a, b, _ = problem()
    x, y = np.random.default_rng(1).normal(size=(2, 16))
    x, y, a, b = (array(z) for z in (x[:7], y[:9], a, b))
    cost, log = ot.emd2_1d(x, y, a, b, metric=metric, p=3.0, log=True)
    ours, our_log = epsilot.pot.emd2_1d(x, y, a, b, metric=metric, p=3.0, log=True)
    assert float(ours) == pytest.approx(float(cost), rel=1e-13)
    np.testing.assert_allclose(np.asarray(our_log["G"]), np.asarray(log["G"]), atol=1e-15)
    assert our_log["gap"] <= 1e-11
    plan, entries = epsilot.pot.emd_1d(x, y, a, b, metric=metric, p=2, log=True)
    sparse = epsilot.pot.emd_1d(x, y, a, b, metric=metric, p=2)
    np.testing.assert_allclose(np.asarray(sparse), np.asarray(plan), atol=1e-15)
    assert entries["gap"] <= 1e-11


def test_points_on_a_line_may_be_lists():
    x, y = [0.0, 1.0, 2.0], [0.5, 1.0, 3.0]
    assert epsilot.pot.emd2_1d(x, y) == ot.emd2_1d(x, y)
    assert epsilot.pot.emd2_1d(x, y, log=True)[0] == pytest.approx(ot.emd2_1d(x, y))
    with epsilot.pot.install():
        assert ot.emd2_1d(x, y) == epsilot.pot.emd2_1d(x, y)


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock"])
def test_points_without_a_stored_cost(array, metric):
    rng = np.random.default_rng(2)
    X, Y = array(rng.normal(size=(30, 2))), array(rng.normal(size=(40, 2)))
    theirs = float(ot.emd2_lazy(X, Y, metric=metric, return_matrix=False))
    value, log = epsilot.pot.emd2_lazy(X, Y, metric=metric, log=True)
    assert float(value) == pytest.approx(theirs, rel=1e-12)
    assert log["gap"] <= 1e-11 * theirs
    if array is np.asarray:
        np.testing.assert_allclose(log["G"].toarray().sum(axis=0), np.full(40, 1 / 40))


def test_costs_do_not_cancel():
    x = np.array([[1e8, 0.0], [1e8 + 1, 0.0]])
    assert epsilot.pot.dist(x).tolist() == [[0.0, 1.0], [1.0, 0.0]]
    y = np.random.default_rng(3).normal(size=(4, 2))
    for metric in ("sqeuclidean", "euclidean", "cityblock", "cosine", "minkowski", "canberra"):
        np.testing.assert_allclose(epsilot.pot.dist(y, y[:3], metric), ot.dist(y, y[:3], metric))


@pytest.mark.parametrize("n", [6, 40])
@pytest.mark.parametrize("far", [1e12, 1e32])
def test_a_few_costs_far_above_the_others_do_not_hide_the_optimum(n, far):
    rng = np.random.default_rng(0)
    M = rng.random((n, n))
    M[rng.random((n, n)) < 0.5] = far
    np.fill_diagonal(M, 1.0)
    value, log = epsilot.pot.emd2([], [], M, log=True)
    expected = epsilot.exact(np.where(far <= M, np.inf, M))
    assert value == pytest.approx(expected.value, rel=1e-12)
    assert log["gap"] <= 1e-11 * value
    assert (log["u"][:, None] + log["v"] <= M).all()
    assert log["warning"] is None


def test_a_gap_that_is_the_round_off_of_large_costs_is_reported():
    M = np.array([[0.3, 0.5, 0.2], [0.4, 0.1, 0.6], [1e25, 1e25, 1e25]])
    a = np.array([0.5, 0.5 - 1e-12, 1e-12])
    with pytest.warns(epsilot.pot.UncertifiedWarning, match="round-off"):
        value, log = epsilot.pot.emd2(a, np.full(3, 1 / 3), M, log=True)
    assert "round-off" in log["warning"]
    assert log["gap"] > 1e-9 * value
    with pytest.warns(epsilot.pot.UncertifiedWarning, match="round-off"):
        epsilot.pot.emd(a, np.full(3, 1 / 3), M)
    zeros = epsilot.pot.emd2([], [], np.zeros((3, 3)) + np.eye(3), log=True)[1]
    assert zeros["warning"] is None
