"""Time epsilot in turns with other implementations of the same computation.

    python -m epsilot_lab races line --sizes 1000 10000       # one race
    python -m epsilot_lab races partial --out docs/results/beyond
    python -m epsilot_lab races metrics --toy                 # seconds, to see that it runs

A race yields the rows of a table. All competitors take turns, so that a busy machine slows them
alike. Seconds are of the processor unless a column says otherwise.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import ot
from scipy.spatial.distance import cdist
from scipy.stats import wasserstein_distance

import epsilot
from epsilot import parallel
from epsilot._types import Matrix
from epsilot.geometry import Grid, PointCloud
from epsilot.metrics import CDIST_METRICS
from epsilot.problems.problem import Entropic, make_problem
from epsilot.solvers import make_solver

from ..document import Block, Command, Table, environment_table, to_markdown, write_text
from ..dotmark import CLASSES, pair
from ..environment import machine, versions
from ..instances import Instance, clouds, images, random, squared
from ..measuring import in_turns, repeated, timed

Row = tuple[str, ...]
Calls = dict[str, Callable[[], Any]]
#: Sizes and seeds -> rows
Rows = Callable[[Sequence[int], int], Iterator[Row]]


@dataclass(frozen=True)
class Race:
    """A table: title, columns, rows by sizes and seeds, and the usual sizes and toy sizes."""

    title: str
    columns: tuple[str, ...]
    rows: Rows
    sizes: tuple[int, ...]
    toy: tuple[int, ...]
    seeds: int = 3


# -- lines and grids ---------------------------------------------------------------------------


def line(sizes: Sequence[int], seeds: int) -> Iterator[Row]:
    """Yield rows: exact transport between points on a line, with the gap it proves."""
    for n in sizes:
        for metric in ("sqeuclidean", "euclidean"):
            for has_weights in (False, True):
                rng = np.random.default_rng(0)
                x, y = rng.random(n), rng.random(n) ** 2
                a, b = (rng.dirichlet(np.ones(n)) if has_weights else None for _ in "ab")
                cloud = PointCloud(x, y, metric)
                run = partial(epsilot.solve, cloud, a, b, rtol=1e-9, method="monotone")
                result = run()
                taken = repeated(run, 0.3).median.processor
                words = "random" if has_weights else "equal"
                gap = abs(result.gap) / result.value
                yield f"{n:,}", metric, words, f"{taken:.3f}", f"{gap:.0e}"


def grid_or_matrix(sizes: Sequence[int], seeds: int) -> Iterator[Row]:
    """Yield rows: images given as a grid, as a matrix, and as a matrix of unknown entries."""
    for side in sizes:
        for name in CLASSES:
            A, B = pair(name, side, 0)
            a, b = (x.ravel() / x.sum() for x in (A, B))
            for metric in ("sqeuclidean", "cityblock"):
                M = Grid(A.shape, None, metric).block(0, A.size)
                for rtol in (0.01, 1e-6):
                    goal: Any = {"rtol": rtol, "normalize": True, "on_limit": "ignore"}
                    calls: list[Callable[[], epsilot.Result]] = [
                        partial(epsilot.solve_grid, A, B, metric=metric, **goal),
                        partial(epsilot.solve, M, a, b, **goal),
                        partial(epsilot.solve, M, a, b, method="restricted_simplex", **goal),
                    ]
                    found = [repeated(call, 1.0, most=3) for call in calls]
                    results = [runs.result for runs in found if runs.result is not None]
                    values = [result.value for result in results]
                    assert np.ptp(values) <= 2.1 * rtol * max(values), values
                    spent = [runs.least.processor for runs in found]
                    cells = (
                        f"{seconds:.4f} ({result.method})"
                        for seconds, result in zip(spent, results, strict=True)
                    )
                    mark = "slower" if spent[0] > min(spent[1:]) else ""
                    yield name, f"{side}", metric, f"{rtol:g}", *cells, mark


# -- metrics and Wasserstein distances -----------------------------------------------------------

#: Metrics with the keywords of PointCloud and of cdist; names without compiled kernels last.
_METRICS: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("sqeuclidean", {}, {}),
    ("euclidean", {}, {}),
    ("cityblock", {}, {}),
    ("chebyshev", {}, {}),
    ("cosine", {}, {}),
    ("minkowski", {"metric_params": {"p": 3}}, {"p": 3}),
    ("euclidean", {"p": 3}, {}),
    *((name, {}, {}) for name in CDIST_METRICS),
)


def metrics(sizes: Sequence[int], seeds: int) -> Iterator[Row]:
    """Yield rows: nanoseconds per cost beside cdist, and seconds of a solve to 1 %."""
    for n in sizes:
        X, Y = np.random.default_rng(0).random((2, n, 3))
        for name, keywords, of_cdist in _METRICS:
            cloud = PointCloud(X, Y, name, **keywords)
            power = keywords.get("p", 1)
            calls: Calls = {
                "cdist": lambda: cdist(X, Y, name, **of_cdist) ** power,  # noqa: B023
                "ours": lambda: cloud.block(0, n),  # noqa: B023
                "solve": partial(epsilot.solve_sample, X, Y, metric=name, **keywords),
            }
            seconds, _ = _raced(calls, 3)
            nanoseconds = [f"{1e9 * x / n**2:.1f}" for x in seconds[:2]]
            yield str(cloud.metric), f"{n:,}", *nanoseconds, f"{seconds[2]:.2g}"


def wasserstein_1d(sizes: Sequence[int], seeds: int) -> Iterator[Row]:
    """Yield rows: W_p between values, beside SciPy (p = 1) and POT, without and with bounds."""
    for n in sizes:
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=n), 2 * rng.normal(size=n) + 1
        a, b = rng.dirichlet(np.ones(n), 2)
        for p in (1, 1.5, 2, 3):
            calls: Calls = {
                "POT": partial(ot.wasserstein_1d, x, y, a, b, p=p),
                "ours": partial(epsilot.wasserstein_1d, x, y, a, b, p=p),
            }
            if p == 1:
                calls["SciPy"] = partial(wasserstein_distance, x, y, a, b)
            seconds, (value, distance, *_) = _raced(calls, 3)
            assert abs(distance - value ** (1 / p)) <= 1e-9 * distance
            others = [f"{1e3 * s:.3g}" for s in (*seconds[2:], seconds[0])]
            scipy_ms, pot_ms = others if p == 1 else ("", *others)
            gap = distance.gap / distance
            yield f"{n:,}", f"{p:g}", scipy_ms, pot_ms, f"{1e3 * seconds[1]:.3g}", f"{gap:.0e}"


# -- partial and unbalanced transport ------------------------------------------------------------


def _points(n: int, seed: int) -> Instance:
    rng = np.random.default_rng(seed)
    M = squared(*clouds(n, rng, 2, "spread"))
    a, b = rng.dirichlet(np.ones(n), 2)
    return M / M.max(), a, b


_BEYOND: dict[str, Callable[[int, int], Instance]] = {
    "images, l1": lambda n, seed: images(math.isqrt(n), seed),
    "2-d points, squared": _points,
    "random costs": random,
}
MASS = 0.9


def _quietly(call: Callable[[], Any]) -> Callable[[], Any]:
    def silent() -> Any:
        with warnings.catch_warnings(action="ignore"):
            return call()

    return silent


def _raced(calls: Calls, rounds: int) -> tuple[list[float], list[Any]]:
    """Return the median processor seconds of all, and what they found."""
    for call in calls.values():
        call()
    runs = in_turns(calls, rounds)
    return [r.median.processor for r in runs.values()], [r.result for r in runs.values()]


def partial_mass(sizes: Sequence[int], seeds: int) -> Iterator[Row]:
    """Yield rows: 0.9 of the mass, by POT's simplex with dummy points and by ours, exactly."""
    for n in sizes:
        for name, draw in _BEYOND.items():
            times, excess = [], []
            for seed in range(seeds):
                M, a, b = draw(n, seed)
                calls: Calls = {
                    "theirs": _quietly(partial(ot.partial.partial_wasserstein, a, b, M, m=MASS)),
                    "ours": partial(epsilot.solve, M, a, b, mass=MASS, rtol=1e-9),
                }
                seconds, (plan, result) = _raced(calls, 3)
                times.append(seconds)
                audit = epsilot.certify(M, a, b, plan=plan, potentials=result.potentials, mass=MASS)
                excess.append(audit.gap / result.value)
            theirs, ours = (median(column) for column in zip(*times, strict=True))
            ratio = f"{theirs / ours:.1f}"
            yield name, f"{n}", f"{theirs:.3g}", f"{ours:.3g}", ratio, f"{max(excess):.1e}"


