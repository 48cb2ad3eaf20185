"""What `solve` and its companions accept, refuse and promise."""

import numpy as np
import pytest

import epsilot
from epsilot import ConvergenceWarning, InvalidProblem, NotConverged, UnknownMethod
from sample_problems import A3, B4, M34, PROBLEMS, assert_feasible, put

ROWS = {row.name: row for row in PROBLEMS}
IMAGES = ROWS["images 6x6"]
METHODS = sorted(entry.name for entry in epsilot.methods() if entry.costs == "any")

BAD_INPUTS = {
    "NaN in M": ({"M": put(M34, np.nan)}, r"row 0, column 0 is nan"),
    "inf in M": ({"M": put(M34, -np.inf)}, r"row 0, column 0 is -inf"),
    "NaN in a": ({"a": put(A3, np.nan)}, r"\ba\b.*(nan|finite)"),
    "inf in a": ({"a": put(A3, np.inf)}, r"\ba\b.*(inf|finite)"),
    "NaN in b": ({"b": put(B4, np.nan)}, r"\bb\b.*(nan|finite)"),
    "inf in b": ({"b": put(B4, np.inf)}, r"\bb\b.*(inf|finite)"),
    "negative mass": ({"a": [1.0, 0.5, -0.5]}, r"\ba\b.*negative"),
    "negative mass in b": ({"b": [1.0, 0.5, -0.5, 0.0]}, r"\bb\b.*negative"),
    "zero mass": ({"a": np.zeros(3), "b": np.zeros(4)}, r"\ba\b.*(zero|0)"),
    "totals differ": ({"a": 0.9 * A3}, r"0\.9.*normalize=True"),
    "M is a vector": ({"M": np.ones(4)}, r"M .*\(4,\)"),
    "M is three-dimensional": ({"M": np.ones((3, 4, 1))}, r"M .*\(3, 4, 1\)"),
    "a too short": ({"a": [0.5, 0.5]}, r"\ba\b.*2.*3"),
    "b too long": ({"b": np.full(5, 0.2)}, r"\bb\b.*5.*4"),
    "a is a matrix": ({"a": np.ones((3, 3)) / 9}, r"\ba\b.*\(3, 3\)"),
    "swapped marginals": ({"a": B4, "b": A3}, r"swap"),
    "empty": ({"M": np.zeros((0, 0)), "a": [], "b": []}, r"M .*(empty|\(0, 0\))"),
    "complex M": ({"M": M34 + 1j}, r"M .*complex"),
    "text in M": ({"M": np.full((3, 4), "x")}, r"M .*(number|real|str|<U1)"),
    "ragged M": ({"M": [[1.0, 2.0], [3.0]]}, r"M "),
    "eps zero": ({"eps": 0.0}, r"eps.*0"),
    "eps negative": ({"eps": -1.0}, r"eps.*-1"),
    "eps NaN": ({"eps": np.nan}, r"eps.*nan"),
    "eps below round-off": ({"eps": 1e-18}, r"eps.*1e-18.*(float64|round-off|precision)"),
    "rtol negative": ({"eps": None, "rtol": -0.1}, r"rtol.*-0\.1"),
    "reg zero": ({"eps": None, "reg": 0.0}, r"reg.*0"),
    "eps and rtol": ({"rtol": 0.1}, r"eps.*rtol"),
    "eps and reg": ({"reg": 0.1}, r"eps.*reg"),
    "rtol and reg": ({"eps": None, "rtol": 0.1, "reg": 0.1}, r"rtol.*reg"),
    "unknown stop": ({"stop": "papers"}, r"papers.*paper"),
    "unknown on_limit": ({"on_limit": "warning"}, r"warning.*warn"),
    "negative max_iter": ({"max_iter": -1}, r"max_iter.*-1"),
    "negative max_seconds": ({"max_seconds": -1.0}, r"max_seconds.*-1"),
}


@pytest.mark.parametrize("name", BAD_INPUTS)
def test_bad_input_is_refused_in_one_sentence(name):
    changes, pattern = BAD_INPUTS[name]
    arguments = {"M": M34, "a": A3, "b": B4, "eps": 0.1} | changes
    with pytest.raises(InvalidProblem, match=f"(?i){pattern}") as caught:
        epsilot.solve(**arguments)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 300


