"""Calls with wrong arguments: each is refused in one sentence, or its answer is sound."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import epsilot
from epsilot import finite_sum

from .grammar import COST, M_, POINTS, N, wrong_value
from .outcome import Answer, Outcome, ask
from .problems import Rng

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


def abuse(rng: Rng) -> Outcome:
    """Draw a function and spoil one or two of its arguments, or ask for too much."""
    if rng.random() < 0.005:
        what = str(rng.choice(list(GREEDY)))
        answer = ask(GREEDY[what])
        return _judged(Outcome("greedy", label=what).blame(*answer.defects), answer)
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
    outcome = Outcome(name, label=f"{name}({shown}, ...)")
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


def _judged(outcome: Outcome, answer: Answer) -> Outcome:
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
