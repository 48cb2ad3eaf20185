"""Time batches of small problems beside loops over the solvers of POT and SciPy.

    python -m epsilot_lab batches --out docs/results/batch
    python -m epsilot_lab batches calls        # single calls of solve only

Microseconds of processor time per problem, medians of interleaved rounds: a loop over ``ot.emd2``
(or ``scipy.optimize.linear_sum_assignment``) and one call of a batch on one thread, proof included.
The values of all solvers must agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import ot
from scipy.optimize import linear_sum_assignment

import epsilot

from ..measuring import in_turns
from .races import Race, Row, run_races

#: Rows of all problems of a size.
NODES = 20_000


def points(n: int, d: int, rng: np.random.Generator) -> Any:
    """Return squared distances of uniform points."""
    return ((rng.random((n, 1, d)) - rng.random((1, n, d))) ** 2).sum(-1)


FAMILIES: dict[str, Callable[[int, np.random.Generator], Any]] = {
    "points in 2-d": lambda n, rng: points(n, 2, rng),
    "points in 20-d": lambda n, rng: points(n, 20, rng),
    "random costs": lambda n, rng: rng.random((n, n)),
}


def loop(solve: Callable[..., float], *stacks: Any) -> Any:
    """Call a solver for each problem."""
    return np.array([solve(*parts) for parts in zip(*stacks, strict=True)])


def emd2(a: Any, b: Any, M: Any) -> float:
    return float(ot.emd2(a, b, M))


def solved(a: Any, b: Any, M: Any, method: str = "auto") -> float:
    return epsilot.solve(M, a, b, method=method).value


def assigned(M: Any) -> float:
    return float(M[linear_sum_assignment(M)].mean())


def batched(M: Any, a: Any = None, b: Any = None) -> Any:
    return epsilot.solve_batch(M, a, b, n_threads=1).value


def compare(calls: dict[str, Callable[[], Any]], size: int, rounds: int) -> list[float]:
    """Return the microseconds per problem of each call, whose values must agree."""
    for call in calls.values():
        call()
    runs = in_turns(calls, rounds)
    values = [run.result for run in runs.values()]
    assert all(np.allclose(x, values[0], rtol=1e-9, atol=1e-12) for x in values[1:])
    return [1e6 * run.median.processor / size for run in runs.values()]


def families(sizes: Sequence[int], rounds: int, *, has_weights: bool) -> Iterator[Row]:
    """Yield rows: a batch beside ot.emd2 on drawn weights, or beside SciPy's assignment."""
    for name, draw in FAMILIES.items():
        for n in sizes:
            rng, size = np.random.default_rng(n), max(32, NODES // n)
            M = np.array([draw(n, rng) for _ in range(size)])
            weights = tuple(rng.dirichlet(np.ones(n), (2, size))) if has_weights else ()
            theirs = partial(loop, emd2, *weights, M) if has_weights else partial(loop, assigned, M)
            calls = {"theirs": theirs, "batch": partial(batched, M, *weights)}
            yield name, str(n), *row(*compare(calls, size, rounds))


def pairs(sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    """Yield rows: a loop over some pairs of histograms beside all of them."""
    rng = np.random.default_rng(0)
    cells = np.indices((8, 8)).reshape(2, -1).T.astype(float)
    grid = ((cells[:, None] - cells) ** 2).sum(-1)
    words = rng.normal(size=(300, 50))
    cost = np.sqrt(((words[:, None] - words) ** 2).sum(-1))
    for count in sizes:
        bags = np.zeros((max(4, count // 4), 300))
        for bag in bags:
            bag[rng.choice(300, rng.integers(10, 50), replace=False)] = rng.integers(1, 5)
        bags /= bags.sum(1, keepdims=True)
        for name, M, H in (
            ("full histograms on an 8 × 8 grid", grid, rng.dirichlet(np.ones(64), count)),
            ("bags of 10 to 50 of 300 words", cost, bags),
        ):
            i, j = np.triu_indices(len(H), 1)
            some = rng.choice(i.size, min(i.size, 400), replace=False)
            kept = [(H[i[k]] > 0, H[j[k]] > 0) for k in some]
            parts = [
                (H[i[k]][p], H[j[k]][q], np.ascontiguousarray(M[np.ix_(p, q)]))
                for k, (p, q) in zip(some, kept, strict=True)
            ]
            loops = partial(loop, emd2, *zip(*parts, strict=True))
            every = partial(epsilot.pairwise, H, M, n_threads=1)
            assert np.allclose(every().value[some], loops(), rtol=1e-9, atol=1e-12)
            runs = in_turns({"emd2": loops, "all": every}, rounds)
            theirs, ours = (
                1e6 * runs[who].median.processor / n
                for who, n in (("emd2", len(some)), ("all", i.size))
            )
            yield name, f"{i.size:,} pairs", *row(theirs, ours)


def single_calls(sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    """Yield rows: calls of ``solve`` for each problem, beside emd2."""
    for n in sizes:
        rng, size = np.random.default_rng(n), max(8, NODES // (6 * n))
        M = np.array([points(n, 2, rng) for _ in range(size)])
        a, b = rng.dirichlet(np.ones(n), (2, size))
        for name, weights in (("drawn", (a, b)), ("uniform", (np.full((size, n), 1 / n),) * 2)):
            calls = {
                "emd2": partial(loop, emd2, *weights, M),
                "exact": partial(loop, partial(solved, method="exact"), *weights, M),
                "auto": partial(loop, solved, *weights, M),
            }
            found = compare(calls, size, rounds)
            yield f"points in 2-d, {name} weights", str(n), *(f"{x:.0f}" for x in found)


def row(theirs: float, ours: float) -> Row:
    return f"{theirs:.1f}", f"{ours:.1f}", f"{theirs / ours:.1f}"


_COLUMNS = ("problem", "n", "µs theirs", "µs ours", "times faster")
_SIZES = (8, 16, 32, 64, 128, 256)
TABLES = {
    "emd2": Race(
        "Weights drawn at random, beside `ot.emd2`",
        _COLUMNS, partial(families, has_weights=True), _SIZES, (8,), 7,
    ),
    "scipy": Race(
        "Uniform weights, beside SciPy's assignment",
        _COLUMNS, partial(families, has_weights=False), _SIZES, (8,), 7,
    ),
    "pairs": Race(
        "All pairs of histograms, beside `ot.emd2` on the places that have mass",
        _COLUMNS, pairs, (500,), (16,),
    ),
    "calls": Race(
        "One call of `solve`, proof included; `ot.emd2` proves nothing",
        ("problem", "n", "µs `ot.emd2`", '`method="exact"`', "`solve`"),
        single_calls, (8, 16, 32), (8,), 7,
    ),
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Run the study with the words of a command line."""
    run_races("batches", TABLES, __doc__, argv)
