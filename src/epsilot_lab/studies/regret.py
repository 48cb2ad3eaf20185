"""Compare method="auto" with the fastest method, on problems of many shapes and sizes.

    python -m epsilot_lab regret docs/results/regret                 # what is missing, then tables
    python -m epsilot_lab regret OUT --methods auto                  # only "auto"
    python -m epsilot_lab regret OUT --toy                           # all rows, smaller

Every method that can serve a problem solves it to the problem's accuracy, in processor seconds of
one thread. A method that takes more than a few times the time of the best one so far is stopped.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import signal
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import ot  # noqa: F401 -- loading it is no part of a solve

import epsilot
from epsilot.engine.interrupts import forget_interrupts
from epsilot.errors import InvalidProblem

from .. import document
from ..environment import machine, versions
from ..instances import ODD_COSTS, SHAPES, WEIGHTS, images, unit
from ..measuring import repeated, timed
from ..store import Line, Store

Array = np.ndarray
Rng = np.random.Generator
Keywords = tuple[tuple[str, Any], ...]

KEY = ("case", "method", "version")
#: Largest size of a trial.
TOY = 60
#: Processor seconds after which a solve is stopped, and the same as a multiple of the best so far.
LIMIT, MIN_LIMIT, LIMIT_RATIO = 20.0, 1.0, 3.0
#: Wall seconds that repeats of a solve share, and seconds of the longest that is repeated.
REPEAT_SECONDS, MAX_REPEATED = 0.3, 4.0

#: Methods of problems without an entropy, and of the other kinds. Sinkhorn's algorithm, which was
#: slower wherever it was tried, is left out.
EXACT = (
    *("monotone", "grid_flow", "small_simplex", "network_simplex"),
    *("auction", "restricted_simplex", "exact"),
)
ENTROPIC = ("sinkhorn_newton", "sinkhorn", "box_newton", "aam")
UNBALANCED = ("unbalanced_sinkhorn", "clipped_sinkhorn", "unbalanced_pdasmd")


class CloudCase(NamedTuple):
    """Points in d dimensions."""

    shape: str
    d: int
    metric: str
    n: int
    m: int | None = None
    weights: str = "equal"
    keywords: Keywords = ()
    methods: tuple[str, ...] = EXACT

    @property
    def size(self) -> int:
        """Rows of the cost."""
        return self.n

    def call(self, rng: Rng, share: float) -> Callable[..., epsilot.Result]:
        """Return the solve of a share of the size."""
        n, m = (max(2, round(share * k)) for k in (self.n, self.m or self.n))
        X, Y = SHAPES[self.shape](rng, n, m, self.d)
        a, b = (WEIGHTS[self.weights](rng, k) for k in (n, m))
        return _bound(epsilot.solve_sample, (X, Y, a, b), {"metric": self.metric}, self.keywords)


class Stored(NamedTuple):
    """A stored cost; ``reg`` is a share of the largest one, and so are accuracies and prices."""

    draw: Callable[[Rng, int], tuple[Array, Array | None, Array | None]]
    n: int
    keywords: Keywords = ()
    methods: tuple[str, ...] = EXACT

    @property
    def size(self) -> int:
        """Rows of the cost."""
        return self.n

    def call(self, rng: Rng, share: float) -> Callable[..., epsilot.Result]:
        """Return the solve of a share of the size."""
        M, a, b = self.draw(rng, max(4, round(share * self.n)))
        relative = ("reg", "tol", "eps", "unbalanced")
        size = float(M.max())
        keywords = tuple((k, v * size if k in relative else v) for k, v in self.keywords)
        return _bound(epsilot.solve, (M, a, b), {}, keywords)


class ImageCase(NamedTuple):
    """Two fields on a grid."""

    shape: tuple[int, ...]
    metric: str
    law: str
    keywords: Keywords = ()
    methods: tuple[str, ...] = EXACT

    @property
    def size(self) -> int:
        """Rows of the cost."""
        return math.prod(self.shape)

    def call(self, rng: Rng, share: float) -> Callable[..., epsilot.Result]:
        """Return the solve of a share of the size."""
        power = 1 / len(self.shape)
        shape = tuple(max(3, round(share**power * k)) for k in self.shape)
        A, B = (unit(_field(rng, shape, self.law)) for _ in "AB")
        return _bound(epsilot.solve_grid, (A, B), {"metric": self.metric}, self.keywords)


def _field(rng: Rng, shape: tuple[int, ...], law: str) -> Array:
    """Return positive masses: white noise, or a smooth random field with a wide range."""
    noise = rng.normal(size=shape)
    if law == "noise":
        return rng.random(shape) + 1e-3
    frequencies = np.meshgrid(*(np.fft.fftfreq(k) * k for k in shape), indexing="ij")
    damping = (1 + sum(f**2 for f in frequencies)) ** -1.5
    field = np.fft.ifftn(np.fft.fftn(noise) * damping).real
    return np.asarray(np.exp(2 * field / field.std()))


def _bound(
    solve: Callable[..., epsilot.Result],
    positional: tuple[Any, ...],
    fixed: dict[str, Any],
    more: Keywords,
) -> Callable[..., epsilot.Result]:
    def call(method: str, seconds: float) -> epsilot.Result:
        limits = {"on_limit": "ignore", "n_threads": 1}
        with _interrupted_after(seconds):
            return solve(*positional, method=method, **fixed, **dict(more), **limits)

    return call


@contextmanager
def _interrupted_after(seconds: float) -> Iterator[None]:
    """Send Ctrl-C to a solve after some processor seconds; it then returns what it has."""
    before = signal.signal(signal.SIGPROF, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
        forget_interrupts()


def _dense(shape: str, d: int = 2, metric: str = "sqeuclidean") -> Callable[..., Any]:
    def draw(rng: Rng, n: int) -> tuple[Array, None, None]:
        from scipy.spatial.distance import cdist

        return cdist(*SHAPES[shape](rng, n, n, d), metric), None, None

    return draw


def _permuted(rng: Rng, n: int) -> tuple[Array, None, None]:
    """Return random costs with a cheap permutation, as of points and their noisy copies."""
    from scipy.spatial.distance import cdist

    X = rng.random((n, 2))
    return cdist(X, rng.permutation(X) + 0.01 * rng.normal(size=(n, 2)), "sqeuclidean"), None, None


def _integers(top: int) -> Callable[..., Any]:
    return lambda rng, n: (rng.integers(0, top, (n, n)).astype(float), None, None)


def _odd(name: str) -> Callable[..., Any]:
    return lambda rng, n: ODD_COSTS[name](n, int(rng.integers(1 << 30)))


def _image_cost(rng: Rng, n: int) -> Any:
    return images(max(3, math.isqrt(n)), int(rng.integers(1 << 30)))


def _random(rng: Rng, n: int) -> Any:
    return rng.random((n, n)), unit(rng.random(n)), unit(rng.random(n))


def _clouds() -> Iterator[tuple[str, CloudCase]]:
    """Yield the rows of clouds by name."""
    rows: dict[tuple[int, str], dict[str, tuple[int, ...]]] = {
        (1, "euclidean"): {"uniform": (10_000,)},
        (2, "sqeuclidean"): {
            "uniform": (300, 1000, 3000, 10_000), "Gaussians": (1000, 10_000),
            "clusters": (1000, 10_000), "apart": (10_000,), "collinear": (3000,),
            "duplicates": (3000,), "ties": (3000,), "circle to Gaussian": (10_000,),
        },
        (2, "euclidean"): {
            "uniform": (300, 1000, 3000, 10_000), "Gaussians": (3000, 10_000),
            "clusters": (3000, 10_000), "apart": (1000, 3000, 10_000), "near": (5000,),
            "ties": (3000,), "circle to Gaussian": (3000, 10_000), "collinear": (3000,),
        },
        (2, "cityblock"): {
            "uniform": (1000, 3000, 10_000), "Gaussians": (5000,), "apart": (3000,),
            "ties": (3000,),
        },
        (3, "sqeuclidean"): {"uniform": (3000, 10_000), "Gaussians": (5000,), "apart": (5000,)},
        (3, "euclidean"): {"uniform": (1000, 3000, 6000), "Gaussians": (5000,), "apart": (5000,)},
        (3, "cityblock"): {"uniform": (5000,)},
        (4, "sqeuclidean"): {
            "uniform": (1000, 3000, 10_000), "Gaussians": (5000,), "apart": (5000,),
        },
        (4, "euclidean"): {"uniform": (3000, 10_000)},
        (6, "sqeuclidean"): {"uniform": (3000, 6000), "decaying": (6000,)},
        (8, "sqeuclidean"): {"uniform": (3000, 6000), "mixture": (6000,)},
        (10, "sqeuclidean"): {"uniform": (6000,), "decaying": (6000,)},
        (10, "euclidean"): {"uniform": (3000,), "decaying": (5000,)},
        (16, "sqeuclidean"): {"decaying": (5000,)},
        (30, "sqeuclidean"): {"mixture": (5000,)},
        (50, "sqeuclidean"): {"Gaussians": (5000,)},
        (64, "cosine"): {"mixture": (3000,)},
    }  # fmt: skip
    for (d, metric), shapes in rows.items():
        for shape, sizes in shapes.items():
            for n in sizes:
                yield f"{d}-d {metric}, {shape}, {n:,}", CloudCase(shape, d, metric, n)
    for metric, weights, n in (
        ("sqeuclidean", "random", 10_000), ("sqeuclidean", "heavy", 10_000),
        ("euclidean", "random", 5000), ("euclidean", "heavy", 3000),
    ):  # fmt: skip
        name = f"2-d {metric}, uniform, {weights} weights, {n:,}"
        yield name, CloudCase("uniform", 2, metric, n, weights=weights)
    for n, m, metric in ((100, 20_000, "sqeuclidean"), (1000, 20_000, "euclidean")):
        yield f"2-d {metric}, uniform, {n:,} to {m:,}", CloudCase("uniform", 2, metric, n, m)
    exact = (("rtol", 1e-9),)
    for shape, metric in (("uniform", "sqeuclidean"), ("uniform", "euclidean"),
                          ("clusters", "sqeuclidean"), ("apart", "euclidean")):  # fmt: skip
        name = f"2-d {metric}, {shape}, 5,000, to 1e-9"
        yield name, CloudCase(shape, 2, metric, 5000, keywords=exact)
    name = "4-d sqeuclidean, uniform, 10,000, to 1e-9"
    yield name, CloudCase("uniform", 4, "sqeuclidean", 10_000, keywords=exact)


def _stored() -> Iterator[tuple[str, Stored | ImageCase]]:
    """Yield the rows of stored costs and grids by name."""
    for n in (30, 300, 1000, 2000):
        yield f"random costs, {n:,}", Stored(_random, n)
    for n in (300, 1000, 2000):
        yield f"integers 0 to 4, {n:,}", Stored(_integers(5), n)
    yield "integers 0 to 99, 1,000", Stored(_integers(100), 1000)
    for n in (300, 1500):
        yield f"stored 2-d sqeuclidean, {n:,}", Stored(_dense("uniform"), n)
    yield "stored 10-d euclidean, 1,000", Stored(_dense("uniform", 10, "euclidean"), 1000)
    for name in ("0.5 % zeros, else ones", "lognormal", "products", "n / 8 sources", "outliers"):
        yield f"{name}, 1,000", Stored(_odd(name), 1000)
    yield "stored l1 of images, 1,024", Stored(_image_cost, 1024)
    for side in (32, 64, 128):
        yield f"field {side}², sqeuclidean", ImageCase((side, side), "sqeuclidean", "smooth")
        yield f"field {side}², cityblock", ImageCase((side, side), "cityblock", "smooth")
    yield "noise 64², sqeuclidean", ImageCase((64, 64), "sqeuclidean", "noise")
    yield "noise 16³, sqeuclidean", ImageCase((16, 16, 16), "sqeuclidean", "noise")


def _other_kinds() -> Iterator[tuple[str, Stored | CloudCase]]:
    """Yield the rows of entropic, partial and unbalanced problems by name."""
    keywords: Keywords
    for reg in (1e-1, 1e-2, 1e-3, 1e-4):
        for n in (100, 500):
            keywords = (("reg", reg), ("tol", 1e-6))
            name = f"entropic, reg {reg:g}, 2-d points, {n}"
            yield name, Stored(_dense("uniform"), n, keywords, ENTROPIC)
    for n, reg in ((30, 2e-3), (100, 5e-4), (300, 1e-4)):
        keywords = (("reg", reg), ("tol", 1e-8))
        name = f"entropic, reg {reg:g}, near a permutation, {n}"
        yield name, Stored(_permuted, n, keywords, ENTROPIC)
    for n, reg in ((30, 2e-3), (100, 1e-3)):
        keywords = (("reg", reg), ("tol", 1e-8))
        yield f"entropic, reg {reg:g}, random costs, {n}", Stored(_random, n, keywords, ENTROPIC)
    partial = ("exact", "restricted_simplex", "auction", "small_simplex")
    for n in (200, 1000):
        yield f"partial, {n:,}", Stored(_dense("uniform"), n, (("mass", 0.7),), partial)
    yield (
        "partial, 2-d sqeuclidean, 6,000",
        CloudCase("Gaussians", 2, "sqeuclidean", 6000, keywords=(("mass", 0.7),), methods=partial),
    )
    tv = (("unbalanced", 0.2), ("unbalanced_type", "tv"))
    yield "TV, 500", Stored(_dense("Gaussians"), 500, tv, partial)
    for n, tol in ((100, 1e-8), (500, 1e-4)):
        keywords = (("unbalanced", 0.1), ("unbalanced_type", "kl"), ("eps", tol))
        yield f"KL to {tol:g}, {n}", Stored(_dense("Gaussians"), n, keywords, UNBALANCED)
    keywords = (("mass", 0.7), ("reg", 7e-4), ("tol", 1e-8))
    yield "entropic partial, reg 7e-4, 40", Stored(_dense("uniform"), 40, keywords, UNBALANCED)
    keywords = (("unbalanced", 0.1), ("unbalanced_type", "kl"), ("reg", 1e-2), ("tol", 1e-8))
    yield "entropic KL, reg 0.01, 200", Stored(_dense("Gaussians"), 200, keywords, UNBALANCED)


CASES: dict[str, CloudCase | Stored | ImageCase] = dict([*_clouds(), *_stored(), *_other_kinds()])


class RegretTask(NamedTuple):
    """One case by one method."""

    case: str
    method: str

    @property
    def identity(self) -> Line:
        """The fields that distinguish its line from all others."""
        return {**self._asdict(), "version": epsilot.__version__}


def _children_seconds() -> float:
    """Return the processor seconds of processes that have ended: long simplex runs have one."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(
    case: str, methods: Sequence[str], known: Sequence[Line], share: float
) -> Iterator[Line]:
    """Solve a case by some methods and yield a line for each."""
    call = CASES[case].call(np.random.default_rng([7, len(case), *case.encode()]), share)
    best = min((x["seconds"] for x in known if x["reached"]), default=math.inf)
    for method in methods:
        limit = LIMIT if method == "auto" else min(LIMIT, max(MIN_LIMIT, LIMIT_RATIO * best))
        line: Line = {"case": case, "method": method, "version": epsilot.__version__}
        solve = partial(call, method, limit)
        in_children = _children_seconds()
        try:
            first, result = timed(solve)
        except (InvalidProblem, MemoryError):
            yield {**line, "serves": False, "reached": False, "seconds": None, "chosen": None}
            continue
        seconds = first.thread + _children_seconds() - in_children
        if result.converged and seconds < MAX_REPEATED:  # the first call may compile
            in_children = _children_seconds()
            runs = repeated(solve, REPEAT_SECONDS, least=2)
            in_children = _children_seconds() - in_children
            seconds = runs.least.thread + in_children / len(runs.seconds)
        if result.converged:
            best = min(best, seconds)
        yield {
            **line, "serves": True, "reached": bool(result.converged), "seconds": seconds,
            "chosen": result.method, "gap": float(result.gap), "value": float(result.value),
            "choice": result.choice, "versions": versions(), "machine": machine(),
        }  # fmt: skip