def unbalanced(sizes: Sequence[int], seeds: int) -> Iterator[Row]:
    """Yield rows: KL penalties, totals 1 and 1.4, by POT's mm_unbalanced and by ours to 1 %."""
    for n in sizes:
        for name, draw in _BEYOND.items():
            for price in (0.05, 0.5, 5.0):
                times, excess, gaps, sweeps = [], [], [], []
                for seed in range(seeds):
                    M, a, b = draw(n, seed)
                    b = 1.4 * b
                    calls: Calls = {
                        "theirs": _quietly(partial(ot.unbalanced.mm_unbalanced, a, b, M, price)),
                        "ours": partial(epsilot.solve, M, a, b, unbalanced=price, rtol=0.01),
                    }
                    seconds, (plan, result) = _raced(calls, 3)
                    times.append(seconds)
                    audit = epsilot.certify(M, a, b, plan=np.asarray(plan), unbalanced=price)
                    excess.append(audit.gap / audit.lower)
                    gaps.append(result.gap / result.lower_bound)
                    sweeps.append(result.n_iter)
                theirs, ours = (median(column) for column in zip(*times, strict=True))
                yield (
                    *(name, f"{n}", f"{price:g}", f"{theirs:.3g}", f"{max(excess):.2%}"),
                    *(f"{ours:.3g}", f"{max(gaps):.2%}"),
                    *(f"{theirs / ours:.1f}", f"{median(sweeps):g}"),
                )