def test_unknown_method_suggests_the_nearest():
    with pytest.raises(UnknownMethod, match=r"sinkhron.*sinkhorn"):
        epsilot.solve(M34, eps=0.1, method="sinkhron")


@pytest.mark.parametrize(
    ("method", "option", "nearest"),
    [
        ("exact", "max_pivot", "max_pivots"),
        ("sinkhorn", "max_iters", "max_iter"),
        ("sinkhorn", "potential_init", "potentials_init"),
    ],
)
def test_unknown_option_suggests_the_nearest(method, option, nearest):
    with pytest.raises(UnknownMethod, match=rf"'{option}'; did you mean {nearest}\?"):
        epsilot.solve(M34, eps=0.1, method=method, **{option: 3})


def test_errors_are_of_the_promised_kinds():
    assert issubclass(InvalidProblem, ValueError)
    assert issubclass(UnknownMethod, ValueError)
    assert issubclass(NotConverged, RuntimeError)
    assert issubclass(ConvergenceWarning, UserWarning)


def non_contiguous(array):
    wide = np.zeros(tuple(2 * size for size in array.shape))
    view = wide[tuple(slice(None, None, 2) for _ in array.shape)]
    view[...] = array
    return view


def read_only(array):
    array = array.copy()
    array.setflags(write=False)
    return array


LAYOUTS = {
    "lists": np.ndarray.tolist,
    "read-only": read_only,
    "Fortran order": np.asfortranarray,
    "non-contiguous": non_contiguous,
    "reversed": lambda array: np.flip(np.flip(array).copy()),
    "big-endian": lambda array: array.astype(">f8"),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout_does_not_matter(layout, method):
    row = ROWS["rectangular"]
    change = LAYOUTS[layout]
    plain = epsilot.solve(row.M, row.a, row.b, eps=row.eps, method=method)
    other = epsilot.solve(change(row.M), change(row.a), change(row.b), eps=row.eps, method=method)
    np.testing.assert_array_equal(plain.plan, other.plan)
    assert (plain.value, plain.lower_bound) == (other.value, other.lower_bound)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64, np.uint8, bool])
def test_cost_of_any_real_dtype(dtype, method):
    M = (ROWS["integers"].M % 2).astype(dtype)
    result = epsilot.solve(M, eps=0.02, method=method)
    n, m = M.shape
    assert result.gap <= 0.02
    assert_feasible(result, M.astype(float), np.full(n, 1 / n), np.full(m, 1 / m))


@pytest.mark.parametrize("method", METHODS)
def test_weights_whose_totals_agree_in_float32_only(method):
    row = ROWS["dirichlet 0.3"]
    a, b = row.a.astype(np.float32), row.b.astype(np.float32)
    result = epsilot.solve(row.M, a, b, eps=row.eps, method=method)
    assert result.gap <= row.eps


def test_weights_default_to_uniform():
    implicit = epsilot.solve(M34, eps=0.1)
    explicit = epsilot.solve(M34, A3, B4, eps=0.1)
    np.testing.assert_array_equal(implicit.plan, explicit.plan)


def test_masses_need_not_sum_to_one():
    unit = epsilot.solve(M34, A3, B4, eps=0.1)
    result = epsilot.solve(M34, 3 * A3, 3 * B4, eps=0.3)
    assert result.gap <= 0.3
    np.testing.assert_allclose(result.plan.sum(axis=1), 3 * A3, rtol=1e-12)
    np.testing.assert_allclose(result.plan.sum(axis=0), 3 * B4, rtol=1e-12)
    assert result.lower_bound <= 3 * unit.value
    assert 3 * unit.lower_bound <= result.value


def test_normalize_rescales_the_masses():
    result = epsilot.solve(M34, 5 * A3, 7 * B4, eps=0.1, normalize=True)
    assert_feasible(result, M34, A3, B4)


