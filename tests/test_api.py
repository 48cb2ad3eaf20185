"""What `solve` and its companions accept, refuse and promise."""

import signal
import warnings

import numpy as np
import ot
import pytest

import epsilot
from epsilot import ConvergenceWarning, InvalidProblem, NotConverged, UnknownMethod
from problems import PROBLEMS, exact_value, solve_exactly, trace

ROWS = {row.name: row for row in PROBLEMS}
IMAGES = ROWS["images 6x6"]
METHODS = sorted({entry.name for entry in epsilot.methods()} - {"auto"})

M34 = np.arange(12.0).reshape(3, 4)
A3, B4 = np.full(3, 1 / 3), np.full(4, 1 / 4)


def put(array, value):
    """Return a copy of an array with its first entry replaced."""
    changed = np.array(array, dtype=float)
    changed.flat[0] = value
    return changed


def assert_feasible(result, M, a, b):
    assert result.plan.min() >= 0
    assert np.abs(result.plan.sum(axis=1) - a).sum() <= 1e-12
    assert np.abs(result.plan.sum(axis=0) - b).sum() <= 1e-12
    exact, round_off = solve_exactly(M, a, b), 1e-9 * np.abs(M).max()
    assert result.lower_bound - round_off <= exact <= result.value + round_off
    assert result.gap == result.value - result.lower_bound


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
    with pytest.raises(UnknownMethod, match=f"'{option}'.*'{nearest}'"):
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


# Limits: a target out of reach of the allowance, for the iterative method.
HARD = {"M": IMAGES.M, "a": IMAGES.a, "b": IMAGES.b, "eps": 1e-3, "method": "sinkhorn"}
LIMITS = {
    "max_iter=0": {"max_iter": 0},
    "max_iter=1": {"max_iter": 1},
    "max_iter=7": {"max_iter": 7},
    "max_seconds=0": {"max_seconds": 0},
    "callback": {"callback": lambda record: True},
    "callback returning a NumPy bool": {"callback": lambda record: np.bool_(True)},
}


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_leaves_a_feasible_plan_with_its_true_gap(limit):
    result = epsilot.solve(**HARD, **LIMITS[limit], on_limit="ignore")
    assert not result.converged
    assert result.gap > 1e-3
    assert_feasible(result, IMAGES.M, IMAGES.a, IMAGES.b)
    assert result.n_iter <= LIMITS[limit].get("max_iter", np.inf)
    assert len(str(result.status)) > 0


@pytest.mark.parametrize("limit", [{"max_iter": 0}, {"max_seconds": 0}], ids=str)
def test_a_limit_before_the_first_step(limit):
    result = epsilot.solve(**HARD | {"method": "exact"}, **limit, on_limit="ignore")
    assert not result.converged
    assert_feasible(result, IMAGES.M, IMAGES.a, IMAGES.b)


@pytest.mark.parametrize("stop", ["certificate", "paper"])
@pytest.mark.parametrize("max_iter", [1, 200, None])
def test_status_agrees_with_converged(max_iter, stop):
    arguments = HARD | {"eps": 0.05, "stop": stop}
    result = epsilot.solve(**arguments, max_iter=max_iter, on_limit="ignore")
    reached = {epsilot.Status.CERTIFIED, epsilot.Status.PUBLISHED_STOP}
    assert result.converged == (result.status in reached)
    assert result.converged == (result.gap <= 0.05)


@pytest.mark.parametrize("limit", ["max_iter=0", "max_iter=7", "max_seconds=0"])
def test_on_limit_raise_carries_the_result(limit):
    with pytest.raises(NotConverged) as caught:
        epsilot.solve(**HARD, **LIMITS[limit], on_limit="raise")
    assert_feasible(caught.value.result, IMAGES.M, IMAGES.a, IMAGES.b)


def test_on_limit_warns_by_default():
    with pytest.warns(ConvergenceWarning, match="gap"):
        result = epsilot.solve(**HARD, max_iter=3)
    assert result.n_iter == 3


