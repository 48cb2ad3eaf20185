"""Call the library with wrong arguments: each call is refused in one sentence, or is sound."""

from __future__ import annotations

import decimal
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

import epsilot
from epsilot import finite_sum

from .problems import CallRecord, CaseOutcome, Rng, ask

# -- wrong values by the argument they replace -------------------------------------------------

N, M_ = 4, 5  # rows and columns of every problem that is abused
COST = np.random.default_rng(0).random((N, M_))
POINTS = np.random.default_rng(1).random((N, 2)), np.random.default_rng(2).random((M_, 2))


class Odd:
    """An object that is nothing a function could want."""

    def __repr__(self) -> str:
        return "<odd>"


def put(x: Any, value: Any, dtype: Any = float) -> Any:
    """Return an array with its first entry replaced."""
    out = np.array(x, dtype=dtype)
    out.flat[0] = value
    return out


def masked(x: Any) -> Any:
    """Return an array whose first entry is masked."""
    return np.ma.masked_array(x, mask=put(np.zeros(np.shape(x)), 1, bool))


ANYTHING: tuple[Any, ...] = (
    Odd(), "x", "", b"x", {}, {1: 2}, {3}, [], (), lambda: None, object, 1j, True, -1, 0, 5, 2.5,
    float("nan"), float("inf"), -float("inf"), 10**400, -(10**30), 1e-320, 1e308, None,
    decimal.Decimal("0.5"), np.float32(0.5), np.array([1.0, 2.0]), np.array(["a"]),
    np.datetime64("2020-01-01"), "5", "nan", [1], [[1]], range(3), slice(2), ...,
)  # fmt: skip


def spoilt_array(x: Any) -> tuple[Any, ...]:
    """Return arrays of the wrong shape, type or content."""
    x = np.asarray(x, dtype=float)
    return (
        put(x, np.nan),
        put(x, np.inf),
        put(x, -np.inf),
        put(x, 1j, complex),
        put(x, None, object),
        put(x, "x", object),
        masked(x),
        x[..., None],
        x[:0],
        x[:-1],
        np.concatenate([x, x]),
        x.T,
        x.ravel(),
        x.astype(str),
        x.astype("datetime64[s]"),
        x.astype(complex),
        sparse.csr_array(x.reshape(len(x), -1)),
        [*x.tolist()[:-1], [1.0]],
        -x,
        0 * x,
        1e308 * put(x, 9.0),
        1e-320 * x,
        np.array(x.tolist(), dtype=object),
        memoryview(np.ascontiguousarray(x)),
        np.rec.fromarrays([x.ravel()], names="v"),
        [None] * len(x),
        put(x, -1e308) * 1.5,
    )


def wrong_metrics(x: Any) -> tuple[Any, ...]:
    """Return metrics that do not return one finite cost for each target."""
    return (
        "euclid",
        "",
        5,
        None,
        Odd(),
        [],
        lambda x, Y: 0.0,
        lambda x, Y: [1.0],
        lambda x, Y: np.ones(len(Y) + 1),
        lambda x, Y: np.ones((len(Y), 2)),
        lambda x, Y: None,
        lambda x, Y: np.full(len(Y), np.nan),
        lambda x, Y: ["a"] * len(Y),
        lambda x, Y: np.full(len(Y), 1j),
        lambda x, Y: iter(Y),
        lambda x, Y: masked(Y[:, 0]),
    )


def wrong_pairs(x: Any) -> tuple[Any, ...]:
    """Return potentials that are not two finite vectors."""
    f, g = np.zeros(N), np.zeros(M_)
    return (
        (f,),
        (f, g, g),
        (g, f),
        (f[:, None], g[:, None]),
        (f, None),
        (1.0, 2.0),
        "fg",
        f,
        (put(f, np.nan), g),
        (put(f, 1e308), put(g, -1e308)),
        (1e30 * (f + 1), g),
        (f, g + 1j),
        ("a", "b"),
        [f.tolist(), g.tolist()],
        {0: f, 1: g},
        (f, g[:-1]),
        (masked(f), g),
        iter((f, g)),
    )


#: Meaning of an argument -> wrong values, given a right one.
WRONG: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "array": lambda x: (*spoilt_array(x), *ANYTHING),
    "number": lambda x: ANYTHING,
    "integer": lambda x: (*ANYTHING, 10**12, np.int64(3), np.uint8(200), 1e3),
    "choice": lambda x: (*ANYTHING, str(x).upper(), f"{x} ", f"{x}s"),
    "metric": wrong_metrics,
    "pair": lambda x: (*wrong_pairs(x), *ANYTHING),
    "path": lambda x: ("none/x.npz", ".", "\0", "x" * 300, b"x.npz", 5, Odd(), [], True, "", None),
    "callable": lambda x: (5, "x", Odd(), [], {}, True),
    "flag": lambda x: ANYTHING,
    "shape": lambda x: (*ANYTHING, (0,), (2, 3, 4, 5), (-1, 2), (1.5, 2), ("a",), (10**9, 10**9)),
    "anything": lambda x: ANYTHING,
}


