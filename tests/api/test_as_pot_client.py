"""The calls that POT's own tests make of ``emd`` and ``emd2``, answered by our exact plans."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import ot
import pytest
from scipy import sparse

import epsilot


@dataclass(frozen=True)
class Call:
    """A cost, weights (None: equal), and what the optimal cost is if it is known."""

    M: np.ndarray
    a: np.ndarray | None = None
    b: np.ndarray | None = None
    known: float | None = None


def bell(n, mean, deviation):
    """Return a normalised Gaussian on the integers 0 to n - 1."""
    w = np.exp(-((np.arange(n) - mean) ** 2) / (2 * deviation**2))
    return w / w.sum()


def line(n, m, power=1):
    """Return distances, to a power, between the integers below n and those below m."""
    return np.abs(np.subtract.outer(np.arange(n), np.arange(m))) ** float(power)


def itself(n=100):
    X = np.random.default_rng(0).normal(size=(n, 2))
    return Call(ot.dist(X, X), known=0.0)


def clouds(n=100, m=80):
    rng = np.random.default_rng(1)
    M = ot.dist(rng.normal(size=(n, 2)), rng.normal(size=(m, 2)))
    return Call(M, rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m)))


def with_dummies():
    """Return clouds of which some points carry nothing."""
    M, a, b = (call := clouds()).M, call.a.copy(), call.b.copy()
    a[::7], b[1::5] = 0.0, 0.0
    return Call(M, a / a.sum(), b / b.sum())


def tails(n=500):
    """Return Gaussian weights on points most of which have next to nothing."""
    X = 30 * np.random.default_rng(0).normal(size=(n, 2))
    a, b = (
        np.exp(-((X - mean) ** 2).sum(axis=1) / (2 * deviation**2))
        for mean, deviation in (((-40.0, 0.0), 4.0), ((40.0, 10.0), 8.0))
    )
    return Call(ot.dist(X, X), a / a.sum(), b / b.sum())


CALLS: dict[str, Callable[[], Call]] = {
    "a cloud to itself": itself,
    "equal weights": lambda: Call(clouds(60, 60).M),
    "rectangular": clouds,
    "empty weights": with_dummies,
    "bells on a line": lambda: Call(line(500, 600), bell(500, 300, 5), bell(600, 400, 10), 100.0),
    "a narrow bell to a wide one": lambda: Call(
        line(500, 500, 2), bell(500, 20, 5), bell(500, 320, 10)
    ),
    "tails of 200 decades": lambda: Call(line(500, 500, 2), bell(500, 250, 3), bell(500, 260, 8)),
    "tails in the plane": tails,
    "mostly forbidden arcs": lambda: Call(
        np.where(np.random.default_rng(2).random((40, 40)) < 0.1, line(40, 40), 1e8)
    ),
    "one source": lambda: Call(clouds(1, 9).M, None, clouds(1, 9).b),
    "one target": lambda: Call(clouds(9, 1).M, clouds(9, 1).a),
    "one pair": lambda: Call(np.array([[3.0]]), known=3.0),
    "mass 5": lambda: Call(clouds().M, 5 * clouds().a, 5 * clouds().b),
}
#: The ways to ask for an exact answer; restricted_simplex is what "auto" stands for at size.
SOLVERS: dict[str, Callable[..., epsilot.Result]] = {
    "exact": epsilot.exact,
    "auto": lambda M, a, b: epsilot.solve(M, a, b, rtol=1e-9),
    "restricted_simplex": lambda M, a, b: epsilot.solve(
        M, a, b, rtol=1e-9, method="restricted_simplex"
    ),
    "auction": lambda M, a, b: epsilot.solve(M, a, b, rtol=1e-9, method="auction"),
}


@cache
def answer(call: str, solver: str) -> tuple[Call, np.ndarray, np.ndarray, epsilot.Result]:
    given = CALLS[call]()
    mass = next((w.sum() for w in (given.a, given.b) if w is not None), 1.0)
    a, b = (
        np.full(size, mass / size) if w is None else w
        for w, size in zip((given.a, given.b), given.M.shape, strict=True)
    )
    return given, a, b, SOLVERS[solver](given.M, given.a, given.b)


each_answer = pytest.mark.parametrize(
    ("call", "solver"), [(call, solver) for call in CALLS for solver in SOLVERS]
)


@each_answer
def test_the_value_is_that_of_emd2(call, solver):
    given, a, b, result = answer(call, solver)
    value = ot.emd2(a, b, given.M, numItermax=10**7)
    assert result.value == pytest.approx(value, rel=2e-9, abs=1e-9 * given.M.max())
    assert (given.M * result.plan).sum() == pytest.approx(result.value, rel=1e-12)
    if given.known is not None:
        assert result.value == pytest.approx(given.known, abs=1e-7)


@each_answer
def test_the_plan_has_the_given_marginals(call, solver):
    _, a, b, result = answer(call, solver)
    for plan in (result.plan, result.plan_operator.tosparse()):
        assert np.abs(plan.sum(axis=1) - a).sum() <= 1e-14 * a.sum()
        assert np.abs(plan.sum(axis=0) - b).sum() <= 1e-14 * a.sum()


@each_answer
def test_the_support_is_that_of_a_vertex(call, solver):
    given, _, _, result = answer(call, solver)
    most = sum(given.M.shape) - 1
    kept = result.plan_operator.tosparse()
    assert sparse.issparse(kept)
    assert kept.shape == given.M.shape
    assert kept.nnz <= most
    assert np.count_nonzero(result.plan) <= most


@each_answer
def test_the_duals_have_the_value_and_are_tight_on_the_support(call, solver):
    given, a, b, result = answer(call, solver)
    f, g = result.potentials
    slack = given.M - f[:, None] - g[None, :]
    unit = given.M.max()
    assert (f[:, None] + g[None, :] <= given.M).all()
    assert f @ a + g @ b == pytest.approx(result.value, rel=2e-9, abs=1e-9 * unit)
    assert slack[result.plan > 0].max() <= 1e-11 * unit


def test_the_plan_of_a_cloud_to_itself_is_the_identity():
    for solver in SOLVERS:
        assert np.array_equal(answer("a cloud to itself", solver)[-1].plan, np.eye(100) / 100)


@pytest.mark.parametrize("solver", SOLVERS)
def test_transposing_the_problem_transposes_the_answer(solver):
    given, a, b, result = answer("bells on a line", solver)
    back = SOLVERS[solver](np.ascontiguousarray(given.M.T), b, a)
    assert back.value == pytest.approx(result.value, rel=1e-9)
    assert (given.M * back.plan.T).sum() == pytest.approx(result.value, rel=1e-9)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda M, a, b: (M, a[1:], b), "must have shape (100,)"),
        (lambda M, a, b: (M, a, np.append(b, 0.0)), "must have shape (80,)"),
        (lambda M, a, b: (M.T, a, b), "swapped"),
        (lambda M, a, b: (M[None], a, b), "a cost must be a matrix"),
        (lambda M, a, b: (M, [], []), "must have shape"),
        (lambda M, a, b: (M, np.where(a == a[0], 100.0, a), b), "totals must be equal"),
        (lambda M, a, b: (M, -a, -b), "must not be negative"),
    ],
)
@pytest.mark.parametrize("solver", SOLVERS)
def test_wrong_shapes_and_unequal_totals_are_refused(solver, spoil, words):
    call = clouds()
    with pytest.raises(epsilot.InvalidProblem) as refusal:
        SOLVERS[solver](*spoil(call.M, call.a, call.b))
    assert words in str(refusal.value)


@pytest.mark.parametrize(("dtype", "accuracy"), [(np.float64, 1e-9), (np.float32, 1e-5)])
def test_types_change_the_value_by_their_rounding_only(dtype, accuracy):
    call = clouds()
    result = epsilot.exact(*(x.astype(dtype) for x in (call.M, call.a, call.b)))
    assert result.value == pytest.approx(ot.emd2(call.a, call.b, call.M), rel=accuracy)
    assert result.plan.dtype == np.float64


def test_threads_do_not_change_the_answer():
    call = clouds()
    values = {
        epsilot.solve(call.M, call.a, call.b, method="exact", n_threads=k).value for k in (1, 2)
    }
    assert len(values) == 1


def test_many_targets_have_the_values_of_emd2():
    n = 200
    M, a = line(n, n, 2), bell(n, 20, 5)
    targets = np.stack([bell(n, mean, 10) for mean in range(20, n, 40)], axis=1)
    ours = [epsilot.exact(M, a, np.ascontiguousarray(b)).value for b in targets.T]
    assert ours == pytest.approx(ot.emd2(a, targets, M), rel=1e-9)


def test_too_few_pivots_are_a_warning():
    call = CALLS["bells on a line"]()
    with pytest.warns(epsilot.ConvergenceWarning, match="gap"):
        result = epsilot.solve(call.M, call.a, call.b, method="exact", rtol=1e-9, max_pivots=1)
    assert result.lower_bound <= 100.0 <= result.value + 1e-9


@pytest.mark.parametrize("solver", ["exact", "restricted_simplex"])
def test_a_warm_start_from_duals_has_the_same_answer(solver):
    given, a, b, cold = answer("rectangular", solver)
    rough = epsilot.solve(given.M, a, b, rtol=0.1, method="sinkhorn").potentials
    for start in (cold.potentials, rough):
        warm = epsilot.solve(
            given.M, a, b, rtol=1e-9, method=solver, potentials_init=start, on_limit="raise"
        )
        assert warm.value == pytest.approx(cold.value, rel=2e-9)


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock"])
def test_a_lazy_cloud_has_a_sparse_plan_of_the_dense_value(metric):
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(70, 2)), rng.normal(size=(50, 2))
    result = epsilot.solve_sample(X, Y, metric=metric, lazy=True, rtol=1e-9)
    plan = result.plan_operator.tosparse()
    assert plan.nnz <= 70 + 50 - 1
    assert result.value == pytest.approx(ot.emd2([], [], ot.dist(X, Y, metric)), rel=2e-9)


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock"])
def test_points_on_a_line_have_the_value_of_emd_1d(metric):
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=60), rng.normal(size=45)
    a, b = rng.dirichlet(np.ones(60)), rng.dirichlet(np.ones(45))
    result = epsilot.solve_sample(x, y, a, b, metric=metric, rtol=1e-9)
    assert result.value == pytest.approx(ot.emd2_1d(x, y, a, b, metric=metric), rel=2e-9)


def test_a_sparse_cost_has_the_value_of_emd():
    M = sparse.coo_array(np.eye(3) + np.eye(3, k=1))
    assert epsilot.exact(M).value == pytest.approx(1.0)
