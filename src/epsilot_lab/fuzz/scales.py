"""Solve points and grids of awkward shapes by the exact methods that go from coarse to fine.

Levels, phases and steps are made short, so that small problems go through all of what large ones
do; a run is also solved on other threads, or stopped and resumed, and must have the same bits.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import epsilot
from epsilot import parallel
from epsilot.solvers import arc_simplex, auction, grid_flow

from .problems import METRICS, Array, CaseOutcome, Drawn, Rng, ask, is_free_of_clock, pick
from .proofs import bit_defects
from .solves import Goal, drawn_defects

LIMITS: dict[str, Any] = {"max_seconds": 10.0, "on_limit": "ignore"}
EXACT = 1e-9
#: Points of a side and cells of a grid, at most: the truth is found on the whole matrix.
LARGEST = 260

#: shape -> points of a side
SHAPES: dict[str, Callable[[Rng, int, int], Array]] = {
    "uniform": lambda rng, n, d: rng.random((n, d)),
    "apart": lambda rng, n, d: rng.normal(size=(n, d)) + rng.choice([-3.0, 3.0]),
    "duplicated": lambda rng, n, d: rng.random((5, d))[rng.integers(0, 5, n)],
    "one point": lambda rng, n, d: np.full((n, d), rng.random()),
    "clustered": lambda rng, n, d: (
        rng.integers(0, 3, (n, 1)) + 10 ** rng.uniform(-12, -2) * rng.normal(size=(n, d))
    ),
    "collinear": lambda rng, n, d: rng.random((n, 1)) * np.arange(1.0, d + 1),
    "whole": lambda rng, n, d: rng.integers(0, 5, (n, d)).astype(float),
    "heavy tails": lambda rng, n, d: rng.standard_cauchy((n, d)),
    "sphere": lambda rng, n, d: (lambda x: x / np.sqrt((x**2).sum(axis=1, keepdims=True) + 1e-300))(
        rng.normal(size=(n, d))
    ),
}
#: weights -> masses of a side, of any total
WEIGHTS: dict[str, Callable[[Rng, int], Array]] = {
    "even": lambda rng, n: np.ones(n),
    "random": lambda rng, n: rng.dirichlet(np.ones(n)),
    "twelve decades": lambda rng, n: 10 ** rng.uniform(-12, 0, n),
    "zeros": lambda rng, n: rng.random(n) * (rng.random(n) < 0.4),
    "whole": lambda rng, n: rng.integers(0, 4, n).astype(float),
    "heavy tails": lambda rng, n: rng.random(n) ** 8,
}


def scales(rng: Rng) -> CaseOutcome:
    """Draw a problem and short steps; solve it, perhaps in two parts or twice, and check."""
    problem = draw_cloud(rng) if rng.random() < 0.7 else draw_grid(rng)
    method = draw_method(rng, problem)
    goal = draw_goal(rng, problem)
    keywords = {**goal, **LIMITS, "method": method}
    with short_steps(rng) as words:
        outcome = CaseOutcome(problem.kind, method, label=f"{problem.label}; {goal}; {words}")
        answer = ask(epsilot.solve, problem.M, problem.a, problem.b, **keywords)
        result = outcome.settled(answer, is_due=True)
        if result is None:
            return outcome
        outcome.blame(*drawn_defects(result, problem, goal))
        if not result.converged and result.status.name != "MAX_SECONDS":
            outcome.blame(f"ended as {result.status.name} without a limit, gap {result.gap!r}")
        if is_free_of_clock(LIMITS["max_seconds"], answer):
            outcome.blame(*again(rng, problem, goal, keywords, result))
    return outcome


def again(
    rng: Rng, problem: Drawn, goal: Goal, keywords: dict[str, Any], whole: Any
) -> Iterator[str]:
    """Solve on other threads, or in two parts, and yield what differs."""
    way = pick(rng, {"once": 3, "threads": 2, "resumed": 4})
    if way == "threads":
        threads = {"n_threads": int(rng.integers(1, 5))}
        other = ask(epsilot.solve, problem.M, problem.a, problem.b, **keywords, **threads)
        yield from other.defects
        if other.value is not None and is_free_of_clock(LIMITS["max_seconds"], other):
            yield from bit_defects(whole, other.value, "a solve on other threads")
    elif way == "resumed" and whole.n_iter > 1:
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "run.npz")
            stop = {"max_iter": int(rng.integers(1, whole.n_iter)), "checkpoint": path}
            first = ask(epsilot.solve, problem.M, problem.a, problem.b, **keywords, **stop)
            second = ask(epsilot.solve, problem.M, problem.a, problem.b, **keywords, resume=path)
        for answer in (first, second):
            yield from answer.defects
        if first.value is not None:
            yield from drawn_defects(first.value, problem, goal, stop["max_iter"])
        if second.value is not None and is_free_of_clock(LIMITS["max_seconds"], first, second):
            yield from bit_defects(whole, second.value, "the resumed run")


@contextmanager
def short_steps(rng: Rng) -> Iterator[str]:
    """Make levels small and steps short while a case lasts; yield what they are."""
    drawn = [
        (auction, "max_coarsest_cells", int(2 ** rng.integers(2, 10))),
        (auction, "max_bids_per_step", int(10 ** rng.uniform(1, 6))),
        (arc_simplex, "pivots_per_step", int(10 ** rng.uniform(0.5, 3.6))),
        (grid_flow, "max_coarsest_side", int(2 ** rng.integers(1, 5))),
        (grid_flow, "max_cells_per_step", int(10 ** rng.uniform(2, 6.6))),
        (parallel, "min_entries_per_thread", int(10 ** rng.uniform(0, 5))),
    ]
    with ExitStack() as stack:
        for module, name, value in drawn:
            tuning = replace(module.TUNING, **{name: value})
            stack.enter_context(mock.patch.object(module, "TUNING", tuning))
        names = [f"{module.__name__.split('.')[-1]}.{name}={x}" for module, name, x in drawn]
        yield ", ".join(names)


def draw_method(rng: Rng, problem: Drawn) -> str:
    """Draw one of the exact methods that serve a problem, or auto."""
    methods = {"auction": 3.0, "auto": 1.0}
    if getattr(problem.M, "lattice", None) is not None:
        methods = {"grid_flow": 4.0, "auction": 1.0, "auto": 1.0}
    return pick(rng, methods)


def draw_goal(rng: Rng, problem: Drawn) -> Goal:
    """Draw a target: mostly exact."""
    kind = pick(rng, {"exact": 5, "rtol": 3, "eps": 1})
    if kind == "exact":
        return {"rtol": EXACT}
    if kind == "rtol":
        return {"rtol": float(10 ** rng.uniform(-8, -0.5))}
    unit = float(problem.largest) or 1.0
    return {"eps": float(10 ** rng.uniform(-9, -1) * unit * float(problem.mass))}


def draw_masses(rng: Rng, n: int, m: int) -> tuple[Array | None, Array | None, str]:
    """Draw weights of total one; None stands for even ones."""
    names = [pick(rng, dict.fromkeys(WEIGHTS, 1.0)) for _ in range(2)]
    sides: list[Array | None] = []
    for name, size in zip(names, (n, m), strict=True):
        w = WEIGHTS[name](rng, size)
        if not w.sum() > 0:
            w[rng.integers(size)] = 1.0
        sides.append(None if name == "even" and rng.random() < 0.5 else w / w.sum())
    return sides[0], sides[1], " to ".join(names)


def _size(rng: Rng) -> int:
    return int(rng.choice([1, 2, 7, 30, 90, 200, LARGEST]) * rng.uniform(0.5, 1) + 0.5)


def draw_cloud(rng: Rng) -> Drawn:
    """Draw two clouds, each of its own shape or both of one, near or far from the origin."""
    n = _size(rng)
    m = n if rng.random() < 0.5 else _size(rng)
    d = int(rng.choice([1, 2, 2, 2, 3, 3, 5, 10, 20]))
    metric = pick(rng, {"sqeuclidean": 4, "euclidean": 3, "cityblock": 3, "cosine": 1})
    one = pick(rng, dict.fromkeys(SHAPES, 1.0))
    other = one if rng.random() < 0.6 else pick(rng, dict.fromkeys(SHAPES, 1.0))
    X, Y = SHAPES[one](rng, n, d), SHAPES[other](rng, m, d)
    away = 0.0 if rng.random() < 0.7 else float(10 ** rng.uniform(0, 6))
    X, Y = X + away, Y + away
    if metric == "cosine":
        X, Y = X + 2.0, Y + 2.0
    a, b, masses = draw_masses(rng, n, m)
    M = epsilot.PointCloud(X, Y, metric)
    label = f"{metric} {n} x {m} in {d}-d, {one} to {other}, {away:.0e} away, {masses}"
    return Drawn(M, a, b, M.block(0, n), "lazy cloud", label, is_stored=False)


def draw_grid(rng: Rng) -> Drawn:
    """Draw masses on grids of one to three axes, of one shape or two."""
    d = int(rng.integers(1, 4))
    most = {1: LARGEST, 2: 16, 3: 6}[d]
    shapes = [tuple(int(k) for k in rng.integers(1, most + 1, d)) for _ in range(2)]
    if rng.random() < 0.6:
        shapes[1] = shapes[0]
    metric = str(rng.choice(["cityblock", "cityblock", "sqeuclidean"]))
    steps = {"even": [1.0] * d, "multiples": rng.integers(1, 4, d), "any": rng.uniform(0.1, 9, d)}
    spacing = [float(h) for h in steps[pick(rng, {"even": 2, "multiples": 1, "any": 1})]]
    centres = [np.indices(s).reshape(d, -1).T * np.longdouble(1) * spacing for s in shapes]
    cost = np.asarray(METRICS[metric](*centres), dtype=np.float64)
    a, b, masses = draw_masses(rng, *cost.shape)
    label = f"{metric} grid {shapes[0]} to {shapes[1]}, spacing {spacing}, {masses}"
    M = epsilot.Grid(*shapes, metric, spacing)
    return Drawn(M, a, b, cost, f"{metric} grid", label, is_stored=False)
