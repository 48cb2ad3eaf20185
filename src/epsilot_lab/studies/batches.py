"""Time batches of small problems beside loops over the solvers of POT and SciPy.

python -m epsilot_lab batches [--out docs/results/batch] [--quick | --calls]

Microseconds of processor time per problem, medians of interleaved rounds: a loop over ``ot.emd2``
(or ``scipy.optimize.linear_sum_assignment``) and one call of a batch on one thread, proof included.
The values of all solvers must agree. Then single calls of ``solve``, one thread beside two, and a
million problems in one call.
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import ot
from scipy.optimize import linear_sum_assignment

import epsilot
from epsilot.files import write_atomically

from ..document import markdown_row
from ..environment import machine, versions
from ..measuring import in_turns, timed

SIZES = (8, 16, 32, 64, 128, 256)
#: Times faster that were aimed at, a core: beside emd2 by size, SciPy, pairs, and two threads.
AIMS = {8: 5.0, 16: 5.0, 32: 5.0, 64: 3.5, 128: 3.5}
SCIPY_AIM, PAIRS_AIM, THREADS_AIM = 2.0, 7.0, 1.7
#: Sizes of single calls, and the microseconds that one was to take at most.
CALLED, CALL_AIM = (8, 16, 32), 200.0
#: Rows of all problems of a size, for a table of single calls alone.
CALLED_NODES = 6000
MILLION = 1_000_000


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


def batched(M: Any, a: Any = None, b: Any = None, n_threads: int = 1) -> Any:
    return epsilot.solve_batch(M, a, b, n_threads=n_threads).value


def compare(calls: dict[str, Callable[[], Any]], size: int, rounds: int) -> list[float]:
    """Return the microseconds per problem of each call, whose values must agree."""
    for call in calls.values():
        call()
    runs = in_turns(calls, rounds)
    values = [run.result for run in runs.values()]
    assert all(np.allclose(x, values[0], rtol=1e-9, atol=1e-12) for x in values[1:])
    return [1e6 * run.median.processor / size for run in runs.values()]


def beside_emd2(sizes: tuple[int, ...], rounds: int, nodes: int) -> Iterator[tuple[str, ...]]:
    """Yield rows: ot.emd2 beside a batch, on weights drawn at random."""
    for name, draw in FAMILIES.items():
        for n in sizes:
            rng, size = np.random.default_rng(n), max(32, nodes // n)
            M = np.array([draw(n, rng) for _ in range(size)])
            a, b = rng.dirichlet(np.ones(n), (2, size))
            theirs, ours = compare(
                {"emd2": partial(loop, emd2, a, b, M), "batch": partial(batched, M, a, b)},
                size,
                rounds,
            )
            yield name, str(n), *row(theirs, ours, AIMS.get(n))


def beside_scipy(sizes: tuple[int, ...], rounds: int, nodes: int) -> Iterator[tuple[str, ...]]:
    """Yield rows: SciPy's assignment beside a batch, on uniform weights."""
    for name, draw in FAMILIES.items():
        for n in sizes:
            rng, size = np.random.default_rng(n), max(32, nodes // n)
            M = np.array([draw(n, rng) for _ in range(size)])
            theirs, ours = compare(
                {"scipy": partial(loop, assigned, M), "batch": partial(batched, M)}, size, rounds
            )
            yield name, str(n), *row(theirs, ours, SCIPY_AIM)


def of_pairs(n_histograms: int, rounds: int) -> Iterator[tuple[str, ...]]:
    """Yield rows: a loop over some pairs beside all of them."""
    rng = np.random.default_rng(0)
    cells = np.indices((8, 8)).reshape(2, -1).T.astype(float)
    grid = ((cells[:, None] - cells) ** 2).sum(-1)
    words = rng.normal(size=(300, 50))
    cost = np.sqrt(((words[:, None] - words) ** 2).sum(-1))
    bags = np.zeros((n_histograms // 4, 300))
    for bag in bags:
        bag[rng.choice(300, rng.integers(10, 50), replace=False)] = rng.integers(1, 5)
    bags /= bags.sum(1, keepdims=True)
    for name, M, H in (
        ("full histograms on an 8 × 8 grid", grid, rng.dirichlet(np.ones(64), n_histograms)),
        ("bags of 10 to 50 of 300 words", cost, bags),
    ):
        i, j = np.triu_indices(len(H), 1)
        some = rng.choice(i.size, min(i.size, 400), replace=False)
        kept = [(H[i[k]] > 0, H[j[k]] > 0) for k in some]
        parts = [
            (H[i[k]][p], H[j[k]][q], np.ascontiguousarray(M[np.ix_(p, q)]))
            for k, (p, q) in zip(some, kept, strict=True)
        ]
        pairs = np.stack((i[some], j[some]), axis=1)
        compare(  # the values
            {
                "emd2": partial(loop, emd2, *zip(*parts, strict=True)),
                "pairs": lambda M=M, H=H, pairs=pairs: epsilot.pairwise(H, M, pairs=pairs).value,
            },
            len(some),
            1,
        )
        runs = in_turns(
            {
                "emd2": partial(loop, emd2, *zip(*parts, strict=True)),
                "all": lambda M=M, H=H: epsilot.pairwise(H, M, n_threads=1),
            },
            rounds,
        )
        theirs = 1e6 * runs["emd2"].median.processor / len(some)
        ours = 1e6 * runs["all"].median.processor / i.size
        yield name, f"{i.size:,} pairs", *row(theirs, ours, PAIRS_AIM)


def one_by_one(rounds: int, nodes: int) -> Iterator[tuple[str, ...]]:
    """Yield rows: calls of ``solve`` for each problem, beside emd2."""
    for n in CALLED:
        rng, size = np.random.default_rng(n), max(8, nodes // (6 * n))
        M = np.array([points(n, 2, rng) for _ in range(size)])
        a, b = rng.dirichlet(np.ones(n), (2, size))
        for name, weights in (("drawn", (a, b)), ("uniform", (np.full((size, n), 1 / n),) * 2)):
            theirs, exact, ours = compare(
                {
                    "emd2": partial(loop, emd2, *weights, M),
                    "exact": partial(loop, partial(solved, method="exact"), *weights, M),
                    "auto": partial(loop, solved, *weights, M),
                },
                size,
                rounds,
            )
            reached = f"{CALL_AIM:g}: {'yes' if ours <= CALL_AIM else 'no'}"
            yield (
                f"points in 2-d, {name} weights",
                str(n),
                *(f"{x:.0f}" for x in (theirs, exact, ours)),
                reached,
            )


def on_threads(rounds: int, nodes: int) -> Iterator[tuple[str, ...]]:
    """Yield rows: wall time on one and on two threads, and what the processor gave to both."""
    for n in (16, 64):
        rng, size = np.random.default_rng(n), 10 * nodes // n**2 * 16
        M = np.repeat(rng.random((size // 16, n, n)), 16, axis=0)
        a, b = rng.dirichlet(np.ones(n), (2, size))
        runs = in_turns(
            {k: partial(batched, M, a, b, n_threads=k) for k in (1, 2)},
            min(2 * rounds, max(rounds, 5)),
        )
        one, two = runs[1].least, runs[2].least
        share = max(run.processor / run.wall for run in runs[2].seconds)
        yield (
            f"n = {n}, {size:,} problems",
            f"{one.wall:.2f}",
            f"{two.wall:.2f}",
            f"{one.wall / two.wall:.2f}",
            f"{one.processor:.2f}",
            f"{two.processor:.2f}",
            f"{share:.2f}",
        )


def a_million(size: int) -> tuple[str, ...]:
    """Return a row: problems of n = 16 from an iterator."""
    rng = np.random.default_rng(0)
    M, a, b = rng.random((5000, 16, 16)), *rng.dirichlet(np.ones(16), (2, 5000))
    epsilot.solve_batch(iter(M[:500]), iter(a[:500]), iter(b[:500]))

    def again(stack: Any) -> Iterator[Any]:
        for k in range(size):
            yield stack[k % len(stack)]

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, batch = timed(lambda: epsilot.solve_batch(again(M), again(a), again(b)))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert batch.converged.all()
    return (
        f"{size:,}",
        f"{seconds.wall:.1f}",
        f"{seconds.processor:.1f}",
        f"{grown:.0f}",
        f"{np.abs(batch.gap).max():.1e}",
    )


def row(theirs: float, ours: float, aim: float | None) -> tuple[str, ...]:
    ratio = theirs / ours
    reached = "" if aim is None else f"{aim:g}: {'yes' if ratio >= aim else 'no'}"
    return f"{theirs:.1f}", f"{ours:.1f}", f"{ratio:.1f}", reached


def table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [columns, ("---",) * len(columns), *rows]
    return "\n".join(markdown_row(line) for line in lines)


class Amount(NamedTuple):
    """The size of a run."""

    sizes: tuple[int, ...] = SIZES
    rounds: int = 7
    nodes: int = 60_000  # rows of all problems of a size
    histograms: int = 500
    million: int = MILLION


AMOUNTS = {
    "full": Amount(),
    "quick": Amount(SIZES[:4], 3, 60_000, 100, MILLION // 10),
    "toy": Amount((8,), 1, 3000, 16, 500),
}
CALLS = ("problem", "n", "µs `ot.emd2`", '`method="exact"`', "`solve`", "aim")


def main(argv: Sequence[str] | None = None) -> None:
    """Run the study with the words of a command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    amount = parser.add_mutually_exclusive_group()
    for name, what in (("quick", "a minute instead of ten"), ("toy", "a trial: seconds")):
        amount.add_argument(f"--{name}", action="store_const", const=name, dest="amount", help=what)
    amount.add_argument("--calls", action="store_true", help="single calls of solve only")
    options = parser.parse_args(argv)
    if options.calls:
        print(table(CALLS, list(one_by_one(AMOUNTS["full"].rounds, CALLED_NODES))))
        return
    sizes, rounds, nodes, n_histograms, million = AMOUNTS[options.amount or "full"]
    cost = ("problem", "n", "µs theirs", "µs ours", "times faster", "aim")
    parts = [
        "# Many small problems",
        "`python -m epsilot_lab batches --out docs/results/batch`",
        "; ".join(f"{name} {value}" for name, value in (machine() | versions()).items()),
        "Microseconds of processor time per problem, one thread, medians of interleaved rounds.",
        "## Beside `ot.emd2`", table(cost, list(beside_emd2(sizes, rounds, nodes))),
        "## Uniform weights, beside SciPy's assignment",
        table(cost, list(beside_scipy(sizes, rounds, nodes))),
        "## All pairs, beside `ot.emd2` on the kept places",
        table(cost, list(of_pairs(n_histograms, min(rounds, max(3, rounds // 2))))),
        "## One call of `solve`, proof included",
        table(CALLS, list(one_by_one(rounds, nodes))),
        "## Threads",
        table(
            (
                "problems", "wall s, 1 thread", "2 threads", "times faster",
                "processor s, 1 thread", "2 threads", "cores had",
            ),
            list(on_threads(rounds, nodes)),
        ),
        "Least times of interleaved rounds. *Cores had* is the most of processor over wall time on "
        f"two threads, what other work left of the machine; {THREADS_AIM} times are aimed at where "
        "it is 2.",
        "## A million problems of n = 16 from an iterator, two threads",
        table(
            ("problems", "wall s", "processor s", "MiB grown", "largest gap"),
            [a_million(million)],
        ),
    ]  # fmt: skip
    text = "\n\n".join(parts) + "\n"
    print(text)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        write_atomically(options.out / "summary.md", lambda file: file.write(text.encode()))
