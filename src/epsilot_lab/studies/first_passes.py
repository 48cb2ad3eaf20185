"""Measure which crude potentials are good enough for the restricted simplex, and their cost.

    python -m epsilot_lab first-passes --problems "2-d lazy" "10-d dense"
    python -m epsilot_lab first-passes --quick

The restricted simplex starts with some fourteen Sinkhorn sweeps. Here other first passes take
their place: epochs of PDASMD, PDASGD and averaged stochastic gradient steps on the semi-dual, or
exact potentials of a subsample (or of a coarse cloud) extended by c-transforms; then two sweeps,
or none. Runs are certified to a relative gap of 1e-6, and noted when they pass 1 %. Times are wall
and CPU seconds, first passes included: the least of the repeats, starts interleaved; speed-ups are
of wall time, so run it on an idle machine.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numba import njit
from rich.console import Console
from rich.table import Table

import epsilot
from epsilot.engine.execute import execute
from epsilot.engine.request import Request
from epsilot.engine.starts import coarse_levels
from epsilot.geometry import Dense, PointCloud
from epsilot.kernels.compiling import KERNEL
from epsilot.kernels.dense import row_max
from epsilot.kernels.sums import gibbs_into
from epsilot.problems.problem import Entropic, make_problem
from epsilot.solvers.pdasmd import PDASGD, PDASMD
from epsilot.solvers.restricted_simplex import TUNING, RestrictedSimplex

from .. import instances
from ..document import markdown_row

LOOSE, TIGHT = 1e-2, 1e-6
#: η of the sweeps that follow the first passes, and of PDASMD, as a share of max C.
ETA = 0.003
#: First and last η of the gradient steps; step t is STEP √(n / (t + 10)) max C long.
SGD_ETAS = 0.03, 0.001
STEP = 0.16


@njit(**{**KERNEL, "cache": False})
def move(g, mean, q, weights, step, ratio, share):
    """Add step q - ratio weights to g, and a share of what is new to the mean."""
    for j in range(g.size):
        g[j] += step * q[j] - ratio * weights[j]
        mean[j] += share * (g[j] - mean[j])


@njit(**{**KERNEL, "cache": False})
def gradient_steps(C, rows, q, inv_etas, steps, shares, g, mean, weights):
    """Climb the semi-dual by its gradients q - softmax((g - C_i) / η) of one row after another."""
    for k in range(rows.size):
        row = C[rows[k]]
        total = gibbs_into(row, g, weights, -row_max(row, g), inv_etas[k])
        move(g, mean, q, weights, steps[k], steps[k] / total, shares[k])


def sgd(n_epochs, problem, rng):
    """Return the average of the second half of some epochs; each draws every row once."""
    n, m = problem.shape
    unit, geometry = problem.cost_max, problem.geometry
    t = np.arange(1, n_epochs * n + 1)
    inv_etas = np.geomspace(1 / SGD_ETAS[0], 1 / SGD_ETAS[1], t.size)
    steps = STEP * np.sqrt(n / (t + 10))
    shares = 1 / np.maximum(t - t.size // 2, 1)
    g, mean, weights = np.zeros((3, m), dtype=np.float32)
    for epoch in np.split(t - 1, n_epochs):
        order = rng.permutation(n)
        # A heavy row takes a long step: draws are uniform, the gradient stays unbiased.
        pace = np.array([inv_etas[epoch], steps[epoch] * n * problem.p[order], shares[epoch]])
        shuffled = geometry if geometry.is_dense else geometry.restricted(order, np.arange(m))
        for start, stop, C in shuffled.single_blocks(unit):
            rows = order if geometry.is_dense else np.arange(stop - start)
            part = pace[:, start:stop].astype(np.float32)
            gradient_steps(C, rows, problem.q.astype(np.float32), *part, g, mean, weights)
    lam = unit * mean.astype(np.float64)
    return geometry.ctransform_rows(lam), lam


def variance_reduced(solver, n_epochs, problem, rng):
    """Return the potentials of PDASMD or PDASGD after some epochs."""
    target = Entropic(problem.geometry, ETA * problem.cost_max, problem.p, problem.q)
    solver = solver.resolved("certificate", problem)
    state, _ = solver.init(target, rng)
    for _ in range(n_epochs):
        solver.step(target, state, rng)
    return solver.potentials(target, state)


def subsample(divisor, problem, rng):
    """Solve for one source and one target in ``divisor``; extend by c-transforms."""
    n, m = problem.shape
    rows, cols = (np.sort(rng.choice(k, k // divisor, replace=False)) for k in (n, m))
    small = problem.geometry.restricted(rows, cols).block(0, rows.size)
    goal = {"rtol": 1e-3, "normalize": True, "on_limit": "ignore"}
    f, g = epsilot.solve(small, problem.p[rows], problem.q[cols], **goal).potentials
    row = problem.geometry.restricted(np.arange(n), cols).ctransform_rows(g)
    return row, problem.geometry.restricted(rows, np.arange(m)).ctransform_cols(f)


def cells(problem, rng):
    """Solve for the centroids of cells, as multiscale clouds do; extend by c-transforms."""
    potentials = None
    for level in coarse_levels(problem.geometry, problem.p, problem.q):
        request = Request(**level.keywords(potentials), on_limit="ignore")
        potentials = level.extended(execute(level.problem, request))
    return potentials


@dataclass(frozen=True)
class FirstPass:
    """First passes, and the sweeps at each η that follow them."""

    name: str
    passes: float  # over C, before the sweeps
    find: Callable | None
    sweeps: int = 2
    etas: tuple[float, ...] = (ETA,)


SWEEPS = RestrictedSimplex().sweeps
STARTS = [
    FirstPass("sweeps (standard)", 0, None, SWEEPS, TUNING.etas),
    FirstPass("half the sweeps", 0, None, SWEEPS // 2, TUNING.etas),
    FirstPass("SGD, 1 epoch", 2, partial(sgd, 1)),
    FirstPass("SGD, 1 epoch, sharper sweeps", 2, partial(sgd, 1), 1, TUNING.etas[3:]),
    FirstPass("SGD, 1 epoch, no sweep", 2, partial(sgd, 1), 0),
    FirstPass("SGD, 3 epochs", 4, partial(sgd, 3)),
    FirstPass("PDASMD, 1 epoch", 3, partial(variance_reduced, PDASMD(), 1)),
    FirstPass("PDASMD, 3 epochs", 7, partial(variance_reduced, PDASMD(), 3)),
    FirstPass("PDASGD, 1 epoch", 3, partial(variance_reduced, PDASGD(), 1)),
    FirstPass("PDASGD, 3 epochs", 7, partial(variance_reduced, PDASGD(), 3)),
    FirstPass("1/16 subsample", 1 / 8, partial(subsample, 16)),
    FirstPass("1/16 subsample, no sweep", 1 / 8, partial(subsample, 16), 0),
    FirstPass("coarse cells (multiscale)", 0, cells, SWEEPS, TUNING.etas[-1:]),
    FirstPass("coarse cells, no sweep", 0, cells, 0),
]


def images(n, is_lazy):
    """Return the paper's images under the l1 distance of pixels."""
    side = round(n**0.5)
    M, a, b = instances.images(side, 0)
    pixels = np.argwhere(np.ones((side, side)))
    return PointCloud(pixels, pixels, "cityblock") if is_lazy else M, a, b


