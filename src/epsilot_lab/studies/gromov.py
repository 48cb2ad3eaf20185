"""Compare Gromov-Wasserstein with POT and OTT-JAX: how far their local optima are from the bound.

    python -m epsilot_lab gromov docs/results/gromov              # what is missing, then the page
    python -m epsilot_lab gromov OUT --parts clouds --sizes 50    # one table at one size
    python -m epsilot_lab gromov OUT --prototype FOLDER           # also beside FOLDER/gw.py

Clouds: to 1 %, beside POT's conditional gradient from its default start and from ten random
permutations, and OTT-JAX's entropic method where it is installed. Random: many small instances of
unusual shape beside POT's best of ten; none may be below our bound. Brute: optima of up to seven
points by enumeration. Growth: a noisy copy of 5,000 points over one of 1,000, in turns. Matrices:
the bounds of ``gromov_bounds`` for distances that are no squared ones. Processor seconds, kernels
compiled before.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from itertools import combinations, permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import ot

import epsilot

from ..document import (
    Block,
    Command,
    Heading,
    Paragraph,
    Table,
    environment_table,
    to_markdown,
    write_text,
)
from ..environment import machine, versions
from ..measuring import timed
from ..store import Line, Store

KEY = ("part", "case", "n", "seed")
SIZES = (50, 100, 200, 1000)
#: Points up to which POT and OTT-JAX run.
MAX_PEER_POINTS, MAX_OTT_POINTS = 200, 50
RTOL, STARTS = 0.01, 10
#: Limit on transport problems for clouds in space: a busy machine changes no result.
SPACE_PROBLEMS = 200_000
#: Random instances per line, and lines.
BLOCK, BLOCKS = 100, 20
#: Cases of the plane that are also solved at a larger size.
LARGE = {"copy": 5000}
#: Instances by enumeration per line, and lines.
BRUTE_BLOCK, BRUTE_BLOCKS = 50, 4
PARTS = ("clouds", "space", "growth", "random", "brute", "matrices", "prototype")
#: Sizes of the clouds whose times are compared, and pairs of them.
GROWTH_SIZES, GROWTH_SEEDS = (1000, 5000), 6
#: Points up to which a prototype has three turns.
MAX_TURNED = 100
#: Sizes that are compared with a prototype; of the cases with larger sizes only some.
PROTOTYPE_SIZES, PROTOTYPE_LARGE = (100, 1000), ("copy", "uniform", "circles")


class GromovTask(NamedTuple):
    """One instance, or one block of random ones."""

    part: str
    case: str
    n: int
    seed: int

    @property
    def identity(self) -> Line:
        """The fields that distinguish its line from all others."""
        return dict(zip(KEY, self, strict=True))


# -- instances -------------------------------------------------------------------------------------


def orthogonal(rng: Any, d: int) -> Any:
    """Return a random orthogonal matrix."""
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


def copy(rng: Any, n: int) -> Any:
    """Return two clusters and their permuted, turned copy with 5 % noise."""
    X = rng.normal(size=(n, 2)) * [1, 0.5]
    X[: n // 3] += [3, 1]
    return X, (X + 0.05 * X.std() * rng.normal(size=X.shape))[rng.permutation(n)] @ orthogonal(
        rng, 2
    )


def uniform(rng: Any, n: int) -> Any:
    """Return two independent uniform squares."""
    return rng.random((n, 2)), rng.random((n, 2))


def shapes(rng: Any, n: int) -> Any:
    """Return a banana and three clusters."""
    t = rng.random(n) * np.pi
    X = np.column_stack([2 * np.cos(t), np.sin(t)]) + 0.1 * rng.normal(size=(n, 2))
    centres = np.array([[0, 0], [3, 0], [1, 2]])
    return X, centres[rng.integers(0, 3, n)] + 0.3 * rng.normal(size=(n, 2))


def square(rng: Any, n: int) -> Any:
    """Return points on the outline of a square, and its turned copy with 2 % noise."""
    t = 4 * np.arange(n) / n
    side, s = t.astype(int), t % 1
    X = np.stack(
        [
            np.choose(side, [s, 1 + 0 * s, 1 - s, 0 * s]),
            np.choose(side, [0 * s, s, 1 + 0 * s, 1 - s]),
        ],
        1,
    )
    return X, (X + 0.02 * rng.normal(size=X.shape))[rng.permutation(n)] @ orthogonal(rng, 2)


def circles(rng: Any, n: int) -> Any:
    """Return a regular polygon and a larger one: 2n exact optima."""
    t = 2 * np.pi * np.arange(n) / n
    X = np.column_stack([np.cos(t), np.sin(t)])
    return X, 1.3 * X[rng.permutation(n)]


def solid_copy(rng: Any, n: int) -> Any:
    """Return a Gaussian in space and its permuted, turned copy with 5 % noise."""
    X = rng.normal(size=(n, 3)) * [1, 0.8, 0.6]
    return X, (X + 0.05 * rng.normal(size=X.shape))[rng.permutation(n)] @ orthogonal(rng, 3)


def solid(rng: Any, n: int) -> Any:
    """Return two independent Gaussians in space."""
    return rng.normal(size=(2, n, 3)) * [1, 0.8, 0.6]


CLOUDS: dict[str, Callable[[Any, int], Any]] = {
    f.__name__: f for f in (copy, uniform, shapes, square, circles)
}
#: case -> instance, relative gap, sizes
SPACE: dict[str, tuple[Callable[[Any, int], Any], float, tuple[int, ...]]] = {
    "copy": (solid_copy, 0.01, (50, 100, 200)),
    "unrelated": (solid, 0.1, (50, 100, 200)),
}


def unusual(seed: int) -> tuple[Any, Any, Any, Any]:
    """Return small clouds with weights: ties, heavy tails, thin axes, far from the origin."""
    rng = np.random.default_rng([36, seed])
    n, m = rng.integers(4, 41, 2)
    if seed % 3 == 0:
        m = n
    dx, dy = ((1, 1), (1, 2), (2, 2), (2, 2), (1, 3), (2, 2))[seed % 6]
    if seed % 40 == 0:
        dx, dy = 2, 3
    X, Y = rng.normal(size=(n, dx)), rng.random((m, dy))
    match seed % 5:
        case 1:
            X, Y = np.round(2 * X), np.round(4 * Y)
        case 2:
            X = rng.standard_cauchy((n, dx))
        case 3:
            X = X * np.logspace(0, -6, dx) + 1000
        case 4:
            k = min(n, m)
            Y[:k] = 0.05 * Y[:k] + np.resize(X, (k, dy))
    a, b = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
    return X, Y, a if seed % 2 else None, b if seed % 4 > 1 else None


def small(seed: int) -> tuple[Any, Any, Any, Any, Any]:
    """Return clouds of two to seven points, some with ties, weights or a linear cost."""
    rng = np.random.default_rng([7, seed])
    n = 2 + seed % 6
    m, dx, dy = n, *rng.integers(1, 3, 2)
    a = b = None
    if seed % 5 == 0:  # vertices of three by three or four points are few enough
        n, m = 3, 3 + seed % 2
        a, b = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
    X, Y = rng.normal(size=(n, dx)), rng.normal(size=(m, dy))
    if seed % 3 == 0:
        X, Y = np.round(X), np.round(Y)
    return X, Y, a, b, rng.random((n, m)) if seed % 2 else None


def squared(X: Any) -> Any:
    """Return squared distances."""
    return ((X[:, None] - X) ** 2).sum(-1)


def distances(rng: Any, n: int) -> Any:
    """Return plain distances of a cloud and of its noisy copy."""
    return [np.sqrt(squared(Z)) for Z in copy(rng, n)]


def blocks(rng: Any, n: int) -> Any:
    """Return adjacency matrices of block models with three and four blocks."""
    found = []
    for k in (3, 4):
        kind = np.arange(n) % k
        chance = np.where(kind[:, None] == kind, 0.6, 0.1)
        upper = np.triu(rng.random((n, n)) < chance, 1)
        found.append((upper + upper.T).astype(float))
    return found


def paths(rng: Any, n: int) -> Any:
    """Return shortest paths in two random graphs."""
    from scipy.sparse.csgraph import shortest_path

    found = []
    for _ in range(2):
        upper = np.triu(rng.random((n, n)) < 4 / n, 1)
        found.append(np.minimum(shortest_path(upper + upper.T, unweighted=True), 10))
    return found


MATRICES: dict[str, Callable[[Any, int], Any]] = {f.__name__: f for f in (distances, blocks, paths)}


# -- one line --------------------------------------------------------------------------------------


def objective(C: Any, D: Any, P: Any) -> float:
    """Return the objective of a coupling."""
    p, q = P.sum(1), P.sum(0)
    return float(p @ C**2 @ p + q @ D**2 @ q - 2 * ((C @ P @ D.T) * P).sum())


def peer_values(C: Any, D: Any, a: Any, b: Any, rng: Any) -> tuple[float, list[float]]:
    """Return the value from POT's default start, and those from random permutations."""
    p, q = ot.unif(len(C)) if a is None else a, ot.unif(len(D)) if b is None else b
    found = []
    for k in range(1 + STARTS):
        start = None
        if k > 0:
            start = epsilot.exact(rng.random((len(C), len(D))), p, q).plan
        P = ot.gromov.gromov_wasserstein(C, D, p, q, G0=start, max_iter=200)
        found.append(objective(C, D, epsilot.round_plan(P, p, q)))
    return found[0], found[1:]


