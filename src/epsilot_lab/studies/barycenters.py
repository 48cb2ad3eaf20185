"""Compare methods for barycentres with each other and with POT, and solve a large grid.

python -m epsilot_lab barycenters [--out docs/results/barycenters] [--side 512] [--toy]

Seconds of processor time. POT gives no bound: its histogram is priced by ``epsilot.certify`` with
our potentials, and the column says by how much it can be above the best one.
"""

from __future__ import annotations

import argparse
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import numpy as np
import ot

import epsilot
from epsilot.barycenters.methods import METHODS
from epsilot.files import write_atomically
from epsilot.files.images import embedded_digits, grid_cost

from ..document import markdown_row
from ..environment import machine, versions
from ..measuring import forget_peak, in_turns, recent_peak, timed

METRICS = ("cityblock", "sqeuclidean")
#: POT's regularisations, as shares of the largest cost, and its method for each.
PEERS = ((0.01, "sinkhorn"), (0.003, "sinkhorn"), (0.001, "sinkhorn"), (3e-4, "sinkhorn_log"))


class Sizes(NamedTuple):
    """The sizes of a run."""

    digits: int = 10
    every: int = 1  # of so many pixels one is kept
    peers: int = 4
    budget: float = 60.0  # seconds on the wall of a call of POT
    steps: int = 4000
    rtols: tuple[float, float] = (0.05, 0.01)


TOY = Sizes(digits=2, every=4, peers=1, budget=5.0, steps=30, rtols=(0.3, 0.2))


def shapes(side: int) -> list[np.ndarray]:
    """Return a disc, a square, a star and a ring."""
    y, x = (np.indices((side, side)) + 0.5) / side - 0.5
    radius, angle = np.hypot(x, y), np.arctan2(y, x)
    drawn = (
        radius < 0.35,
        np.maximum(abs(x), abs(y)) < 0.3,
        radius < 0.24 + 0.14 * np.cos(5 * angle),
        abs(radius - 0.33) < 0.08,
    )
    return [shape / shape.sum() for shape in drawn]


def digits(sizes: Sizes) -> np.ndarray:
    """Return the first digits of those that come with the package."""
    A = embedded_digits()[: sizes.digits, :: sizes.every, :: sizes.every]
    return np.asarray(A / A.sum(axis=(1, 2), keepdims=True))


def random_images(k: int = 5, side: int = 10) -> np.ndarray:
    """Return small images of random brightness."""
    A = np.random.default_rng(0).random((k, side, side)) ** 4
    return A / A.sum(axis=(1, 2), keepdims=True)


def stored(A: np.ndarray, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Return images as histograms, and the cost between their pixels, largest 1."""
    M = grid_cost(A.shape[1:], metric)
    return A.reshape(len(A), -1), M / M.max()


def method_rows(A: np.ndarray, sizes: Sizes) -> Iterator[tuple[str, ...]]:
    """Yield rows: every method to both accuracies."""
    entries = int((A > 0).sum()) * A[0].size
    for metric in METRICS:
        rows, M = stored(A, metric)
        for method in METHODS:
            cells = []
            for rtol in sizes.rtols:
                call = partial(
                    epsilot.barycenter, rows, M, method=method, rtol=rtol, max_iter=sizes.steps
                )
                (run,) = in_turns({method: call}, 1).values()
                result = run.result
                gap = "" if result.converged else f" ({result.gap / result.lower_bound:.1%} left)"
                cells += [f"{result.n_iter}{gap}", f"{result.work.operations / entries:.0f}"]
                cells.append(f"{run.median.processor:.2g}")
            yield metric, method, *cells


def within(budget: float, call: Callable[[], np.ndarray]) -> np.ndarray | None:
    """Return the result of a call, or None if it takes more seconds on the wall."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    if not hasattr(signal, "SIGALRM"):
        return call()
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, budget)
    try:
        return call()
    except TimeoutError:
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def digit_rows(sizes: Sizes) -> Iterator[tuple[str, ...]]:
    """Yield rows: ours, then POT's iterations at several regularisations."""
    A = digits(sizes)
    for metric in METRICS:
        rows, M = stored(A, metric)
        call = partial(epsilot.barycenter, rows, M, rtol=sizes.rtols[-1])
        (run,) = in_turns({"epsilot": call}, 3).values()
        ours = run.result
        name = f"epsilot ({ours.method})"
        yield metric, name, f"{run.median.processor:.3g}", f"{ours.gap / ours.lower_bound:.2%}"
        for reg, method in PEERS[: sizes.peers]:
            peer = partial(ot.bregman.barycenter, rows.T.copy(), M, reg, method=method)
            seconds, b = timed(partial(within, sizes.budget, peer))
            audited = _audited(rows, M, b, ours)
            yield metric, f"POT, reg {reg:g}, {method}", f"{seconds.processor:.3g}", audited


