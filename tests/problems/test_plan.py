"""Plans and their cores: one algebra whatever the core, files, and refusals in one sentence."""

import numpy as np
import pytest

import epsilot
from epsilot import InvalidProblem
from epsilot.engine.storage import pack_plan
from epsilot.files.arrays import SavedArrays
from epsilot.geometry import Dense
from epsilot.problems.plan import CORES as KINDS
from epsilot.problems.plan import Arcs, Correction, Explicit, Gibbs, Plan, add_arcs
from sample_problems import M34

PLAN = epsilot.solve(M34).plan_operator
GEOMETRY = Dense(M34)
RNG = np.random.default_rng(7)
X34 = RNG.random((3, 4)) / 12
F, G = RNG.normal(size=3), RNG.normal(size=4)
AROUND = Correction(RNG.random(3), RNG.random(4), RNG.random(3), RNG.random(4))
CORES = {
    "gibbs": Gibbs(GEOMETRY, F, G, 0.5),
    "explicit": Explicit(X34),
    "arcs": Arcs.of(np.where(X34 > 0.04, X34, 0.0)),
    "no arcs": Arcs.none((3, 4)),
    "more arcs": add_arcs(Gibbs(GEOMETRY, F, G, 0.5), Arcs.of(np.where(X34 > 0.04, X34, 0.0))),
    "plan": Plan(Explicit(X34), AROUND, 0.7),
    "plan of a plan": Plan(Plan(Gibbs(GEOMETRY, F, G, 0.5), AROUND, 0.7), AROUND),
}
cores = pytest.mark.parametrize("name", CORES)
#: A larger problem that holds the small one at some of its rows and columns.
LARGE, ROWS, COLS = Dense(RNG.random((5, 6))), np.array([0, 2, 3]), np.array([1, 2, 4, 5])
LARGE.C.setflags(write=True)
LARGE.C[np.ix_(ROWS, COLS)] = M34
LARGE.C.setflags(write=False)


def dense(core):
    return core.block(0, core.shape[0])


@cores
def test_products_and_prices_are_those_of_the_array(name, rng):
    core, v, u, d = CORES[name], rng.random(4), rng.random(3), rng.random(4)
    K = dense(core)
    found = (core.rows(v), core.cols(u), *core.marginals(), *core.price(GEOMETRY, v, d))
    wanted = (K @ v, K.T @ u, K.sum(axis=1), K.sum(axis=0), K @ v, (M34 * K) @ v, M34 @ d)
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-14, atol=1e-15)
    assert core.is_finite()
    assert core.is_nonnegative()


@cores
@pytest.mark.parametrize("raised", [0.0, 0.25])
def test_a_cropped_core_is_its_first_part(name, raised):
    core, part = CORES[name], Dense(M34[:2, :3] - raised)
    np.testing.assert_allclose(dense(core.cropped(part, raised)), dense(core)[:2, :3], rtol=1e-13)


@cores
def test_an_embedded_core_is_zero_elsewhere(name):
    core = CORES[name]
    wanted = np.zeros((5, 6))
    wanted[np.ix_(ROWS, COLS)] = dense(core)
    np.testing.assert_array_equal(dense(core.embedded(LARGE, ROWS, COLS)), wanted)


@cores
def test_a_core_comes_back_from_its_arrays(name):
    core = CORES[name]
    again = type(core).from_arrays(SavedArrays(core.arrays()), GEOMETRY)
    np.testing.assert_array_equal(dense(again), dense(core))
    outer = Plan(core)
    np.testing.assert_array_equal(
        dense(Plan.from_arrays(SavedArrays(outer.arrays()), GEOMETRY)), dense(outer)
    )


def test_an_arc_that_a_file_names_twice_carries_both_flows():
    arrays = {"i": np.array([1, 1, 0]), "j": np.array([2, 2, 0]), "flow": np.array([0.5, 0.25, 1])}
    arcs = Arcs.from_arrays(SavedArrays(arrays), GEOMETRY)
    assert dense(arcs)[1, 2] == 0.75
    np.testing.assert_array_equal(dense(arcs).sum(axis=1), arcs.marginals()[0])


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("gibbs", "f g eta"),
        ("explicit", "X"),
        ("arcs", "i j flow"),
        ("plan", "core.X core.mass core.s core.t core.e core.d"),
    ],
)
def test_names_in_files_are_those_of_the_format(name, names):
    assert set(pack_plan(Plan(CORES[name]))) == {f"plan.{x}" for x in f"s t e d {names}".split()}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_known_by_its_mark(kind):
    (core,) = (core for name, core in CORES.items() if type(core) is kind and name != "no arcs")
    assert kind.file_key in core.arrays()
    assert not any(
        kind.file_key in other.arrays()
        for other in CORES.values()
        if type(other) in KINDS and type(other) is not kind
    )