def points(d, n, is_lazy):
    """Return the squared distances of a uniform and a normal cloud."""
    X, Y = instances.clouds(n, np.random.default_rng(0), d, "spread")
    cloud = PointCloud(X, Y, single=True)
    return cloud if is_lazy else cloud.block(0, n), None, None


def uniform(n, is_lazy):
    """Return independent costs."""
    return np.random.default_rng(0).random((n, n)), None, None


PROBLEMS = {
    "images dense": (images, 8100, False),
    "2-d dense": (partial(points, 2), 8000, False),
    "10-d dense": (partial(points, 10), 8000, False),
    "uniform dense": (uniform, 8000, False),
    "images lazy": (images, 8100, True),
    "2-d lazy": (partial(points, 2), 8000, True),
    "10-d lazy": (partial(points, 10), 8000, True),
    "2-d large": (partial(points, 2), 20_000, True),
    "10-d large": (partial(points, 10), 20_000, True),
    "2-d very large": (partial(points, 2), 40_000, True),
}

HEAD = [
    "first passes", "passes", "their s", "gap, round 1", "rounds to 1 %", "s", "CPU s", "speed-up",
    "rounds to 1e-6", "s", "CPU s", "speed-up",
]  # fmt: skip


def measure(start, M, a, b, limit):
    """Solve from a start; return the figures of its line but for the speed-ups."""
    geometry = M if isinstance(M, PointCloud) else Dense(M)  # a fresh one keeps no float32 copy
    marks = []
    cpu, wall = time.process_time(), time.perf_counter()
    potentials = start.find and start.find(make_problem(geometry, a, b), np.random.default_rng(0))
    found = time.perf_counter() - wall

    def note(record):
        gap = record.gap / abs(record.lower)
        marks.append((gap, time.perf_counter() - wall, time.process_time() - cpu))

    epsilot.solve(
        geometry,
        a,
        b,
        rtol=TIGHT,
        method="restricted_simplex",
        potentials_init=potentials,
        callback=note,
        max_seconds=limit,
        on_limit="ignore",
        sweeps=start.sweeps,
        etas=start.etas,
        multiscale=False,
    )
    figures = [found, marks[0][0]]
    for goal in (LOOSE, TIGHT):
        n_rounds = 1 + sum(gap > goal for gap, *_ in marks)
        _, *seconds = marks[n_rounds - 1] if n_rounds <= len(marks) else (0, np.inf, np.inf)
        figures += [n_rounds, *seconds]
    return np.array(figures)