def ott_value(C: Any, D: Any) -> float | None:
    """Return the objective of OTT-JAX's coupling, rounded, if OTT-JAX is installed."""
    if find_spec("ott") is None:
        return None
    import jax
    from ott.geometry import geometry
    from ott.problems.quadratic import quadratic_problem
    from ott.solvers.linear import sinkhorn
    from ott.solvers.quadratic import gromov_wasserstein

    jax.config.update("jax_enable_x64", True)
    x, y = (geometry.Geometry(cost_matrix=jax.numpy.asarray(M)) for M in (C, D))
    solver = gromov_wasserstein.GromovWasserstein(
        linear_solver=sinkhorn.Sinkhorn(), epsilon=1e-3, relative_epsilon="mean"
    )
    P = np.asarray(solver(quadratic_problem.QuadraticProblem(x, y)).matrix)
    n, m = P.shape
    return objective(C, D, epsilot.round_plan(P, np.full(n, 1 / n), np.full(m, 1 / m)))


def warm() -> None:
    """Compile what the instances need."""
    rng = np.random.default_rng(0)
    for n in (10, 70):
        epsilot.solve_gromov(*uniform(rng, n), rtol=0.5)
        epsilot.solve_gromov(*solid_copy(rng, n), rtol=1.0, max_ot=200, on_limit="ignore")