def wrong_value(rng: Rng, kind: str, right: Any) -> Any:
    """Draw a wrong value for an argument."""
    values = WRONG[kind](right)
    return values[rng.integers(len(values))]


# -- calls -------------------------------------------------------------------------------------

LIMITS: dict[str, Any] = {"max_iter": 30, "max_seconds": 1.0, "on_limit": "ignore"}
#: Arguments that `solve` and its kin share: what they stand for, and a right value.
SHARED: dict[str, tuple[str, Any]] = {
    "eps": ("number", 0.1), "rtol": ("number", 0.1), "reg": ("number", 0.5),
    "tol": ("number", 0.01), "method": ("choice", "sinkhorn"), "stop": ("choice", "paper"),
    "max_iter": ("integer", 30), "max_seconds": ("number", 1.0), "potentials_init": ("pair", None),
    "seed": ("integer", 0), "n_threads": ("integer", 1), "callback": ("callable", None),
    "progress": ("flag", False), "on_limit": ("choice", "raise"), "normalize": ("flag", True),
    "checkpoint": ("path", None), "resume": ("path", None),
}  # fmt: skip
OPTIONS: dict[str, tuple[str, Any]] = {
    "batch_size": ("integer", 2), "norm": ("choice", "l2"), "inner_loops": ("integer", 3),
    "mirror": ("choice", "euclidean"), "average": ("choice", "sampled"), "max_pivots":
    ("integer", 10), "bach_size": ("integer", 2), "": ("integer", 1), "ε": ("anything", 1),
}  # fmt: skip


@dataclass(frozen=True)
class Target:
    """A function to abuse: its arguments, what they stand for, and right values."""

    call: Callable[..., Any]
    arguments: dict[str, tuple[str, Any]]  # always given
    optional: dict[str, tuple[str, Any]]  # given when abused
    fixed: dict[str, Any]
    also: tuple[type[Exception], ...] = ()  # what it may raise besides the documented


#: Estimators check their data as scikit-learn does, and the general method takes any object.
PLAIN = (TypeError, ValueError)


def weights(size: int) -> tuple[str, Any]:
    """Return an argument for weights."""
    return "array", np.full(size, 1 / size)


def adapted(**keywords: Any) -> Any:
    """Fit a domain adapter and move its points."""
    data = {name: keywords.pop(name) for name in ("Xs", "ys", "Xt", "yt")}
    return epsilot.DomainAdapter(**keywords).fit(**data).transform(POINTS[0])


def recoloured(**keywords: Any) -> Any:
    """Fit a colour transfer and recolour its image."""
    source, reference = keywords.pop("source"), keywords.pop("reference")
    return epsilot.ColorTransfer(**keywords).fit(source, reference).transform(source)


DUAL = finite_sum.SeparableQuadratic(np.ones((1, 3)), np.ones(1))
IMAGE = np.random.default_rng(3).random((3, 4, 3))
ENDS = {name: SHARED[name] for name in ("eps", "rtol", "reg", "tol", "method", "seed")}
TARGETS: dict[str, Target] = {
    "solve": Target(
        epsilot.solve, {"M": ("array", COST), "a": weights(N), "b": weights(M_)},
        {**SHARED, **OPTIONS}, LIMITS,
    ),
    "exact": Target(
        epsilot.exact, {"M": ("array", COST), "a": weights(N), "b": weights(M_)}, {}, {}
    ),
    "solve_sample": Target(
        epsilot.solve_sample, {"X_a": ("array", POINTS[0]), "X_b": ("array", POINTS[1])},
        {"metric": ("metric", None), "lazy": ("flag", True), "multiscale": ("flag", True),
         "a": weights(N), "b": weights(M_), **SHARED}, LIMITS,
    ),
    "solve_grid": Target(
        epsilot.solve_grid,
        {"A": ("array", np.full((2, 3), 1 / 6)), "B": ("array", np.full((3, 2), 1 / 6))},
        {"metric": ("choice", "cityblock"), "spacing": ("shape", 1.0), **SHARED}, LIMITS,
    ),
    "certify": Target(
        epsilot.certify, {"M": ("array", COST), "plan": ("array", np.full((N, M_), 1 / (N * M_)))},
        {"a": weights(N), "b": weights(M_), "potentials": ("pair", None)}, {},
    ),
    "round_plan": Target(
        epsilot.round_plan,
        {"X": ("array", np.ones((N, M_))), "a": weights(N), "b": weights(M_)}, {}, {},
    ),
    "Dense": Target(epsilot.Dense, {"M": ("array", COST)}, {}, {}),
    "PointCloud": Target(
        epsilot.PointCloud, {"X_a": ("array", POINTS[0]), "X_b": ("array", POINTS[1])},
        {"metric": ("metric", None), "single": ("flag", True)}, {},
    ),
    "Grid": Target(
        epsilot.Grid, {"shape_a": ("shape", (2, 3)), "shape_b": ("shape", (2, 2))},
        {"metric": ("choice", "cityblock"), "spacing": ("shape", 1.0)}, {},
    ),
    "finite_sum.minimize": Target(
        finite_sum.minimize, {},
        {"batch_size": ("integer", 1), "norm": ("choice", "linf"), "inner_loops": ("integer", 2),
         "tolerance": ("number", 0.1), "average": ("choice", "reservoir"),
         "start": ("array", np.zeros(1)), "seed": ("integer", 0)},
        {"dual": DUAL, "n_outer": 3}, PLAIN,
    ),
    "DomainAdapter": Target(
        adapted, {"Xs": ("array", POINTS[0]), "ys": ("anything", None), "Xt": ("array", POINTS[1]),
                  "yt": ("anything", None)},
        {**ENDS, "metric": ("metric", None), "class_reg": ("number", 0.1),
         "new_points": ("choice", "source"), "n_neighbors": ("integer", 3),
         "options": ("anything", None)}, {"max_iter": 30}, PLAIN,
    ),
    "ColorTransfer": Target(
        recoloured, {"source": ("array", IMAGE), "reference": ("array", IMAGE[:2])},
        {**ENDS, "n_colors": ("integer", 5), "palette": ("choice", "sample"),
         "n_neighbors": ("integer", 3), "smoothing": ("number", 0.0),
         "options": ("anything", None)}, {"max_iter": 30}, PLAIN,
    ),
}  # fmt: skip