def compare(build, n, is_lazy, starts, n_repeats, limit):
    """Measure all starts on one problem; return the lines of its table."""
    small, (M, a, b) = build(144, is_lazy), build(n, is_lazy)
    if not (is_lazy and M.X.shape[1] <= 3):
        starts = [x for x in starts if x.find is not cells]
    for start in starts:
        measure(start, *small, limit)  # compile
    best = np.full((len(starts), 8), np.inf)
    for _ in range(n_repeats):
        for start, figures in zip(starts, best, strict=True):
            figures[:] = np.minimum(figures, measure(start, M, a, b, limit))
            print(f"{start.name}: {figures.round(3)}", file=sys.stderr, flush=True)
    lines = []
    for start, (found, gap, *goals) in zip(starts, best, strict=True):
        passes = start.passes + start.sweeps * len(start.etas)
        line = [start.name, f"{passes:.3g}", f"{found:.2f}", f"{gap:.0e}"]
        for rounds, seconds, cpu, standard in (*goals[:3], best[0][3]), (*goals[3:], best[0][6]):
            line += [f"{rounds:.0f}", _seconds(seconds), _seconds(cpu), f"{standard / seconds:.2f}"]
        lines.append(line)
    return lines


def _seconds(x):
    return f"{x:.2f}" if x < np.inf else "not reached"


def main(arguments: list[str] | None = None) -> None:
    """Run the study with the words of a command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--starts", nargs="+", default=[""], help="how names begin")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--limit", type=float, default=60.0, help="wall seconds of a solve")
    parser.add_argument("--quick", action="store_true", help="n = 256")
    parser.add_argument("--out", type=Path, help="Markdown file that the tables are appended to")
    options = parser.parse_args(arguments)
    starts = [STARTS[0], *(x for x in STARTS[1:] if x.name.startswith(tuple(options.starts)))]
    for name in options.problems:
        build, n, is_lazy = PROBLEMS[name]
        n = 256 if options.quick else n
        lines = compare(build, n, is_lazy, starts, options.repeats, options.limit)
        table = Table(*HEAD, title=f"{name}, n = {n}")
        for line in lines:
            table.add_row(*line)
        Console(width=140).print(table)
        if options.out:
            rows = [markdown_row(line) for line in (HEAD, ["---"] * len(HEAD), *lines)]
            with options.out.open("a", encoding="utf-8") as file:
                file.write("\n".join([f"### {name}, n = {n}", "", *rows, "", ""]))