def cloud_line(task: GromovTask) -> Line:
    """Solve two clouds, and run the others on them."""
    rng = np.random.default_rng([task.seed, task.n])
    if task.part == "clouds":
        make, rtol = CLOUDS[task.case], RTOL
    else:
        make, rtol, _ = SPACE[task.case]
    X, Y = make(rng, task.n)
    limit = None if task.part == "clouds" else SPACE_PROBLEMS
    seconds, result = timed(
        lambda: epsilot.solve_gromov(X, Y, rtol=rtol, max_ot=limit, on_limit="ignore")
    )
    checking, _ = timed(result.verify)
    line: Line = {
        "value": result.value, "lower": result.lower_bound, "rtol": rtol,
        "converged": result.converged, "n_ot": result.n_ot, "seconds": seconds.processor,
        "verify": checking.processor,
    }  # fmt: skip
    if task.n <= MAX_PEER_POINTS:
        C, D = squared(X), squared(Y)
        taken, (first, others) = timed(lambda: peer_values(C, D, None, None, rng))
        line |= {"pot": first, "pot_starts": others, "pot_seconds": taken.processor / (1 + STARTS)}
        line["ott"] = ott_value(C, D) if task.n <= MAX_OTT_POINTS else None
    return line


def growth_line(task: GromovTask, small: int) -> Line:
    """Solve a small and a large cloud of one kind, the small one before and after the large one."""
    found: dict[int, list[tuple[float, epsilot.GromovResult]]] = {}
    for n in (small, task.n, small):
        X, Y = CLOUDS[task.case](np.random.default_rng([task.seed, n]), n)
        seconds, result = timed(partial(epsilot.solve_gromov, X, Y, rtol=RTOL))
        found.setdefault(n, []).append((seconds.processor, result))
    (large, result), others = found[task.n][0], found[small]
    before = float(np.mean([seconds for seconds, _ in others]))
    return {
        "small": small, "seconds": large, "small_seconds": before, "n_ot": result.n_ot,
        "converged": all(x.converged for turns in found.values() for _, x in turns),
    }  # fmt: skip


