"""Compare methods for barycentres with each other and with POT, and solve a large grid.

    python -m epsilot_lab barycenters --out docs/results/barycenters
    python -m epsilot_lab barycenters shapes --sizes 128

Seconds of processor time. Operations are for each entry of the costs, without empty rows; those of
`exact` do not count the linear programs. POT gives no bound: its histogram is priced by
``epsilot.certify`` with our potentials, and the column says by how much it can be above the best
one.
"""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import FrameType

import numpy as np
import ot

import epsilot
from epsilot.barycenters.execute import METHODS
from epsilot.files.images import embedded_digits, grid_cost

from ..measuring import forget_peak, in_turns, recent_peak, timed
from .races import Race, Row, run_races

METRICS = ("cityblock", "sqeuclidean")
#: POT's regularisations, as shares of the largest cost, and its method for each.
PEERS = ((0.01, "sinkhorn"), (0.003, "sinkhorn"), (0.001, "sinkhorn"), (3e-4, "sinkhorn_log"))


#: Seconds on the wall of a call of POT, at most.
BUDGET = 60.0
STEPS, RTOLS = 4000, (0.05, 0.01)


def drawn_shapes(side: int) -> list[np.ndarray]:
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


def digits(count: int) -> np.ndarray:
    """Return the first digits of those that come with the package; of two, every fourth pixel."""
    every = 4 if count < 3 else 1
    A = embedded_digits()[:count, ::every, ::every]
    return np.asarray(A / A.sum(axis=(1, 2), keepdims=True))


def random_images() -> np.ndarray:
    """Return five small images of random brightness."""
    A = np.random.default_rng(0).random((5, 10, 10)) ** 4
    return A / A.sum(axis=(1, 2), keepdims=True)


def stored(A: np.ndarray, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Return images as histograms, and the cost between their pixels, largest 1."""
    M = grid_cost(A.shape[1:], metric)
    return A.reshape(len(A), -1), M / M.max()


def methods(sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    """Yield rows: every method to both accuracies, on random images and on digits."""
    for count in sizes:
        for what, A in (("random images", random_images()), (f"{count} digits", digits(count))):
            entries = int((A > 0).sum()) * A[0].size
            for metric in METRICS:
                rows, M = stored(A, metric)
                for method in METHODS:
                    cells: list[str] = []
                    for rtol in RTOLS:
                        result, spent = _solved(rows, M, rtol, rounds, method)
                        gap = result.gap / result.lower_bound
                        left = "" if result.converged else f" ({gap:.1%} left)"
                        cells += [f"{result.n_iter}{left}"]
                        cells += [f"{result.work.operations / entries:.0f}", f"{spent:.2g}"]
                    yield what, metric, method, *cells


def _solved(
    rows: np.ndarray, M: np.ndarray, rtol: float, rounds: int, method: str = "auto"
) -> tuple[epsilot.BarycenterResult, float]:
    """Return a barycentre and its processor seconds."""
    call = partial(
        epsilot.barycenter, rows, M, method=method, rtol=rtol, max_iter=STEPS, on_limit="ignore"
    )
    (run,) = in_turns({method: call}, rounds).values()
    assert run.result is not None
    return run.result, run.median.processor


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


def peers(sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    """Yield rows: ours, then POT's iterations at several regularisations."""
    for count in sizes:
        A = digits(count)
        for metric in METRICS:
            rows, M = stored(A, metric)
            ours, spent = _solved(rows, M, RTOLS[-1], rounds)
            name = f"epsilot ({ours.method})"
            yield metric, name, f"{spent:.3g}", f"{ours.gap / ours.lower_bound:.2%}"
            for reg, method in PEERS:
                peer = partial(ot.bregman.barycenter, rows.T.copy(), M, reg, method=method)
                with warnings.catch_warnings(action="ignore"):
                    seconds, b = timed(partial(within, BUDGET, peer))
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


def shapes(sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    """Yield rows: four shapes on a grid, without a stored cost."""
    for side in sizes:
        images = drawn_shapes(side)
        for metric in METRICS:
            held = forget_peak() or 0
            call = partial(epsilot.barycenter_grid, images, metric=metric, rtol=RTOLS[-1])
            seconds, result = timed(call)
            peak = ((recent_peak() or held) - held) / 2**20
            gap = result.gap / result.lower_bound
            clocks = f"{seconds.processor:.3g}", f"{seconds.wall:.3g}"
            counts = f"{gap:.2%}", str(result.n_iter), f"{peak:.0f}"
            yield metric, f"{side} x {side}", *clocks, *counts


_STEPS = tuple(f"{r:.0%}: {x}" for r in RTOLS for x in ("steps", "operations", "s"))
TABLES = {
    "methods": Race(
        "Every method, on random images of 10 x 10 pixels and on digits",
        ("images", "cost", "method", *_STEPS), methods, (10,), (2,), 1,
    ),
    "peers": Race(
        "Digits, beside `ot.bregman.barycenter` (stopped after a minute, or 1000 iterations)",
        ("cost", "by", "s", "above the best, at most"), peers, (10,), (2,),
    ),
    "shapes": Race(
        "Four shapes on a grid; the peak is what comes to the images",
        ("cost", "cells", "s", "s on the wall", "gap", "steps", "peak MiB"), shapes, (512,), (12,),
    ),
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Run the study with the words of a command line."""
    run_races("barycenters", TABLES, __doc__, argv)