MANY, CELLS = 200_000, 1000
#: Calls that ask for more memory or time than there is: one sentence with the bytes needed.
GREEDY: dict[str, Callable[[], Any]] = {
    "a stored cloud of a million points": lambda: epsilot.solve_sample(
        np.arange(10**6), np.arange(10**6), lazy=False, **LIMITS
    ),
    "a metric in Python between many points": lambda: epsilot.solve_sample(
        np.arange(MANY), np.arange(MANY), metric=lambda x, Y: np.abs(Y - x)[:, 0], **LIMITS
    ),
    "rows of a megapixel grid": lambda: epsilot.solve_grid(
        np.ones((CELLS, CELLS)), np.ones((CELLS, CELLS)), method="dijkstra_dfs", **LIMITS
    ),
    "a batch of a thousand million": lambda: epsilot.solve(
        COST, method="pdasmd", batch_size=10**9, **LIMITS
    ),
    "a million million inner loops": lambda: epsilot.solve(
        COST, method="pdasmd", inner_loops=10**12, **LIMITS
    ),
    "the dense plan of a large grid": lambda: (
        epsilot.solve_grid(
            np.ones((160, 160)), np.ones((160, 160)), **{**LIMITS, "max_iter": 1}
        ).plan
    ),
}


def abuse(rng: Rng) -> CaseOutcome:
    """Draw a function and spoil one or two of its arguments, or ask for too much."""
    if rng.random() < 0.005:
        what = str(rng.choice(list(GREEDY)))
        answer = ask(GREEDY[what])
        return _judged(CaseOutcome("greedy", label=what).blame(*answer.defects), answer)
    name = str(rng.choice(list(TARGETS)))
    target = TARGETS[name]
    keywords = {key: right for key, (_, right) in target.arguments.items()} | target.fixed
    known = {**target.arguments, **target.optional}
    spoilt = rng.choice(list(known), size=min(len(known), int(rng.integers(1, 3))), replace=False)
    for key in map(str, spoilt):
        kind, right = known[key]
        keywords[key] = wrong_value(rng, kind, right)
    if rng.random() < 0.3 and "method" in known:
        keywords.setdefault("method", str(rng.choice(["pdasmd", "exact", "auto", "packing_lp"])))
    shown = ", ".join(f"{key}={keywords[key]!r:.80}" for key in map(str, spoilt))
    outcome = CaseOutcome(name, label=f"{name}({shown}, ...)")
    with tempfile.TemporaryDirectory() as folder:
        before = os.getcwd()
        os.chdir(folder)
        try:
            answer = ask(target.call, **keywords)
        finally:
            os.chdir(before)
        left = [entry for entry in os.listdir(folder) if entry.endswith(".tmp")]
    if not isinstance(answer.error, target.also):
        outcome.blame(*answer.defects)
    outcome.blame(*(["a draft was left behind"] if left else []))
    return _judged(outcome, answer)


def _judged(outcome: CaseOutcome, answer: CallRecord) -> CaseOutcome:
    """Accept a refusal, or an answer whose numbers are sound."""
    value = answer.value
    outcome.ending = "refused" if answer.is_refused else "raised" if answer.error else "answered"
    if isinstance(value, epsilot.Result):
        numbers = (value.value, value.value_linear, value.lower_bound, value.gap)
        if not np.isfinite(numbers).all():
            outcome.blame(f"not finite: value {value.value!r}, lower bound {value.lower_bound!r}")
        elif not value.gap >= -1e-12 * max(1.0, abs(value.value)):
            outcome.blame(f"the gap is {value.gap!r}")
        if value.converged != (value.gap <= value.target):
            outcome.blame(f"converged is {value.converged}, gap {value.gap!r}")
    elif isinstance(value, epsilot.Certificate) and not value.lower <= value.upper + 1e-9:
        outcome.blame(f"the bracket is [{value.lower!r}, {value.upper!r}]")
    return outcome