def random_line(task: GromovTask) -> Line:
    """Solve a block of unusual instances, and count what happened."""
    counts = {"below": 0, "open": 0, "worse": 0, "better": 0}
    n_ot: list[int] = []
    seconds, largest = 0.0, 0.0
    for seed in range(task.seed * task.n, (task.seed + 1) * task.n):
        X, Y, a, b = unusual(seed)
        taken, result = timed(partial(epsilot.solve_gromov, X, Y, a, b, rtol=RTOL))
        result.verify()
        seconds, n_ot = seconds + taken.processor, [*n_ot, result.n_ot]
        rng = np.random.default_rng(seed)
        C, D = squared(X - X.mean(0)), squared(Y - Y.mean(0))
        first, others = peer_values(C, D, a, b, rng)
        best, size = min(first, *others), result.problem.scale * result.problem.unit
        counts["open"] += not result.converged
        counts["below"] += best < result.lower_bound - 1e-12 * size
        counts["worse"] += best > result.value * (1 + RTOL) + 1e-9 * size
        counts["better"] += best < result.value - 1e-9 * size
        largest = max(largest, (result.lower_bound - best) / size)
    return {
        **counts, "instances": task.n, "seconds": seconds, "n_ot": float(np.median(n_ot)),
        "most_ot": max(n_ot), "margin": largest,
    }  # fmt: skip


def matrix_line(task: GromovTask) -> Line:
    """Bound two matrices, and run POT on them."""
    rng = np.random.default_rng([task.seed, task.n])
    C, D = MATRICES[task.case](rng, task.n)
    seconds, bounds = timed(lambda: epsilot.gromov_bounds(C, D))
    first, others = peer_values(C, D, None, None, rng)
    return {
        "lower": bounds.lower_bound, "value": bounds.value, "seconds": seconds.processor,
        "pot": first, "pot_starts": others,
    }  # fmt: skip


def best_permutation(X: Any, Y: Any, M: Any = None) -> float:
    """Return the optimum for equal weights: the objective is concave, so a permutation has it."""
    n, C, D = len(X), squared(X), squared(Y)
    sigma = np.array(list(permutations(range(n))))
    values = np.zeros(len(sigma))
    for i in range(n):
        for k in range(n):
            values += (C[i, k] - D[sigma[:, i], sigma[:, k]]) ** 2 / n**2
    if M is not None:
        values += M[np.arange(n), sigma].mean(axis=1)
    return float(values.min())


def best_vertex(X: Any, Y: Any, a: Any, b: Any, M: Any = None) -> float:
    """Return the optimum over all vertices of the couplings: the bases of the equations."""
    n, m, C, D = len(a), len(b), squared(X), squared(Y)
    A = np.zeros((n + m, n * m))
    for i in range(n):
        for j in range(m):
            A[i, i * m + j] = A[n + j, i * m + j] = 1
    best, right = np.inf, np.concatenate([a, b])
    for basis in map(list, combinations(range(n * m), n + m - 1)):
        found, _, rank, _ = np.linalg.lstsq(A[:, basis], right, rcond=None)
        if rank == n + m - 1 and found.min() >= -1e-12:
            flat = np.zeros(n * m)
            flat[basis] = np.maximum(found, 0)
            P = flat.reshape(n, m)
            best = min(best, objective(C, D, P) + (0.0 if M is None else float((M * P).sum())))
    return best