def methods_of(case: str) -> list[str]:
    """Return the methods that may serve a case, and auto."""
    return [*CASES[case].methods, "auto"]


def run(store: Store, names: Sequence[str], only: Sequence[str], toy: bool) -> list[Line]:
    """Solve what the store lacks, by some methods, and return all lines."""
    tasks = [RegretTask(case, method) for case in names for method in methods_of(case)]
    for case in names:
        mine = [t for t in tasks if t.case == case]
        missing = [t.method for t in mine if t not in store and (not only or t.method in only)]
        share = min(1.0, TOY / CASES[case].size) if toy else 1.0
        for line in measure(case, missing, store.lines(mine), share):
            store.append(line)
            if line["serves"]:
                taken = f"{line['seconds']:.4f} s{'' if line['reached'] else ', not reached'}"
                print(f"{case}: {line['method']} ({line['chosen']}) {taken}", file=sys.stderr)
    store.arrange(tasks)
    return store.lines(tasks)


class Regret(NamedTuple):
    """A case, the time of "auto", and that of the fastest method named by hand."""

    case: str
    auto: Line
    best: Line
    others: list[Line]

    @property
    def ratio(self) -> float:
        """Return the time of "auto" by that of the best."""
        return self.auto["seconds"] / self.best["seconds"] if self.auto["reached"] else math.inf