# -- persistence diagrams ----------------------------------------------------------------------


def _persistence(kind: str, n: int, seed: int) -> Matrix:
    """Return a diagram with births in [0, 1], or in clusters."""
    rng = np.random.default_rng(seed)
    if kind == "clusters":
        centres = np.random.default_rng(7).random((20, 2)) + np.array([0.0, 0.2])
        near = centres[rng.integers(20, size=n)] + 0.03 * rng.normal(size=(n, 2))
        births, lives = near[:, 0], np.abs(near[:, 1])
    else:
        births = rng.random(n)
        lives = rng.random(n) if kind == "uniform" else rng.exponential(LIVES[kind], n)
    return np.column_stack([births, births + lives])


#: Mean persistence of the points of a kind of diagram.
LIVES = {"noise": 0.01, "exponential": 1.0}
#: Most points of diagrams that GUDHI solves here, by its auction or by a cost matrix.
MAX_GUDHI = 10_000


def diagrams(sizes: Sequence[int], seeds: int) -> Iterator[Row]:
    """Yield rows: exact distances of persistence diagrams, beside GUDHI."""
    from epsilot.applications import persistence_distance

    has_gudhi = importlib.util.find_spec("gudhi") is not None
    for n in sizes:
        for kind in ("noise", "uniform", "exponential", "clusters"):
            is_small = n <= MAX_GUDHI
            for order, p in ((1, math.inf), (2, 2)) if is_small else ((1, math.inf),):
                one, two = (_persistence(kind, n, seed) for seed in (0, 1))
                goal: dict[str, Any] = {"order": order, "internal_p": p}
                persistence_distance(one[:1500], two[:1500], **goal)  # compiles
                calls: Calls = {"ours": partial(persistence_distance, one, two, **goal)}
                if has_gudhi and is_small:
                    hera, gudhi = (
                        importlib.import_module(f"gudhi.{name}").wasserstein_distance
                        for name in ("hera", "wasserstein")
                    )
                    calls["hera"] = partial(hera, one, two, delta=0.01, **goal)
                    calls["gudhi"] = partial(gudhi, one, two, **goal)
                found = {name: timed(call) for name, call in calls.items()}
                seconds = [
                    f"{found[name][0].processor:.2f}" if name in found else ""
                    for name in ("ours", "hera", "gudhi")
                ]
                value = found["ours"][1]
                if "gudhi" in found:
                    assert math.isclose(value, found["gudhi"][1], rel_tol=1e-11)
                gap = 1 - (value.lower / value.upper) ** order
                matched = int((value.matching >= 0).all(axis=1).sum())
                yield (
                    *(kind, f"{n:,}", f"{order}", f"{p:g}", f"{matched:,}", *seconds),
                    f"{gap:.0e}",
                )


# -- POT's functions by their own names ------------------------------------------------------------