@pytest.mark.parametrize("method", ["auto", "exact", "restricted_simplex"])
@pytest.mark.parametrize("row", PROBLEMS, ids=lambda row: row.name)
def test_no_target_means_one_per_cent(row, method):
    result = epsilot.solve(row.M, row.a, row.b, method=method)
    assert result.converged
    assert result.gap <= 0.01 * abs(result.lower_bound) + row.round_off


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rtol", [0.2])
def test_rtol_is_relative_to_the_lower_bound(rtol, method):
    result = epsilot.solve(IMAGES.M, IMAGES.a, IMAGES.b, rtol=rtol, method=method)
    assert result.converged
    assert result.gap <= rtol * abs(result.lower_bound)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["no zero cost", "separable", "constant", "1x1", "1xm", "nx1"])
def test_rtol_where_it_is_soon_reached(name, method):
    row = ROWS[name]
    result = epsilot.solve(row.M, row.a, row.b, rtol=0.01, method=method)
    assert result.converged
    assert result.gap <= 0.01 * abs(result.lower_bound) + row.round_off


# Published constants are slow by design: tiny problems, and an accuracy they soon reach.
TINY = {
    "empty column": ([0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1, 0.0]),
    "empty rows": ([0.0, 0.5, 0.0, 0.5], [0.2, 0.2, 0.2, 0.2, 0.2]),
    "one column": ([0.1, 0.2, 0.3, 0.4], [1.0]),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", TINY)
def test_published_stop_reaches_eps(name, method, rng):
    a, b = TINY[name]
    M = rng.uniform(0, 1, (len(a), len(b)))
    result = epsilot.solve(M, a, b, eps=0.3, method=method, stop="paper", on_limit="raise")
    assert result.status is epsilot.Status.PUBLISHED_STOP
    assert result.gap <= 0.3
    assert_feasible(result, M, np.array(a), np.array(b))


def numpy_sinkhorn(M, a, b, reg, n_iter=5_000):
    """Return the optimal value of the entropic problem by plain log-domain Sinkhorn."""
    log_a, log_b, K = np.log(a), np.log(b), M / reg
    v = np.zeros(len(b))
    for _ in range(n_iter):
        u = log_a - np.logaddexp.reduce(v[None] - K, axis=1)
        v = log_b - np.logaddexp.reduce(u[:, None] - K, axis=0)
    log_X = u[:, None] + v[None] - K
    X = np.exp(log_X)
    return (M * X).sum() + reg * (X * log_X).sum()


@pytest.mark.parametrize("name", ["images 5x5", "rectangular", "negative costs", "no zero cost"])
@pytest.mark.parametrize("share", [0.02, 0.2, 2.0])
@pytest.mark.parametrize("tol", [1e-3, 1e-7])
def test_reg_solves_the_entropic_problem(name, share, tol):
    row = ROWS[name]
    scale = np.ptp(row.M)
    reg, tol = share * scale, tol * scale
    result = epsilot.solve(row.M, row.a, row.b, reg=reg, tol=tol)
    X = result.plan
    entropy = -(X[X > 0] * np.log(X[X > 0])).sum()
    assert result.converged
    assert result.reg == reg
    assert result.gap <= tol
    assert result.value_linear == pytest.approx((row.M * X).sum(), rel=1e-12)
    assert result.value == pytest.approx((row.M * X).sum() - reg * entropy, rel=1e-12)
    optimum = numpy_sinkhorn(row.M, row.a, row.b, reg)
    assert result.lower_bound <= optimum + row.round_off
    assert optimum - row.round_off <= result.value <= optimum + tol + row.round_off
    assert np.abs(X.sum(axis=1) - row.a).sum() <= 1e-12
    assert np.abs(X.sum(axis=0) - row.b).sum() <= 1e-12


def test_reg_accepts_zero_masses():
    row = ROWS["half the masses zero"]
    kept = np.ix_(row.a > 0, row.b > 0)
    whole = epsilot.solve(row.M, row.a, row.b, reg=0.1, tol=1e-6)
    reduced = numpy_sinkhorn(row.M[kept], row.a[row.a > 0], row.b[row.b > 0], 0.1)
    assert whole.value == pytest.approx(reduced, abs=1e-6)


def test_methods_is_a_table():
    for entry in epsilot.methods():
        for column in ["name", "family", "paper", "complexity", "exactness", "costs"]:
            assert getattr(entry, column), f"{entry.name} has no {column}"