def brute_line(task: GromovTask) -> Line:
    """Compare a block of tiny instances with their optima, by both methods."""
    worst_lower, worst_value, worst_gap, taken = -np.inf, -np.inf, -np.inf, 0.0
    for seed in range(task.seed * task.n, (task.seed + 1) * task.n):
        X, Y, a, b, M = small(seed)
        optimum = best_permutation(X, Y, M) if a is None else best_vertex(X, Y, a, b, M)
        for method in ("triangulation", "boxes"):
            seconds, result = timed(
                partial(epsilot.solve_gromov, X, Y, a, b, M=M, rtol=1e-3, method=method)
            )
            result.verify()
            taken += seconds.processor
            size = result.problem.scale * result.problem.unit + abs(optimum)
            worst_lower = max(worst_lower, (result.lower_bound - optimum) / size)
            worst_value = max(worst_value, (optimum - result.value) / size)
            worst_gap = max(worst_gap, (result.value - optimum) / max(abs(optimum), 1e-6 * size))
    return {
        "instances": task.n, "bound_above": worst_lower, "value_below": worst_value,
        "value_above": worst_gap, "seconds": taken,
    }  # fmt: skip


def prototype_line(task: GromovTask) -> Line:
    """Solve one instance by a prototype and by the library, in turns; the first turn compiles."""
    prototype = importlib.import_module("gw")
    make = solid_copy if task.case == "solid_copy" else CLOUDS[task.case]
    X, Y = make(np.random.default_rng([task.seed, task.n]), task.n)
    ours, theirs = [], []
    for _ in range(3 if task.n <= MAX_TURNED else 1):
        seconds, result = timed(partial(epsilot.solve_gromov, X, Y, rtol=RTOL))
        ours.append(seconds.processor)
        seconds, found = timed(partial(prototype.solve_gromov, X, Y, rtol=RTOL, max_seconds=600))
        theirs.append(seconds.processor)
    return {
        "seconds": float(np.median(ours)), "prototype": float(np.median(theirs)),
        "n_ot": result.n_ot, "prototype_ot": found.n_ot, "converged": result.converged,
        "prototype_converged": bool(found.converged),
    }  # fmt: skip


MAKERS: dict[str, Callable[[GromovTask], Line]] = {
    "clouds": cloud_line, "space": cloud_line, "random": random_line, "matrices": matrix_line,
    "brute": brute_line, "prototype": prototype_line,
}  # fmt: skip


# -- the page --------------------------------------------------------------------------------------


def _excess(values: Sequence[float], best: float) -> list[float]:
    return [100 * (x / best - 1) for x in values]


def _percent(x: float) -> str:
    """Return a percentage; below 0.001 it is 0."""
    return "0" if abs(x) < 1e-3 else f"{x:.2g} %" if abs(x) < 100 else f"{x:,.0f} %"


def cloud_rows(lines: Sequence[Line]) -> Table:
    """Return one row per instance: ours, and how far the others end above."""
    rows = []
    for x in lines:
        bracket = f"{100 * (x['value'] / x['lower'] - 1):.2g} %" if x["lower"] > 0 else "no bound"
        cells = [x["case"], f"{x['n']}", bracket, f"{x['n_ot']:,}", f"{x['seconds']:.2g}"]
        if "pot" in x:
            starts = _excess(x["pot_starts"], x["value"])
            bad = sum(e > 1 for e in starts)
            ott = "" if x["ott"] is None else _percent(_excess([x["ott"]], x["value"])[0])
            cells += [
                _percent(_excess([x["pot"]], x["value"])[0]), f"{bad} of {len(starts)}",
                _percent(float(np.median(starts))), _percent(min(starts)), ott,
            ]  # fmt: skip
        rows.append((*cells, *[""] * (10 - len(cells))))
    columns = (
        "clouds", "n", "proved gap", "problems", "s", "POT, default start", "starts > 1 % above",
        "median", "best of ten", "OTT-JAX",
    )  # fmt: skip
    return Table(columns, tuple(rows))


def random_text(lines: Sequence[Line]) -> str:
    """Return what happened on the random instances."""
    total = {name: sum(x[name] for x in lines) for name in ("instances", "below", "open", "worse")}
    better = sum(x["better"] for x in lines)
    return (
        f"{total['instances']:,} random instances (4 to 40 points, 1 to 3 dimensions, half of them "
        f"with random weights; ties, heavy tails, thin axes, far from the origin): POT's best of "
        f"{1 + STARTS} starts is below our bound in {total['below']}, and above our value by more "
        f"than {RTOL:.0%} in {total['worse']}; it is better than our value, within the proved gap, "
        f"in {better}. {total['open']} did not reach {RTOL:.0%}. Median "
        f"{np.median([x['n_ot'] for x in lines]):.0f} transport problems, at most "
        f"{max(x['most_ot'] for x in lines):,}; {sum(x['seconds'] for x in lines):.0f} s in all. "
        "Each result was verified, potentials included."
    )