def test_on_limit_ignore_is_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        epsilot.solve(**HARD, max_iter=3, on_limit="ignore")


def test_callback_sees_each_record():
    seen = []
    result = epsilot.solve(**HARD, max_iter=40, on_limit="ignore", callback=seen.append)
    assert seen == list(result.history)


def test_ctrl_c_ends_in_a_feasible_result():
    def interrupt(record):
        signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    result = epsilot.solve(**HARD, on_limit="ignore", callback=interrupt)
    assert signal.getsignal(signal.SIGINT) is before
    assert not result.converged
    assert_feasible(result, IMAGES.M, IMAGES.a, IMAGES.b)


@pytest.mark.parametrize("method", METHODS)
def test_result_does_not_follow_later_changes_of_the_input(method):
    M, a, b = IMAGES.M.copy(), IMAGES.a.copy(), IMAGES.b.copy()
    result = epsilot.solve(M, a, b, eps=IMAGES.eps, method=method)
    for array in (M, a, b):
        array[...] = 1.0
    assert_feasible(result, IMAGES.M, IMAGES.a, IMAGES.b)
    assert result.value == pytest.approx((IMAGES.M * result.plan).sum(), rel=1e-12)


def test_number_of_threads_does_not_change_the_trace(rng):
    M = rng.uniform(0, 1, (300, 440))  # enough entries for two threads
    arguments = {"M": M, "eps": 0.01, "method": "sinkhorn", "max_iter": 4, "on_limit": "ignore"}
    one, two = (epsilot.solve(**arguments, n_threads=n) for n in (1, 2))
    assert trace(one) == trace(two)
    np.testing.assert_array_equal(one.plan, two.plan)


def test_warm_start_saves_iterations():
    cold = epsilot.solve(**HARD)
    warm = epsilot.solve(**HARD, potentials_init=cold.potentials)
    assert warm.n_iter < cold.n_iter


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