def _audited(
    rows: np.ndarray, M: np.ndarray, b: np.ndarray | None, ours: epsilot.BarycenterResult
) -> str:
    """Say how far above the best one a histogram can be."""
    if b is None:
        return "stopped"
    if not np.isfinite(b).all():
        return "not finite"
    found = epsilot.certify(
        M, rows, barycenter=np.maximum(b, 0) / b.sum(), potentials=ours.potentials
    )
    return f"{found.gap / found.lower:.2%}"


def shape_rows(side: int, rtol: float) -> Iterator[tuple[str, ...]]:
    """Yield rows: four shapes, without a stored cost."""
    images = shapes(side)
    for metric in METRICS:
        held = forget_peak() or 0
        call = partial(epsilot.barycenter_grid, images, metric=metric, rtol=rtol)
        seconds, result = timed(call)
        peak = ((recent_peak() or held) - held) / 2**20
        gap = result.gap / result.lower_bound
        clocks = f"{seconds.processor:.3g}", f"{seconds.wall:.3g}"
        yield (
            metric, f"{side} x {side}", *clocks, f"{gap:.2%}", str(result.n_iter), f"{peak:.0f}"
        )  # fmt: skip


def table(columns: str, rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    """Yield the lines of a table."""
    names = columns.split(" | ")
    yield markdown_row(names)
    yield markdown_row(["---"] * len(names))
    for row in rows:
        print(*row, flush=True)
        yield markdown_row(row)


def document(side: int, sizes: Sizes) -> Iterator[str]:
    """Yield the blocks of the summary."""
    first, second = (f"{rtol:.0%}" for rtol in sizes.rtols)
    steps = " | ".join(f"{x}: steps | operations | s" for x in (first, second))
    drawn = f"{sizes.digits} digits of {28 // sizes.every} x {28 // sizes.every} pixels"
    facts = "; ".join(f"{name} {value}" for name, value in (machine() | versions()).items())
    yield "# Barycentres"
    yield f"`python -m epsilot_lab barycenters --side {side} --out docs/results/barycenters`"
    yield facts
    yield (
        "Seconds are of the processor. Operations are for each entry of the costs, without empty "
        "rows; those of `exact` do not count the linear programs."
    )
    for title, A in (
        ("5 random images of 10 x 10 pixels", random_images()),
        (drawn, digits(sizes)),
    ):
        yield f"## Methods: {title}"
        yield from table(f"cost | method | {steps}", method_rows(A, sizes))
    yield f"## {drawn}, beside `ot.bregman.barycenter`"
    yield f"POT is stopped after {sizes.budget:.0f} s on the wall, and stops after 1000 iterations."
    yield from table("cost | by | s | above the best, at most", digit_rows(sizes))
    yield "## Four shapes on a grid"
    yield f"The four images take {4 * 8 * side**2 / 2**20:.0f} MiB; the peak is what comes to them."
    yield from table(
        "cost | cells | s | s on the wall | gap | steps | peak MiB",
        shape_rows(side, sizes.rtols[-1]),
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Run the study with the words of a command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="a folder for summary.md")
    parser.add_argument("--side", type=int, default=512, help="of the grid of the shapes")
    parser.add_argument("--toy", action="store_true", help="seconds, to see that it runs")
    options = parser.parse_args(argv)
    with warnings.catch_warnings(action="ignore"):
        lines = list(document(12, TOY) if options.toy else document(options.side, Sizes()))
    text = "\n\n".join(lines).replace("|\n\n|", "|\n|") + "\n"
    print(text)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        write_atomically(options.out / "summary.md", lambda file: file.write(text.encode()))