def matrix_rows(lines: Sequence[Line]) -> Table:
    """Return the share of the best known value that the lower bound proves."""
    rows = []
    for x in lines:
        best = min(x["value"], x["pot"], *x["pot_starts"])
        peer = min(x["pot"], *x["pot_starts"])
        shares = [f"{value / best:.2f}" for value in (x["lower"], x["value"], peer)]
        rows.append((x["case"], f"{x['n']}", *shares, f"{x['seconds']:.2g}"))
    columns = ("matrices", "n", "lower bound / best", "our value / best", "POT's best / best", "s")
    return Table(columns, tuple(rows))


def growth_blocks(lines: Sequence[Line]) -> list[Block]:
    """Return the times of large clouds over those of small ones, and their median."""
    rows, ratios = [], [x["seconds"] / x["small_seconds"] for x in lines]
    for x, ratio in zip(lines, ratios, strict=True):
        seconds = [f"{x[name]:.2g}" for name in ("small_seconds", "seconds")]
        rows.append((x["case"], f"{x['seed']}", f"{x['n_ot']:,}", *seconds, f"{ratio:.1f}"))
    small, large = (f"{x:,}" for x in (lines[0]["small"], lines[0]["n"]))
    text = f"The median ratio is {np.median(ratios):.1f}, from {min(ratios):.1f} to "
    columns = ("clouds", "seed", "problems", f"s, n = {small}", f"s, n = {large}", "ratio")
    return [
        Heading(f"Processor time of n = {large} over n = {small}, to 1 %"),
        Paragraph(f"{text}{max(ratios):.1f}. The small clouds are solved before and after."),
        Table(columns, tuple(rows)),
    ]


def brute_text(lines: Sequence[Line]) -> str:
    """Return how far bounds and values are from the optima by enumeration."""
    total = sum(x["instances"] for x in lines)
    bound, below, above = (
        max(x[name] for x in lines) for name in ("bound_above", "value_below", "value_above")
    )
    return (
        f"{total} instances of two to seven points (a fifth with weights, half of them fused), by "
        f"both methods to 0.1 %, against the optimum of all permutations or vertices. In units of "
        f"the numbers that are added up, a bound is above the optimum by at most "
        f"{max(bound, 0):.1g}, and a value below it by at most {max(below, 0):.1g}. A value is "
        f"above the optimum by at most {100 * above:.1g} % of it."
    )


def prototype_rows(lines: Sequence[Line]) -> Table:
    """Return processor seconds of the library over those of a prototype."""
    rows = []
    for x in lines:
        ratio = f"{x['seconds'] / x['prototype']:.2f}"
        numbers = [f"{x[name]:,}" for name in ("n_ot", "prototype_ot")]
        seconds = [f"{x[name]:.2g}" for name in ("seconds", "prototype")]
        rows.append((x["case"], f"{x['n']}", ratio, *seconds, *numbers))
    columns = (
        "clouds", "n", "ratio", "s", "prototype, s", "problems", "prototype, problems",
    )  # fmt: skip
    return Table(columns, tuple(rows))