TARGETS = {
    "eps": {"eps": 1e-3},
    "rtol": {"rtol": 0.02},
    "reg": {"reg": 0.01, "tol": 1e-7},
    "paper": {"eps": 0.05, "stop": "paper"},
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_resume_reproduces_the_uninterrupted_run(target, share, tmp_path):
    arguments = dict(M=IMAGES.M, a=IMAGES.a, b=IMAGES.b, method="sinkhorn", **TARGETS[target])
    whole = epsilot.solve(**arguments)
    stop = {"max_iter": int(share * whole.n_iter), "on_limit": "ignore"}
    path = tmp_path / "state.npz"
    part = epsilot.solve(**arguments, **stop, checkpoint=path)
    assert part.n_iter < whole.n_iter
    resumed = epsilot.solve(**arguments, resume=path)
    assert trace(resumed) == trace(whole)
    assert resumed.work.operations == whole.work.operations
    np.testing.assert_array_equal(resumed.plan, whole.plan)


def test_resume_refuses_another_problem(tmp_path):
    path = tmp_path / "state.npz"
    epsilot.solve(**HARD, max_iter=5, on_limit="ignore", checkpoint=path)
    other = HARD | {"M": IMAGES.M + np.eye(len(IMAGES.M))}
    with pytest.raises(InvalidProblem, match=r"(?i)checkpoint|state\.npz"):
        epsilot.solve(**other, resume=path)


def emd(row):
    plan, log = ot.emd(row.a, row.b, row.M, log=True)
    return {"plan": plan, "potentials": (log["u"], log["v"])}


def sinkhorn(row, n_iter):
    reg = 0.05 * np.ptp(row.M)
    plan, log = ot.sinkhorn(
        row.a, row.b, row.M, reg, numItermax=n_iter, stopThr=1e-12, warn=False, log=True
    )
    return {"plan": plan, "potentials": (reg * np.log(log["u"]), reg * np.log(log["v"]))}


def ours(row):
    result = epsilot.solve(row.M, row.a, row.b, eps=row.eps)
    return {"plan": result.plan, "potentials": result.potentials}


# name: (output, is its plan feasible as it stands, certified gap as a share of the cost's range)
OUTPUTS = {
    "ot.emd": (emd, True, 1e-9),
    "ot.sinkhorn, 2 iterations": (lambda row: sinkhorn(row, 2), False, 1.0),
    "ot.sinkhorn, converged": (lambda row: sinkhorn(row, 10_000), True, 0.2),
    "epsilot": (ours, True, 0.05),
}
CERTIFIED = ["images 6x6", "rectangular", "negative costs", "no zero cost"]


@pytest.mark.parametrize("name", CERTIFIED)
@pytest.mark.parametrize("source", OUTPUTS)
@pytest.mark.parametrize("given", [["plan", "potentials"], ["plan"], ["potentials"]], ids=" ".join)
def test_certify_brackets_the_exact_value(given, source, name):
    row = ROWS[name]
    output = OUTPUTS[source][0](row)
    certificate = epsilot.certify(row.M, row.a, row.b, **{key: output[key] for key in given})
    assert certificate.lower <= exact_value(row) + row.round_off
    assert certificate.upper >= exact_value(row) - row.round_off
    assert certificate.gap == certificate.upper - certificate.lower


@pytest.mark.parametrize("name", CERTIFIED)
@pytest.mark.parametrize("source", OUTPUTS)
def test_certify_judges_an_output(source, name):
    row = ROWS[name]
    output, is_feasible, share = OUTPUTS[source]
    certificate = epsilot.certify(row.M, row.a, row.b, **output(row))
    assert certificate.is_feasible is is_feasible
    assert certificate.gap <= share * np.ptp(row.M)


def test_certify_needs_something_to_certify():
    with pytest.raises(InvalidProblem, match=r"plan.*potentials"):
        epsilot.certify(M34, A3, B4)


@pytest.mark.parametrize(
    ("parts", "pattern"),
    [
        ({"plan": np.full((4, 3), 1 / 12)}, r"plan.*\(4, 3\).*\(3, 4\)"),
        ({"plan": put(np.outer(A3, B4), np.nan)}, r"plan.*(nan|finite)"),
        ({"plan": put(np.outer(A3, B4), -0.1)}, r"plan.*negative"),
        ({"potentials": (np.zeros(4), np.zeros(3))}, r"potentials.*"),
        ({"potentials": (np.full(3, np.nan), np.zeros(4))}, r"potentials.*(nan|finite)"),
    ],
)
def test_certify_refuses_nonsense(parts, pattern):
    with pytest.raises(InvalidProblem, match=f"(?i){pattern}"):
        epsilot.certify(M34, A3, B4, **parts)


def test_exact_agrees_with_pot():
    result = epsilot.exact(IMAGES.M, IMAGES.a, IMAGES.b)
    assert result.value == pytest.approx(exact_value(IMAGES), abs=IMAGES.round_off)
    assert result.gap <= IMAGES.round_off


def test_round_plan_meets_the_marginals(rng):
    X = rng.uniform(0, 1, M34.shape)
    rounded = epsilot.round_plan(X / X.sum(), A3, B4)
    assert rounded.min() >= 0
    np.testing.assert_allclose(rounded.sum(axis=1), A3, rtol=0, atol=1e-15)
    np.testing.assert_allclose(rounded.sum(axis=0), B4, rtol=0, atol=1e-15)


def test_methods_is_a_table():
    for entry in epsilot.methods():
        for column in ["name", "family", "paper", "complexity", "exactness"]:
            assert getattr(entry, column), f"{entry.name} has no {column}"


def test_result_says_what_ran():
    result = epsilot.solve(**HARD, seed=3)
    assert result.method == "sinkhorn"
    assert result.seed == 3
    assert result.version
    assert result.seconds >= 0
    assert result.work.certificate > 0
    assert len(repr(result).splitlines()) == 3
    with pytest.raises(AttributeError):
        result.gap = 0.0