def test_a_detached_plan_does_not_see_later_changes():
    M = M34.copy()
    plan = Plan(Plan(Gibbs(Dense(M), F, G, 0.5)))
    kept, before = plan.detached(), dense(plan)
    M += 1
    assert not np.array_equal(dense(plan), before)
    np.testing.assert_array_equal(dense(kept), before)


@pytest.mark.parametrize(
    ("core", "is_finite", "is_nonnegative"),
    [
        (Gibbs(GEOMETRY, F, np.array([0, np.inf, 0, 0]), 0.5), False, True),
        (Gibbs(GEOMETRY, np.full(3, np.nan), G, 0.5), False, True),
        (Gibbs(GEOMETRY, np.full(3, -np.inf), G, 0.5), True, True),
        (Explicit(X34 - 0.04), True, False),
        (Arcs.of(X34 - 0.04), True, False),
    ],
)
def test_overflow_and_signs_are_seen_through_scalings(core, is_finite, is_nonnegative):
    for outer in (core, Plan(core), Plan(Plan(core))):
        assert (outer.is_finite(), outer.is_nonnegative()) == (is_finite, is_nonnegative)


ARRAYS = {name: Plan(CORES[name]).arrays() for name in ("gibbs", "explicit", "arcs")}
WRONG = {
    "no core": ("gibbs", {"eta": None}, "none of the arrays X, flow, eta, more.flow"),
    "half a core": ("gibbs", {"f": None}, "no array f"),
    "no scaling": ("gibbs", {"s": None}, "no array s"),
    "a negative η": ("gibbs", {"eta": np.array(-1.0)}, "η = -1"),
    "NaN": ("gibbs", {"g": np.full(4, np.nan)}, "g holds NaN"),
    "another shape": ("explicit", {"X": X34.T}, r"X is float64 of shape \(4, 3\)"),
    "another type": ("explicit", {"X": X34.astype(np.float32)}, "X is float32"),
    "negative masses": ("explicit", {"X": -X34}, "X holds negative"),
    "an infinite scaling": ("arcs", {"t": np.full(4, np.inf)}, "t holds negative or infinite"),
    "an arc to nowhere": ("arcs", {"j": np.full(6, 4)}, "j points beyond its 4 places"),
    "plans without end": (
        "arcs",
        {"core." * k + "s": np.ones(3) for k in range(20)},
        "within 8 others",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_arrays_of_a_file_are_not_believed(name):
    kind, changes, words = WRONG[name]
    arrays = {k: x for k, x in (ARRAYS[kind] | changes).items() if x is not None}
    with pytest.raises(InvalidProblem, match=words):
        Plan.from_arrays(SavedArrays(arrays), GEOMETRY)


REFUSED = {
    "a negative row": (lambda: PLAN.row(-1), "the row is -1"),
    "a row beyond": (lambda: PLAN.row(3), "the row is 3.*0 to 2"),
    "a row in words": (lambda: PLAN.row("x"), "the row is 'x'"),
    "a word": (lambda: PLAN @ "x", "real numbers"),
    "a long vector": (lambda: PLAN @ np.ones(3), r"\(3,\).*4 entries"),
    "a short vector, transposed": (lambda: PLAN.T @ np.ones(4), r"\(4,\).*3 entries"),
    "a cube": (lambda: PLAN @ np.ones((4, 2, 2)), r"\(4, 2, 2\)"),
    "a threshold in words": (lambda: PLAN.tosparse("x"), "threshold is 'x'"),
    "no limit": (lambda: PLAN.toarray(limit=None), "limit is None"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    call, pattern = REFUSED[name]
    with pytest.raises(InvalidProblem, match=pattern):
        call()


def test_products():
    X = PLAN.toarray()
    V, U = np.random.default_rng(0).random((4, 2)), np.random.default_rng(1).random((3, 2))
    np.testing.assert_allclose(PLAN @ V, X @ V, atol=1e-16)
    np.testing.assert_allclose(PLAN.T @ U, X.T @ U, atol=1e-16)


@cores
@pytest.mark.parametrize("around", [None, AROUND], ids=["alone", "rounded"])
@pytest.mark.parametrize("mass", [1.0, 0.3])
def test_the_entropy_is_that_of_the_array(name, around, mass):
    plan = Plan(CORES[name], around, mass)
    X = plan.toarray()
    expected = -(X * np.log(np.where(X > 0, X, 1.0))).sum()
    assert plan.entropy() == pytest.approx(expected, rel=1e-13, abs=1e-15)