def _diagrams(n: int, rng: np.random.Generator) -> Instance:
    """Return the problem of two persistence diagrams as GUDHI poses it: n points and a diagonal."""
    X, Y = (np.sort(rng.random((n, 2)), axis=1) for _ in "XY")
    M = np.zeros((n + 1, n + 1))
    M[:n, :n] = np.abs(X[:, None] - Y).max(axis=2)
    M[:n, n], M[n, :n] = (np.diff(D)[:, 0] / 2 for D in (X, Y))
    weights = np.append(np.ones(n), n)
    return M, weights, weights.copy()


def pot_names(sizes: Sequence[int], seeds: int) -> Iterator[Row]:
    """Yield rows: calls of POT's functions, and of ours by the same names, per call."""
    import epsilot.pot

    for n in sizes:
        rng = np.random.default_rng(0)
        M, a, b = _points(n, 0)
        uniform = np.full(n, 1 / n)
        diagrams = _diagrams(n, rng)
        line = rng.random((2, n))
        many = {"numItermax": 10**7}
        patterns: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
            "emd2, random weights": ("emd2", (a, b, M), many),
            "emd of a minibatch (torchcfm)": ("emd", (uniform, uniform, M), {}),
            "emd2 of diagrams (GUDHI)": ("emd2", (*diagrams[1:], diagrams[0]), many),
            "emd2_1d with log": ("emd2_1d", tuple(line), {"log": True}),
            "sinkhorn, reg 0.1": ("sinkhorn", (a, b, M, 0.1), {}),
            "sinkhorn, reg 0.01": ("sinkhorn", (a, b, M, 0.01), {}),
            "entropic partial, reg 0.1": (
                "partial.entropic_partial_wasserstein", (a, b, M, 0.1, 0.5), {}
            ),
        }  # fmt: skip
        for name, pattern in patterns.items():
            if n > MAX_ROWS.get(pattern[0], math.inf):
                continue
            calls: Calls = {
                "theirs": _quietly(partial(_repeated_call, ot, *pattern, n)),
                "ours": _quietly(partial(_repeated_call, epsilot.pot, *pattern, n)),
            }
            (theirs, ours), _ = _raced(calls, seeds)
            each = 1e6 / max(1, REPEATED_ROWS // n)
            yield name, f"{n}", f"{each * theirs:.3g}", f"{each * ours:.3g}", f"{theirs / ours:.2f}"


#: Calls of small problems are repeated.
REPEATED_ROWS = 2000
#: Most points of a function that is not measured on large problems.
MAX_ROWS = {"sinkhorn": 1000, "emd2_1d": 1000, "partial.entropic_partial_wasserstein": 100}


def _repeated_call(
    library: Any, name: str, arguments: tuple[Any, ...], keywords: dict[str, Any], n: int
) -> None:
    function = attrgetter(name)(library)
    for _ in range(max(1, REPEATED_ROWS // n)):
        function(*arguments, **keywords)


# -- updates of entropic solvers -------------------------------------------------------------------


def _entropic(n: int, eta: float) -> tuple[Entropic, Any]:
    """Return uniform points in the square, squared distances over their maximum."""
    M = squared(*clouds(n, np.random.default_rng(0)))
    M /= M.max()
    made = make_problem(M)
    return Entropic(made.geometry, eta, made.p, made.q), M


def _our_step(method: str, target: Any, n_steps: int, **options: Any) -> Callable[[], float]:
    """Return a call that measures the processor seconds of a step."""
    solver: Any = make_solver(method, options).resolved("paper", target)
    rng = np.random.default_rng(0)

    def seconds() -> float:
        state, _ = solver.init(target, rng)
        solver.step(target, state, rng)
        spent, _ = timed(lambda: [solver.step(target, state, rng) for _ in range(n_steps)])
        return spent.processor / n_steps

    return seconds


def _their_step(
    function: Callable[..., Any], target: Entropic, M: Any, low: int, high: int
) -> Callable[[], float]:
    """Return a call that measures the processor seconds of an iteration of POT."""

    def run(n_iter: int) -> float:
        limits = {"numItermax": n_iter, "stopThr": 0, "warn": False}
        spent, _ = timed(lambda: function(target.p, target.q, M, target.eta, **limits))
        return spent.processor

    return lambda: (run(high) - run(low)) / (high - low)


def updates(sizes: Sequence[int], seeds: int) -> Iterator[Row]:
    """Yield rows: a Greenkhorn update and a log-domain Sinkhorn iteration, on one thread.

    Set OMP_NUM_THREADS=1, which NumPy reads when it is imported.
    """
    n_update, n_iterate = sizes
    (coarse, M_coarse), (fine, M_fine) = _entropic(n_update, 0.05), _entropic(n_iterate, 0.01)
    calls = [
        _our_step("greenkhorn", coarse, 2),
        _their_step(ot.bregman.greenkhorn, coarse, M_coarse, 200, 2200),
        _our_step("sinkhorn", fine, 4, domain="log"),
        _their_step(ot.bregman.sinkhorn_log, fine, M_fine, 1, 4),
    ]
    with parallel.limit(1):
        least = np.min([[call() for call in calls] for _ in range(3 * seeds)], axis=0)
    least *= [1 / (2 * n_update), 1, 2, 1]  # an epoch has 2 n updates, an iteration two half-steps
    for name, n, ours, theirs in (
        ("Greenkhorn update", n_update, *least[:2]),
        ("log-domain Sinkhorn iteration", n_iterate, *least[2:]),
    ):
        yield name, f"{n}", f"{1e6 * theirs:.3g}", f"{1e6 * ours:.3g}", f"{theirs / ours:.1f}"


# -- assignments --------------------------------------------------------------------------------

#: Square costs of each kind.
ASSIGNED: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "random": lambda rng, n: rng.random((n, n)),
    "2-d, squared": lambda rng, n: cdist(rng.random((n, 2)), rng.random((n, 2)), "sqeuclidean"),
    "64-d, squared": lambda rng, n: cdist(rng.random((n, 64)), rng.random((n, 64)), "sqeuclidean"),
    "integers 0 to 99": lambda rng, n: rng.integers(0, 100, (n, n)).astype(float),
}
#: Problems and cells of a stack at most, largest size of a problem in one, and rounds in turns.
MAX_STACK, MAX_STACK_CELLS, MAX_STACKED, ASSIGNMENT_ROUNDS = 128, 1 << 20, 256, 3


def assignments(sizes: Sequence[int], seeds: int) -> Iterator[Row]:
    """Yield rows: assignments one by one and in batches, to 1e-9 and proved, beside lapx."""
    if importlib.util.find_spec("lap") is None:
        yield "lapx is not installed (pip install lapx)", *8 * ("",)
        return
    import lap

    for n in sizes:
        for name, draw in ASSIGNED.items():
            size = seeds
            if n <= MAX_STACKED:
                size = max(seeds, min(MAX_STACK, MAX_STACK_CELLS // n**2))
            costs = np.array([draw(np.random.default_rng(k), n) for k in range(size)])
            calls: Calls = {
                "lapjv": partial(_assigned, lap.lapjv, costs),
                "solve": partial(_solved, costs),
            }
            if n <= MAX_STACKED:
                calls["lapjvx_batch"] = partial(lap.lapjvx_batch, costs, n_threads=1)
                calls["solve_batch"] = partial(_solved_stack, costs)
            first = {call: runs.result for call, runs in in_turns(calls, 1).items()}
            ours = first["solve"] or []
            assert np.allclose(first["lapjv"] or [], [x.value for x in ours], rtol=1e-8)
            assert all(x.converged for x in ours)
            runs = in_turns(calls, ASSIGNMENT_ROUNDS).values()
            ms = [1e3 * run.least.processor / size for run in runs]
            cells = [f"{x:.3g}" for x in (*ms[:2], ms[0] / ms[1])]
            if n <= MAX_STACKED:
                cells += [f"{x:.3g}" for x in (*ms[2:], ms[2] / ms[3])]
            yield f"{n}", name, ours[0].method, *cells, *("",) * (6 - len(cells))


def _assigned(lapjv: Callable[..., Any], costs: Any) -> list[float]:
    return [lapjv(M)[0] / len(M) for M in costs]


def _solved(costs: Any) -> list[epsilot.Result]:
    return [epsilot.solve(M, rtol=1e-9) for M in costs]


def _solved_stack(stack: Any) -> Any:
    return epsilot.solve_batch(stack, rtol=1e-9, n_threads=1).value


# -- all races ------------------------------------------------------------------------------------

_SECONDS = ("s POT", "s ours", "times faster")
RACES: dict[str, Race] = {
    "line": Race(
        "Exact transport on a line",
        ("points", "metric", "weights", "processor s", "relative gap"),
        line, (10_000, 100_000, 1_000_000), (300,),
    ),
    "grid-or-matrix": Race(
        "Images as a grid, as a matrix, and as a matrix of unknown entries",
        ("class", "side", "metric", "rtol", "grid s", "matrix s", "entries s", "grid is"),
        grid_or_matrix, (32, 64), (9,),
    ),
    "metrics": Race(
        "Costs of points in 3-d by name, beside scipy.spatial.distance.cdist",
        ("metric", "points", "cdist, ns per cost", "ours, ns per cost", "solve to 1 %, s"),
        metrics, (2000,), (20,),
    ),
    "wasserstein-1d": Race(
        "Wasserstein distances of weighted values, beside SciPy and POT",
        ("n", "p", "SciPy, ms", "POT, ms", "ours, ms", "relative gap"),
        wasserstein_1d, (1000, 100_000), (30,),
    ),
    "partial": Race(
        "0.9 of the mass, beside ot.partial.partial_wasserstein",
        ("problem", "n", *_SECONDS, "largest excess of POT"),
        partial_mass, (1024,), (36,),
    ),
    "unbalanced": Race(
        "KL-unbalanced, beside ot.unbalanced.mm_unbalanced",
        ("problem", "n", "λ", "s POT", "gap of POT", "s ours", "our gap", "times faster", "sweeps"),
        unbalanced, (256,), (16,),
    ),
    "diagrams": Race(
        "Wasserstein distances of persistence diagrams, beside GUDHI",
        ("points", "n", "order", "internal p", "matched pairs", "ours, s", "hera, delta 0.01, s",
         "gudhi, s", "proved gap of ours"),
        diagrams, (1000, 100_000), (30,),
    ),
    "pot-names": Race(
        "One call of a function of POT, and of ours by the same name",
        ("call", "n", "POT, µs", "epsilot.pot, µs", "times faster"),
        pot_names, (20, 100, 500, 2000, 5000), (20,),
    ),
    "updates": Race(
        "One update, beside POT, on one thread",
        ("update", "n", "POT, µs", "ours, µs", "times faster"),
        updates, (1000, 2048), (20, 20),
    ),
    "assignments": Race(
        "Assignments beside lapx's lapjv, and batches beside its lapjvx_batch, on one thread",
        ("n", "costs", "our method", "lapjv, ms", "solve, ms", "times faster",
         "lapjvx_batch, ms", "solve_batch, ms", "times faster"),
        assignments, (64, 128, 256, 512, 1024, 2048, 5000), (8,), 2,
    ),
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Run races and print their tables; with a folder, write a page."""
    run_races("races", RACES, "Time epsilot beside other libraries.", argv)


def run_races(
    study: str, races: dict[str, Race], description: str | None, argv: Sequence[str] | None
) -> None:
    """Run the races of a study that a command line names, all by default; print or write a page."""
    parser = argparse.ArgumentParser(
        prog=f"python -m epsilot_lab {study}", description=(description or "").partition("\n")[0]
    )
    needed = "+" if study == "races" else "*"
    parser.add_argument("races", nargs=needed, metavar="TABLE", help=", ".join(races))
    parser.add_argument("--sizes", type=int, nargs="+")
    parser.add_argument("--seeds", type=int, help="repetitions")
    parser.add_argument("--toy", action="store_true", help="seconds, to see that it runs")
    parser.add_argument("--out", type=Path, help="folder of summary.md")
    options = parser.parse_args(argv)
    if unknown := [name for name in options.races if name not in races]:
        parser.error(f"{unknown[0]!r} is unknown; it must be one of {', '.join(races)}")
    names = options.races or list(races)
    words = " ".join(["python -m epsilot_lab", study, *options.races])
    blocks: list[Block] = [Command(words)]
    for name in names:
        race = races[name]
        sizes = options.sizes or (race.toy if options.toy else race.sizes)
        seeds = options.seeds or (1 if options.toy else race.seeds)
        blocks.append(Table(race.columns, tuple(race.rows(sizes, seeds)), race.title))
    blocks.append(environment_table([{"versions": versions(), "machine": machine()}]))
    text = to_markdown(f"{study.capitalize()}: {', '.join(names)}", blocks)
    print(text)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        write_text(options.out / "summary.md", text)