def page(lines: Sequence[Line], command: str) -> str:
    """Return the page of all lines."""
    of = {part: [x for x in lines if x["part"] == part] for part in PARTS}
    found: list[Block] = [
        Command(command),
        Paragraph(
            "Gaps and excesses are relative: the proved gap to our lower bound, the others to our "
            "value. Processor seconds of one machine that other programs shared, check included. "
            "Times of POT are left out: threads of its matrix products count while they wait. "
            "OTT-JAX solves the entropic problem with ε = 0.001 of the mean cost, rounded."
        ),
    ]
    if of["clouds"]:
        found += [Heading("Clouds in the plane, to 1 %"), cloud_rows(of["clouds"])]
    if of["space"]:
        found += [
            Heading("Clouds in space: copies to 1 %, unrelated ones to 10 %"),
            cloud_rows(of["space"]),
        ]
    if of["growth"]:
        found += growth_blocks(of["growth"])
    if of["random"]:
        found += [Heading("Random instances"), Paragraph(random_text(of["random"]))]
    if of["brute"]:
        found += [Heading("Optima by enumeration"), Paragraph(brute_text(of["brute"]))]
    if of["prototype"]:
        found += [
            Heading("Processor time over the prototype's, to 1 %"), prototype_rows(of["prototype"])
        ]  # fmt: skip
    if of["matrices"]:
        found += [Heading("Any matrices (`gromov_bounds`)"), matrix_rows(of["matrices"])]
    found += [Heading("Environment"), environment_table(lines)]
    return to_markdown("Gromov-Wasserstein beside POT and OTT-JAX", found)


def tasks_of(options: argparse.Namespace) -> list[GromovTask]:
    """Return the tasks that options name."""
    found: list[GromovTask] = []
    for part in options.parts:
        if part == "clouds":
            found += [GromovTask(part, case, n, 0) for case in CLOUDS for n in options.sizes]
            if set(options.sizes) == set(SIZES):
                found += [GromovTask(part, case, n, 0) for case, n in LARGE.items()]
        elif part == "space":
            found += [
                GromovTask(part, case, n, 0)
                for case, (_, _, sizes) in SPACE.items()
                for n in sizes
                if n in options.sizes
            ]
        elif part == "growth":
            large = options.growth[1]
            found += [GromovTask(part, "copy", large, seed) for seed in range(options.seeds)]
        elif part == "random":
            found += [GromovTask(part, "unusual", options.block, k) for k in range(options.blocks)]
        elif part == "brute":
            found += [GromovTask(part, "tiny", options.brute, k) for k in range(BRUTE_BLOCKS)]
        elif part == "prototype":
            chosen = {PROTOTYPE_SIZES[0]: tuple(CLOUDS), PROTOTYPE_SIZES[1]: PROTOTYPE_LARGE}
            found += [GromovTask(part, case, n, 0) for n, cases in chosen.items() for case in cases]
            found += [GromovTask(part, "solid_copy", n, 0) for n in SPACE["copy"][2]]
        else:
            size = min(60, *options.sizes)
            found += [GromovTask(part, case, size, s) for case in MATRICES for s in range(2)]
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is missing, and write the page."""
    argv = sys.argv[1:] if argv is None else list(argv)
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=PARTS)
    parser.add_argument("--sizes", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--block", type=int, default=BLOCK, help="random instances per line")
    parser.add_argument("--blocks", type=int, default=BLOCKS, help="lines of random instances")
    parser.add_argument("--brute", type=int, default=BRUTE_BLOCK, help="tiny instances per line")
    parser.add_argument("--prototype", type=Path, help="folder of a prototype's gw.py")
    parser.add_argument("--growth", nargs=2, type=int, default=GROWTH_SIZES, help="two sizes")
    parser.add_argument("--seeds", type=int, default=GROWTH_SEEDS, help="pairs of these sizes")
    options = parser.parse_args(argv)
    if options.prototype is not None:
        sys.path.insert(0, str(options.prototype))
    options.out.mkdir(parents=True, exist_ok=True)
    store, tasks = Store(options.out / "lines.jsonl", KEY), tasks_of(options)
    if options.prototype is None:  # its lines are kept
        tasks = [task for task in tasks if task.part != "prototype" or task in store]
    makers = MAKERS | {"growth": partial(growth_line, small=options.growth[0])}
    made_with = versions()
    if find_spec("ott") is not None:
        made_with |= {"OTT-JAX": version("ott-jax")}
    missing = [task for task in tasks if task not in store]
    if missing:
        warm()
    for task in missing:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            line = makers[task.part](task)
        store.append({**task.identity, **line, "versions": made_with, "machine": machine()})
        print(f"{task}: {line['seconds']:.3g} s", file=sys.stderr, flush=True)
    words = ["FOLDER" if word == str(options.prototype) else word for word in argv]
    text = page(store.lines(tasks), " ".join(["python -m epsilot_lab gromov", *words]))
    write_text(options.out / "summary.md", text)
    print(text)