def regrets(lines: Sequence[Line]) -> list[Regret]:
    """Return the regret of every case that some method solved."""
    found = []
    for case in dict.fromkeys(line["case"] for line in lines if line["method"] == "auto"):
        mine = [x for x in lines if x["case"] == case and x["serves"]]
        auto = next(x for x in mine if x["method"] == "auto")
        named = [x for x in mine if x["method"] != "auto"]
        best = min((x for x in named if x["reached"]), key=lambda x: x["seconds"], default=auto)
        found.append(Regret(case, auto, best, named))
    return found


def _cell(line: Line) -> str:
    text = f"{line['method']} {line['seconds']:.3g}"
    return text if line["reached"] else f"{line['method']} not after {line['seconds']:.2g}"


def report(lines: Sequence[Line]) -> str:
    """Return the page of a run."""
    found = regrets(lines)
    ratios = [x.ratio for x in found] or [math.nan]
    rows = tuple(
        (
            x.case, x.auto["chosen"], f"{x.auto['seconds']:.3g}",
            f"{x.best['method']} {x.best['seconds']:.3g}", f"{x.ratio:.2f}",
            ", ".join(_cell(y) for y in x.others if y is not x.best),
        )
        for x in found
    )  # fmt: skip
    columns = ("problem", "auto chose", "s", "fastest, s", "ratio", "others, s")
    blocks: list[document.Block] = [
        document.Command("python -m epsilot_lab regret docs/results/regret"),
        document.Paragraph(
            f'{len(found)} problems, to 1 % where nothing else is said. The time of "auto" is '
            f"{statistics.median(ratios):.2f} times that of the fastest method in the median, and "
            f"more than 1.5 times in {sum(x > 1.5 for x in ratios)} problems. Processor seconds "
            "of one thread, least of a few runs where they are short, beside other work: ratios "
            "below 1.2 are noise. Tolerances and regularisations are shares of the largest cost. "
            "The constants of the choice were fitted to these problems."
        ),
        document.Table(columns, rows),
        document.Heading("Environment"),
        document.environment_table([x for x in lines if x["serves"]]),
    ]
    return document.to_markdown("Regret of the automatic choice", blocks)


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is missing and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--cases", nargs="*", default=[""], help="words in the names of cases")
    parser.add_argument("--methods", nargs="*", default=[], help="measure only these now")
    parser.add_argument("--toy", action="store_true", help=f"at most {TOY} points, for a trial")
    options = parser.parse_args(argv)
    names = [name for name in CASES if any(word in name for word in options.cases)]
    options.out.mkdir(parents=True, exist_ok=True)
    store = Store(options.out / "solves.jsonl", KEY)
    lines = run(store, names, options.methods, options.toy)
    text = report(lines)
    document.write_text(options.out / "summary.md", text)
    print(text)
