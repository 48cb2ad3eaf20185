"""Time sparse costs beside POT, OR-tools and networkx, and check them by HiGHS.

    python -m epsilot_lab sparse --out docs/results/sparse    # races with the peers that are there
    python -m epsilot_lab sparse --arcs 10000 --grids --only near
    python -m epsilot_lab sparse --check 10000                # random problems

Seconds are of the processor, the least of a few runs in turns, with the proof. POT is ``ot.emd2``
on a sparse cost, OR-tools ``SimpleMinCostFlow`` with costs and masses as integers of 24 and 30
bits, networkx ``network_simplex`` with the same integers.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import math
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import ot
from scipy import sparse
from scipy.optimize import linprog
from scipy.spatial import cKDTree

import epsilot

from .. import document
from ..document import markdown_row
from ..environment import machine, versions
from ..store import Line, Store

#: Bits of the integers of costs and of masses, for the peers that take integers only.
COST_BITS, MASS_BITS = 24, 30
#: Arcs from which a peer is left out: it would take minutes.
MOST_ARCS = {"POT": 2_000_000, "OR-tools": 200_000, "networkx": 12_000}
#: Arcs up to which every call is repeated.
MOST_REPEATED, REPEATS = 200_000, 5
#: Largest difference from HiGHS, relative to the largest cost.
TOLERANCE = 1e-8


class SparseCase(NamedTuple):
    """A transport problem on arcs between n sources and n targets."""

    rows: Any
    cols: Any
    costs: Any
    a: Any
    b: Any


def random_arcs(n: int, degree: int, is_even: bool) -> SparseCase:
    """Return arcs to random targets at random costs, and those of a permutation."""
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(n), degree)
    cols = rng.integers(0, n, rows.size)
    rows, cols = np.append(rows, np.arange(n)), np.append(cols, rng.permutation(n))
    return _problem(rows, cols, rng.random(rows.size), n, is_even, rng)


def near_arcs(n: int, degree: int, is_even: bool, far: bool = False) -> SparseCase:
    """Return arcs to the nearest targets, and to each source's own target.

    That is the source after a small move, or with ``far`` a random one, which is expensive.
    """
    rng = np.random.default_rng(0)
    X = rng.random((n, 2))
    Y = rng.random((n, 2)) if far else X + rng.normal(size=(n, 2)) * 0.5 / n**0.5
    nearest = cKDTree(Y).query(X, degree)[1]
    rows = np.append(np.repeat(np.arange(n), degree), np.arange(n))
    cols = np.append(nearest.ravel(), rng.permutation(n) if far else np.arange(n))
    return _problem(rows, cols, ((X[rows] - Y[cols]) ** 2).sum(axis=1), n, is_even, rng)


def _problem(rows: Any, cols: Any, costs: Any, n: int, is_even: bool, rng: Any) -> SparseCase:
    """Return a feasible problem: masses are uniform, or those of a random flow on all arcs."""
    _, kept = np.unique(rows * n + cols, return_index=True)
    rows, cols, costs = rows[kept], cols[kept], costs[kept]
    if is_even:
        return SparseCase(rows, cols, costs, np.full(n, 1 / n), np.full(n, 1 / n))
    flow = rng.random(rows.size)
    flow /= flow.sum()
    return SparseCase(rows, cols, costs, np.bincount(rows, flow, n), np.bincount(cols, flow, n))


FAMILIES: dict[str, Callable[[int, int], SparseCase]] = {
    "random arcs, uniform": lambda n, k: random_arcs(n, k, True),
    "random arcs, weights": lambda n, k: random_arcs(n, k, False),
    "near arcs, uniform": lambda n, k: near_arcs(n, k, True),
    "near arcs, weights": lambda n, k: near_arcs(n, k, False),
    "near and far arcs, uniform": lambda n, k: near_arcs(n, k, True, far=True),
    "near and far arcs, weights": lambda n, k: near_arcs(n, k, False, far=True),
}


# -- competitors -----------------------------------------------------------------------------------


def by_epsilot(p: SparseCase) -> float:
    n = p.a.size
    return epsilot.solve(epsilot.Sparse(p.rows, p.cols, p.costs, (n, n)), p.a, p.b).value


def by_pot(p: SparseCase) -> float:
    n = p.a.size
    M = sparse.coo_matrix((p.costs, (p.rows, p.cols)), shape=(n, n))
    return float(ot.emd2(p.a, p.b, M, numItermax=10**9))


def _integers(p: SparseCase) -> tuple[Any, Any, Any]:
    a, b = (np.rint(x * 2**MASS_BITS).astype(np.int64) for x in (p.a, p.b))
    a[0] += b.sum() - a.sum()
    return a, b, np.rint(p.costs / p.costs.max() * 2**COST_BITS).astype(np.int64)


def by_ortools(p: SparseCase) -> float:
    from ortools.graph.python import min_cost_flow

    n, (a, b, costs) = p.a.size, _integers(p)
    solver = min_cost_flow.SimpleMinCostFlow()
    most = np.minimum(a[p.rows], b[p.cols])
    ends = p.rows.astype(np.int32), (p.cols + n).astype(np.int32)
    solver.add_arcs_with_capacity_and_unit_cost(*ends, most, costs)
    solver.set_nodes_supplies(np.arange(2 * n, dtype=np.int32), np.append(a, -b))
    solver.solve()
    return float(solver.optimal_cost() * 2.0 ** -(MASS_BITS + COST_BITS) * p.costs.max())


def by_networkx(p: SparseCase) -> float:
    import networkx

    n, (a, b, costs) = p.a.size, _integers(p)
    G = networkx.DiGraph()
    G.add_nodes_from((k, {"demand": int(-x)}) for k, x in enumerate(a))
    G.add_nodes_from((n + k, {"demand": int(x)}) for k, x in enumerate(b))
    G.add_weighted_edges_from(
        zip(p.rows.tolist(), (p.cols + n).tolist(), costs.tolist(), strict=True)
    )
    value, _ = networkx.network_simplex(G)
    return float(value * 2.0 ** -(MASS_BITS + COST_BITS) * p.costs.max())


COMPETITORS = {
    "epsilot": by_epsilot,
    "POT": by_pot,
    "OR-tools": by_ortools,
    "networkx": by_networkx,
}


def installed() -> dict[str, Callable[[SparseCase], float]]:
    """Return the competitors whose packages are installed."""
    modules = {"OR-tools": "ortools", "networkx": "networkx"}
    return {
        name: solve
        for name, solve in COMPETITORS.items()
        if importlib.util.find_spec(modules.get(name, "ot")) is not None
    }


def timed(solvers: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, float]:
    """Return the least processor milliseconds of solvers in turns, whose values must agree."""
    least, values = dict.fromkeys(solvers, math.inf), {}
    for _ in range(repeats):
        for who, solve in solvers.items():
            began = time.process_time()
            values[who] = solve()
            least[who] = min(least[who], 1e3 * (time.process_time() - began))
    first = next(iter(values.values()))
    if not all(abs(x - first) <= 1e-4 * abs(x) for x in values.values()):
        raise AssertionError(f"values differ: {values}")
    return least


def race(size: int, name: str) -> Line:
    """Return the line of all competitors on one problem."""
    degree = 10 if size < MOST_REPEATED else 30
    problem = FAMILIES[name](max(size // degree, 2), degree)
    n_arcs = problem.costs.size
    found = {
        who: functools.partial(solve, problem)
        for who, solve in installed().items()
        if n_arcs <= MOST_ARCS.get(who, 10**9)
    }
    milliseconds = timed(found, REPEATS if n_arcs <= MOST_REPEATED else 1)
    return {"problem": name, "n": problem.a.size, "arcs": n_arcs, "ms": milliseconds}


def grid_race(side: int) -> Line:
    """Return the line of one problem on a square grid: cityblock costs, or a flow on the graph."""
    rng = np.random.default_rng(0)
    A, B = (x / x.sum() for x in rng.random((2, side, side)))
    at = np.arange(side * side).reshape(side, side)
    i = np.concatenate([at[1:].ravel(), at[:, 1:].ravel()])
    j = np.concatenate([at[:-1].ravel(), at[:, :-1].ravel()])
    G = sparse.csr_array((np.ones(i.size), (i, j)), shape=(side * side, side * side))
    a, b = A.ravel(), B.ravel()
    found = {
        "epsilot": lambda: float(epsilot.solve_grid(A, B, rtol=1e-9).value),
        "solve_graph": lambda: float(epsilot.solve_graph(G, a, b, directed=False).value),
    }
    milliseconds = timed(found, REPEATS)
    return {"problem": "grid, weights", "n": at.size, "arcs": 2 * i.size, "ms": milliseconds}


def row_of(line: Line) -> list[str]:
    """Return the row of a line in the table."""
    ms = line["ms"]
    others = [x for who, x in ms.items() if who != "epsilot"]
    ratio = f"{min(others) / ms['epsilot']:.2f}" if others else "–"
    shown = [f"{ms[who]:.4g}" if who in ms else "–" for who in (*COMPETITORS, "solve_graph")]
    return [line["problem"], f"{line['n']:,}", f"{line['arcs']:,}", *shown, ratio]


def summary(lines: list[Line]) -> str:
    """Return the page of all lines."""
    columns = ("problem", "n", "arcs", *(f"{x}, ms" for x in (*COMPETITORS, "solve_graph")))
    rows = [row_of(line) for line in sorted(lines, key=lambda x: (x["n"], x["problem"]))]
    blocks: list[document.Block] = [
        document.Command("python -m epsilot_lab sparse --out docs/results/sparse"),
        document.Paragraph(
            f"Least processor milliseconds of {REPEATS} runs in turns (one above 200,000 arcs), "
            "with construction and proof. The ratio is that of the fastest other column to "
            "epsilot: below 1 epsilot is slower. On grids, epsilot is `solve_grid`."
        ),
        document.Table((*columns, "ratio"), tuple(map(tuple, rows))),
        document.Heading("Environment"),
        document.environment_table(lines),
    ]
    return document.to_markdown("Sparse costs beside other libraries", blocks)


def races(sizes: list[int], sides: list[int], only: str, out: Path | None) -> None:
    """Run the races; print every row, and with a folder keep lines and summary there."""
    store = None
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        store = Store(out / "solves.jsonl", ("problem", "n"))
    for is_even in (True, False):
        by_epsilot(random_arcs(50, 4, is_even))
    if sides:
        grid_race(4)
    todo = [functools.partial(race, size, x) for size in sizes for x in FAMILIES if only in x]
    todo += [functools.partial(grid_race, side) for side in sides]
    for run in todo:
        line = run()
        print(markdown_row(row_of(line)), flush=True)
        if store is not None and out is not None:
            more = {"versions": versions("ortools", "networkx"), "machine": machine()}
            store.append(line | more)
            document.write_text(out / "summary.md", summary(list(store)))


# -- random problems against HiGHS -----------------------------------------------------------------


def drawn(seed: int) -> tuple[Any, Any, Any, float | None]:
    """Return a cost with forbidden pairs, weights, and a mass or None."""
    rng = np.random.default_rng([33, seed])
    n, m = rng.integers(1, 9, 2)
    scale = 10.0 ** rng.integers(-3, 4)
    C = rng.normal(size=(n, m)) * scale if seed % 3 else rng.integers(-3, 5, (n, m)) * 1.0
    C[rng.random((n, m)) < rng.choice([0.1, 0.4, 0.7, 0.9])] = np.inf
    a, b = rng.random(n) + 0.01, rng.random(m) + 0.01
    if seed % 5 == 0:
        a, b = np.ones(n), np.ones(m)
    if seed % 7 == 0 and min(n, m) > 1:
        a[0], b[-1] = 0.0, 0.0
    mass = None if seed % 4 else float(rng.uniform(0.05, 0.9))
    return C, a / a.sum(), b / b.sum(), mass


def optimum(C: Any, a: Any, b: Any, mass: float | None) -> float | None:
    """Return the optimum by HiGHS, or None if there is none."""
    i, j = np.nonzero(np.isfinite(C))
    if i.size == 0:
        return None
    A = np.zeros((a.size + b.size, i.size))
    A[i, np.arange(i.size)] = A[a.size + j, np.arange(i.size)] = 1
    masses = np.concatenate([a, b])
    kind: dict[str, Any] = {"A_eq": A, "b_eq": masses}
    if mass is not None:
        kind = {"A_ub": A, "b_ub": masses, "A_eq": np.ones((1, i.size)), "b_eq": [mass]}
    found = linprog(C[i, j], **kind)
    return found.fun if found.status == 0 else None


def is_cut(cut: epsilot.Infeasible, C: Any, a: Any, b: Any, mass: float | None) -> bool:
    """Tell whether a cut proves what it says, by sums of masses alone."""
    reached = np.flatnonzero(np.isfinite(C[cut.sources]).any(axis=0))
    sent = (1.0 if mass is None else mass) - (a.sum() - a[cut.sources].sum())
    is_true = abs(cut.excess - (sent - b[cut.targets].sum())) < 1e-12
    return bool(is_true and cut.excess > 0 and set(reached) <= set(cut.targets))


def agrees(seed: int) -> str:
    """Solve a random problem; return "optimum", "cut" or what is wrong."""
    C, a, b, mass = drawn(seed)
    expected = optimum(C, a, b, mass)
    given = {} if mass is None else {"mass": mass}
    try:
        found = epsilot.solve(C if seed % 2 else sparse_of(C), a, b, rtol=1e-9, **given)  # type: ignore[arg-type]
    except epsilot.Infeasible as error:
        return "cut" if expected is None and is_cut(error, C, a, b, mass) else f"{seed}: false cut"
    if expected is None:
        return f"{seed}: an optimum where HiGHS has none"
    size = max(1.0, float(np.abs(C[np.isfinite(C)]).max()))
    is_right = abs(found.value - expected) <= TOLERANCE * size
    is_below = found.lower_bound <= expected + TOLERANCE * size
    uses_arcs = not found.plan[np.isinf(C)].any()
    f, g = found.potentials
    is_dual = mass is not None or bool((f[:, None] + g <= C).all())
    is_good = found.converged and is_right and is_below and uses_arcs and is_dual
    return "optimum" if is_good else f"{seed}: {found.value} instead of {expected}"


def sparse_of(C: Any) -> epsilot.Sparse:
    """Return the arcs of a matrix with infinite entries."""
    i, j = np.nonzero(np.isfinite(C))
    return epsilot.Sparse(i, j, C[i, j], C.shape)


def check(n_problems: int) -> None:
    """Print how many random problems agree with HiGHS."""
    counts: dict[str, int] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error", epsilot.ConvergenceWarning)
        for seed in range(n_problems):
            told = agrees(seed)
            if told not in ("optimum", "cut"):
                print(told, flush=True)
                told = "wrong"
            counts[told] = counts.get(told, 0) + 1
    print(", ".join(f"{told}: {count}" for told, count in sorted(counts.items())))


def main(argv: list[str] | None = None) -> None:
    """Run the races, or check random problems."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--arcs", type=int, nargs="+", default=[10_000, 40_000, 100_000, 1_000_000])
    parser.add_argument("--grids", type=int, nargs="*", default=[64, 128], help="sides of grids")
    parser.add_argument("--out", type=Path, help="folder of lines and summary")
    parser.add_argument("--only", default="", help="part of the names of the problems")
    parser.add_argument("--check", type=int, default=0, help="random problems to check by HiGHS")
    options = parser.parse_args(argv)
    if options.check:
        check(options.check)
    else:
        races(options.arcs, options.grids, options.only, options.out)
