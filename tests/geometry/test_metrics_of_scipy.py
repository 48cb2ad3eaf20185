"""Costs by SciPy's names, by functions and by powers are those that SciPy computes."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial import distance
from scipy.spatial.distance import cdist

import epsilot
from epsilot.errors import InvalidProblem
from epsilot.geometry import PointCloud
from epsilot.metrics import BOOLEAN_METRICS, CDIST_METRICS, METRICS, POINT_METRICS

RNG = np.random.default_rng(0)
X, Y = RNG.random((2, 12, 3)) + 0.1
VI = np.linalg.inv([[2.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 3.0]])


def manhattan(u, v):
    return np.abs(u - v).sum()


def manhattan_to_all(u, V):
    return np.abs(u - V).sum(axis=1)


def manhattan_to_any(u, v):
    return np.abs(u - v).sum(axis=-1)


CASES = [
    *((name, {}, {}) for name in (*METRICS, *CDIST_METRICS)),
    ("minkowski", {"metric_params": {"p": 3}}, {"p": 3}),
    ("minkowski", {"metric_params": {"p": 1.5}}, {"p": 1.5}),
    ("minkowski", {"metric_params": {"p": np.inf}}, {"p": np.inf}),
    (
        "minkowski",
        {"metric_params": {"p": 3, "w": [1.0, 2.0, 3.0]}},
        {"p": 3, "w": [1.0, 2.0, 3.0]},
    ),
    ("mahalanobis", {"metric_params": {"VI": VI}}, {"VI": VI}),
    ("seuclidean", {"metric_params": {"V": [1.0, 2.0, 3.0]}}, {"V": [1.0, 2.0, 3.0]}),
]


@pytest.mark.parametrize("p", [1, 2, 2.5])
@pytest.mark.parametrize(("metric", "keywords", "of_scipy"), CASES)
def test_costs_are_powers_of_what_scipy_computes(metric, keywords, of_scipy, p):
    if metric == "minkowski" and not keywords and p != 1:
        keywords = {"metric_params": {"p": 2}}
    cloud = PointCloud(X, Y, metric, p=p, **keywords)
    C = cdist(X, Y, metric, **of_scipy) ** p
    np.testing.assert_allclose(cloud.block(0, 12), C, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(cloud.block(3, 4), C[3:4], rtol=1e-12, atol=1e-15)
    some = cloud.restricted(np.array([5, 2]), np.array([1, 7, 3])).shifted(0.5)
    np.testing.assert_allclose(some.matrix(), C[[5, 2]][:, [1, 7, 3]] + 0.5, rtol=1e-12)
    scaled = cloud.rescaled(-40)
    assert scaled is None or np.array_equal(scaled.matrix(), np.ldexp(cloud.matrix(), -40))


@pytest.mark.parametrize("metric", BOOLEAN_METRICS)
def test_metrics_of_truth_values(metric):
    A, B = np.random.default_rng(1).integers(0, 2, (2, 8, 6))
    A[:, 0] = B[:, 0] = 1
    np.testing.assert_array_equal(
        PointCloud(A, B, metric).matrix(), cdist(A.astype(bool), B.astype(bool), metric)
    )


def test_every_name_of_scipy_is_known():
    assert set(distance._METRICS_NAMES) <= {*POINT_METRICS, "kulczynski1", "sokalmichener"}


@pytest.mark.parametrize("p", [1, 3])
@pytest.mark.parametrize(
    "metric", [manhattan, manhattan_to_all, manhattan_to_any, distance.cityblock]
)
def test_functions_of_pairs_and_of_all_targets(metric, p):
    cost = cdist(X, Y, "cityblock") ** p
    np.testing.assert_allclose(PointCloud(X, Y, metric, p=p).matrix(), cost, rtol=1e-12)
    result = epsilot.solve_sample(X, Y, metric=metric, p=p)
    assert result.value == pytest.approx(cost[linear_sum_assignment(cost)].mean(), rel=1e-12)


def test_a_function_that_takes_all_targets_is_called_once_per_source():
    calls = []
    PointCloud(X, Y, lambda u, v: calls.append(1) or manhattan_to_any(u, v)).block(0, 12)
    assert len(calls) < 80  # a trial, and 12


def test_as_many_targets_as_coordinates_do_not_confuse_the_two_forms():
    # On all targets, u @ V.sum... has the shape of one cost per target, but other values.
    A, B = np.random.default_rng(2).random((2, 3, 3))
    cost = PointCloud(A, B, lambda u, v: u @ v).matrix()
    np.testing.assert_allclose(cost, A @ B.T, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
@pytest.mark.parametrize(
    ("metric", "keywords"),
    [
        ("chebyshev", {}),
        ("minkowski", {"metric_params": {"p": 3}}),
        ("canberra", {}),
        ("euclidean", {"p": 3}),
    ],
)
def test_proofs_of_any_input_are_in_float64(metric, keywords, dtype):
    A, B = (10 * X).astype(dtype), (10 * Y).astype(dtype)
    result = epsilot.solve_sample(A, B, metric=metric, rtol=1e-9, **keywords)
    again = epsilot.solve_sample(
        A.astype(float), B.astype(float), metric=metric, rtol=1e-9, **keywords
    )
    assert result.plan.dtype == np.float64
    assert (result.value, result.lower_bound) == (again.value, again.lower_bound)
    assert abs(result.gap) <= 1e-12 * result.value


@pytest.mark.parametrize(
    ("metric", "p"), [("chebyshev", 1), ("chebyshev", 2), ("euclidean", 3), ("euclidean", 0.5)]
)
@pytest.mark.parametrize("method", ["auction", "restricted_simplex"])
def test_lazy_clouds_of_powers_are_solved_and_proved(metric, p, method):
    A, B = (
        np.random.default_rng(3).normal(size=(60, 2)),
        np.random.default_rng(4).normal(size=(60, 2)),
    )
    cost = cdist(A, B, metric) ** p
    best = cost[linear_sum_assignment(cost)].mean()
    result = epsilot.solve_sample(A, B, metric=metric, p=p, lazy=True, method=method, rtol=1e-6)
    assert result.lower_bound <= best * (1 + 1e-12)
    assert best <= result.value * (1 + 1e-12)
    assert result.converged


REJECTED = {
    "an unknown name": ({"metric": "euclidian"}, "did you mean euclidean"),
    "p of 0": ({"p": 0}, "p is 0"),
    "p below 0": ({"p": -2}, "p is -2"),
    "p of NaN": ({"p": np.nan}, "p is nan"),
    "p of text": ({"p": "2"}, "p is '2'"),
    "a power of minkowski without its order": (
        {"metric": "minkowski", "p": 3},
        r"p is the power of the metric \(give the order too\)",
    ),
    "an order of minkowski below 0": (
        {"metric": "minkowski", "metric_params": {"p": -1}},
        "order p of minkowski is -1",
    ),
    "parameters that are no dict": ({"metric_params": 3}, "must be a dict"),
    "an unknown parameter": (
        {"metric": "canberra", "metric_params": {"q": 3}},
        "SciPy does not compute the metric 'canberra'",
    ),
    "a parameter of a wrong shape": (
        {"metric": "mahalanobis", "metric_params": {"VI": np.eye(2)}},
        r"parameter VI of the metric 'mahalanobis' has shape \(2, 2\)",
    ),
    "truth values": (
        {"metric": "dice"},
        r"X_a holds 0.\d+; the metric 'dice' compares truth values",
    ),
    "NaN of a name": ({"metric": "correlation"}, "returned nan for source 3 and target 0"),
    "NaN of a function": (
        {"metric": lambda u, v: np.nan},
        "returned nan for source 0 and target 0",
    ),
    "a negative number and a power": (
        {"metric": lambda u, v: -1.0, "p": 2},
        "returned -1.0 .* at least 0 for a power",
    ),
    "a wrong shape": ({"metric": lambda u, v: np.zeros(5)}, "one number for two points"),
    "text": ({"metric": lambda u, v: "far"}, "what the metric returned"),
}


@pytest.mark.parametrize(("keywords", "message"), REJECTED.values(), ids=list(REJECTED))
def test_one_sentence_says_what_is_wrong(keywords, message):
    A = X.copy()
    A[3] = 1.0  # has no correlation
    with pytest.raises(InvalidProblem, match=message):
        epsilot.solve_sample(A, Y, **keywords)


def test_metrics_that_divide_by_variances_need_them():
    A, B = X.copy(), Y.copy()
    A[:, 1] = B[:, 1] = 0.5
    for metric, message in (
        ("seuclidean", "coordinate 1 is the same"),
        ("mahalanobis", "singular"),
    ):
        with pytest.raises(InvalidProblem, match=message):
            epsilot.solve_sample(A, B, metric=metric)


def test_errors_of_a_function_of_pairs_are_its_own():
    def broken(u, v):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        epsilot.solve_sample(X, Y, metric=broken)


def test_reports_name_the_metric():
    result = epsilot.solve_sample(X, Y, metric="minkowski", p=2, metric_params={"p": 3})
    call = result.problem.geometry.call()
    assert call.keywords == {"metric": "'minkowski'", "p": "2", "metric_params": "{'p': 3.0}"}


@pytest.mark.parametrize(
    ("metric", "keywords"), [("euclidean", {"p": 3}), ("canberra", {}), ("seuclidean", {"p": 2})]
)
def test_new_points_are_mapped_by_the_same_costs(metric, keywords):
    result = epsilot.solve_sample(X, Y, metric=metric, rtol=1e-9, **keywords)
    f, _ = result.potentials
    np.testing.assert_allclose(result.potential(X), f, rtol=1e-9, atol=1e-12)
