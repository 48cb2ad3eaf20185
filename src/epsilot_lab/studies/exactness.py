"""Check exact methods on awkward shapes beside ``ot.emd2``, and recompute their certificates.

    python -m epsilot_lab exactness docs/results/exactness           # what is missing, then tables
    python -m epsilot_lab exactness OUT --size 500 --cases far whole # some rows, smaller
    python -m epsilot_lab exactness OUT --toy                        # all rows at 60 points

Each problem is solved to 1e-9 without its matrix, by the method that serves it and by "auto".
Then the matrix is computed in blocks, by plain NumPy in float64: potentials must not exceed it,
the plan's arcs are priced by it, and ``ot.emd2`` solves it.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import ot

import epsilot

from .. import document
from ..environment import machine, versions
from ..measuring import timed
from ..store import Line, Store

Array = np.ndarray
Rng = np.random.Generator

RTOL, SIZE, TOY = 1e-9, 5000, 60
#: A run that takes longer is ended, and shown without its star of exactness.
LIMIT = 300.0
BLOCK = 500
#: Arcs of a plan for each point, at most: a vertex has one, what an auction has sold a few.
FEW = 4
KEY = ("case", "size", "method")

SHAPES: dict[str, Callable[[Rng, int, int], Array]] = {
    "uniform": lambda rng, n, d: rng.random((n, d)),
    "normal": lambda rng, n, d: rng.normal(size=(n, d)),
    "apart": lambda rng, n, d: rng.normal(size=(n, d)) + 3.0,
    "duplicated": lambda rng, n, d: rng.random((n // 20 + 1, d))[rng.integers(0, n // 20 + 1, n)],
    "clustered": lambda rng, n, d: rng.integers(0, 4, (n, 1)) + 1e-6 * rng.normal(size=(n, d)),
    "collinear": lambda rng, n, d: rng.random((n, 1)) * np.arange(1.0, d + 1),
    "far": lambda rng, n, d: 1e6 + rng.random((n, d)),
    "whole": lambda rng, n, d: rng.integers(0, 12, (n, d)).astype(float),
}
WEIGHTS: dict[str, Callable[[Rng, int], Array]] = {
    "even": lambda rng, n: np.ones(n),
    "random": lambda rng, n: rng.random(n) + 0.01,
    "decades": lambda rng, n: 10 ** rng.uniform(-12, 0, n),
    "zeros": lambda rng, n: rng.random(n) * (rng.random(n) < 0.5),
    "whole": lambda rng, n: rng.integers(0, 10, n).astype(float),
    "smooth": lambda rng, n: 1.0 + np.sin(np.arange(n) * rng.uniform(0.001, 0.01)),
}


class Cloud(NamedTuple):
    """Points in d dimensions; ``shares`` are those of the size that the sides have."""

    metric: str
    d: int
    shape: str
    other: str
    weights: str
    shares: tuple[float, float] = (1.0, 1.0)
    method: str = "auction"

    def draw(self, rng: Rng, size: int) -> ShapeProblem:
        """Return the problem at a size."""
        n, m = (max(1, round(share * size)) for share in self.shares)
        X, Y = SHAPES[self.shape](rng, n, self.d), SHAPES[self.other](rng, m, self.d)
        return ShapeProblem(
            epsilot.PointCloud(X, Y, self.metric),
            X,
            Y,
            self.metric,
            *masses(rng, self.weights, n, m),
        )


class Image(NamedTuple):
    """Masses on grids whose cells are about the size; ``sides`` are shares of its root."""

    metric: str
    sides: tuple[float, ...]
    others: tuple[float, ...]
    spacing: tuple[float, ...]
    weights: str
    method: str

    def draw(self, rng: Rng, size: int) -> ShapeProblem:
        """Return the problem at a size."""
        side = size ** (1 / len(self.sides))
        shapes = [tuple(max(1, round(x * side)) for x in s) for s in (self.sides, self.others)]
        X, Y = (np.indices(s).reshape(len(s), -1).T * np.array(self.spacing) for s in shapes)
        grid = epsilot.Grid(*shapes, self.metric, self.spacing)
        return ShapeProblem(grid, X, Y, self.metric, *masses(rng, self.weights, len(X), len(Y)))


class ShapeProblem(NamedTuple):
    """A problem: its geometry, and the points and masses that it means."""

    geometry: epsilot.Geometry
    X: Array
    Y: Array
    metric: str
    a: Array
    b: Array


def masses(rng: Rng, name: str, n: int, m: int) -> tuple[Array, Array]:
    """Return weights of both sides, of total one."""
    sides = []
    for size in (n, m):
        w = WEIGHTS[name](rng, size)
        w[0] += not w.sum() > 0
        sides.append(w / w.sum())
    return sides[0], sides[1]


def _square(metric: str, weights: str, method: str, **other: Any) -> Image:
    parts = {"sides": (1.0, 1.0), "others": (1.0, 1.0), "spacing": (1.0, 1.0), **other}
    return Image(metric=metric, weights=weights, method=method, **parts)


def _cases() -> Iterator[tuple[str, Cloud | Image]]:
    """Yield the rows of the table by name."""
    for metric in ("sqeuclidean", "euclidean", "cityblock"):
        for weights in ("even", "random"):
            yield f"2-d uniform, {weights}", Cloud(metric, 2, "uniform", "uniform", weights)
        for shape in ("duplicated", "clustered", "collinear", "far", "whole"):
            yield f"2-d {shape}, random", Cloud(metric, 2, shape, shape, "random")
        yield "2-d apart, random", Cloud(metric, 2, "uniform", "apart", "random")
        for weights in ("decades", "zeros"):
            yield f"2-d uniform, {weights}", Cloud(metric, 2, "uniform", "normal", weights)
        for d in (1, 3, 10):
            yield f"{d}-d, random", Cloud(metric, d, "uniform", "normal", "random")
        yield "64-d, random", Cloud(metric, 64, "normal", "normal", "random", method="auto")
        few = Cloud(metric, 2, "uniform", "uniform", "random", (1.0, 0.3))
        yield "2-d, fewer targets", few
        yield "2-d, one source", few._replace(shares=(0.0, 1.0))
    for weights in ("random", "smooth", "decades", "zeros", "whole"):
        yield f"square, {weights}", _square("cityblock", weights, "grid_flow")
        yield f"square, {weights}", _square("sqeuclidean", weights, "auction")
    for spacing in ((0.5, 1.5), (1.0, math.pi)):
        even = _square("cityblock", "random", "grid_flow", spacing=spacing)
        yield f"square, spacing {spacing[0]:g}, {spacing[1]:.3g}", even
    wide = {"sides": (1.2, 0.8), "others": (0.7, 1.3)}
    yield "other shapes", _square("cityblock", "random", "grid_flow", **wide)
    yield "other shapes", _square("sqeuclidean", "random", "auction", **wide)
    for d in (1, 3):
        ones = {"sides": (1.0,) * d, "others": (1.0,) * d, "spacing": (1.0,) * d}
        yield f"{d}-d grid", _square("cityblock", "random", "grid_flow", **ones)
        yield f"{d}-d grid", _square("sqeuclidean", "random", "auction", **ones)


CASES = {f"{name}, {case.metric}": case for name, case in _cases()}


class ExactnessTask(NamedTuple):
    """One case at a size, by one method."""

    case: str
    size: int
    method: str

    @property
    def identity(self) -> Line:
        """The fields that distinguish its line from all others."""
        return dict(zip(KEY, self, strict=True))


def blocks(problem: ShapeProblem) -> Iterator[tuple[slice, Array]]:
    """Yield the costs of some rows after others, by plain NumPy."""
    for start in range(0, len(problem.X), BLOCK):
        rows = slice(start, start + BLOCK)
        steps = np.abs(problem.X[rows, None] - problem.Y)
        if problem.metric == "cityblock":
            yield rows, steps.sum(axis=2)
        else:
            squares = (steps**2).sum(axis=2)
            yield rows, squares if problem.metric == "sqeuclidean" else np.sqrt(squares)


def recomputed(problem: ShapeProblem, result: epsilot.Result) -> tuple[Array, dict[str, float]]:
    """Return the matrix, and what it says of a result: all numbers relative to their scale."""
    f, g = result.potentials
    arcs = result.plan_operator.tosparse().tocsr()
    C = np.empty(arcs.shape)
    excess, priced = -math.inf, 0.0
    for rows, costs in blocks(problem):
        C[rows] = costs
        excess = max(excess, float((f[rows, None] + g - costs).max()))
        part = arcs[rows].tocoo()
        priced += math.fsum(part.data * costs[part.row, part.col])
    used = [(w[w > 0], x[w > 0]) for w, x in ((problem.a, f), (problem.b, g))]
    dual = math.fsum(np.concatenate([w * x for w, x in used]))
    unit = float(C.max()) or 1.0
    size = max(abs(result.value), 1e-9 * unit)
    off = np.abs(arcs.sum(axis=1) - problem.a).sum() + np.abs(arcs.sum(axis=0) - problem.b).sum()
    return C, {
        "excess": excess / unit,
        "gap": (priced - dual) / size,
        "claimed": result.gap / size,
        "marginals": float(off),
        "arcs": int(arcs.nnz),
    }


def emd2_value(problem: ShapeProblem, C: Array) -> float:
    """Return the optimum by POT; one point leaves no choice."""
    if 1 in C.shape:
        return float(problem.a @ C @ problem.b)
    return float(ot.emd2(problem.a, problem.b, C, numItermax=10**8))


def measure(case: str, size: int, methods: Sequence[str]) -> Iterator[Line]:
    """Solve a case by some methods and yield a line for each."""
    seed = [size, list(CASES).index(case)]
    problem = CASES[case].draw(np.random.default_rng(seed), size)
    exact, theirs = math.nan, math.nan
    for method in methods:
        taken, result = timed(
            lambda method=method: epsilot.solve(
                problem.geometry, problem.a, problem.b, rtol=RTOL, method=method,
                max_seconds=LIMIT, on_limit="ignore",
            )
        )  # fmt: skip
        C, found = recomputed(problem, result)
        if math.isnan(exact):
            seconds, exact = timed(lambda C=C: emd2_value(problem, C))
            theirs = seconds.processor
        scale = max(abs(exact), 1e-9 * float(C.max()), 1e-300)
        yield {
            "case": case, "size": size, "method": method, "chosen": result.method,
            "shape": list(problem.geometry.shape), "status": result.status.name.lower(),
            "certified": bool(result.converged), "difference": (result.value - exact) / scale,
            "seconds": taken.processor, "emd2": theirs, **found,
            "versions": versions(), "machine": machine(),
        }  # fmt: skip


def methods_of(case: str) -> list[str]:
    """Return the method a case is for, and auto."""
    return list(dict.fromkeys([CASES[case].method, "auto"]))


def run(store: Store, names: Sequence[str], size: int) -> list[Line]:
    """Solve what the store lacks and return all lines."""
    tasks = [ExactnessTask(case, size, method) for case in names for method in methods_of(case)]
    for case in names:
        missing = [t.method for t in tasks if t.case == case and t not in store]
        for line in measure(case, size, missing) if missing else ():
            store.append(line)
            print(f"{case}, {line['method']}: {line['difference']:.0e}", file=sys.stderr)
    return store.lines(tasks)


def is_sound(line: Line) -> bool:
    """Tell whether a line proves what it should: exact, feasible, and never below the optimum."""
    return bool(
        abs(line["difference"]) <= 2 * RTOL
        and line["gap"] <= 2 * RTOL
        and line["excess"] <= 4e-15
        and line["marginals"] <= 1e-12
        and line["arcs"] <= FEW * sum(line["shape"])
    )


def report(lines: Sequence[Line], size: int) -> str:
    """Return the page of a run."""
    columns = (
        "case", "n × m", "method", "certified", "value − emd2", "gap proved", "gap by hand",
        "f + g − C ≤", "arcs", "s", "s, emd2",
    )  # fmt: skip
    rows = tuple(
        (
            line["case"], "{} × {}".format(*line["shape"]),
            line["method"] + (f" ({line['chosen']})" if line["method"] == "auto" else ""),
            "yes" if line["certified"] else "no", f"{line['difference']:.0e}",
            f"{line['claimed']:.0e}", f"{line['gap']:.0e}", f"{line['excess']:.0e}",
            f"{line['arcs']:,}", f"{line['seconds']:.2f}", f"{line['emd2']:.2f}",
        )
        for line in lines
    )  # fmt: skip
    sound, certified = sum(map(is_sound, lines)), sum(line["certified"] for line in lines)
    worst = max(abs(line["difference"]) for line in lines)
    head: list[document.Block] = [
        document.Command(f"python -m epsilot_lab exactness docs/results/exactness --size {size}"),
        document.Paragraph(
            f"{len(lines)} solves to {RTOL:g} of {len({x['case'] for x in lines})} problems: "
            f"{sound} are sound by hand, {certified} certified their target, and values differ "
            f"from `ot.emd2`'s by at most {worst:.0e}. Differences and gaps are relative to the "
            "value (or to 1e-9 of the largest cost, if that is more), f + g − C to the largest "
            "cost. Seconds are of the processor, of one run each, beside other work, compilation "
            "included where a kernel was met first: this table is about values."
        ),
        document.Table(columns, rows),
    ]
    environment = [document.Heading("Environment"), document.environment_table(lines)]
    return document.to_markdown("Exact on every shape", [*head, *environment])


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is missing and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--cases", nargs="*", default=[""], help="words in the names of cases")
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--toy", action="store_true", help=f"{TOY} points, for a trial")
    options = parser.parse_args(argv)
    size = TOY if options.toy else options.size
    names = [name for name in CASES if any(word in name for word in options.cases)]
    options.out.mkdir(parents=True, exist_ok=True)
    lines = run(Store(options.out / "solves.jsonl", KEY), names, size)
    text = report(lines, size)
    document.write_text(options.out / "summary.md", text)
    print(text)
