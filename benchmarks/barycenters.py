"""Barycentres beside POT, each answer audited; and of four shapes on a grid.

python benchmarks/barycenters.py [--out docs/results/barycenters] [--side 512] [--toy]

Seconds of processor time. POT gives no bound: its histogram is priced by ``epsilot.certify`` with
our potentials, and the column says by how much it can be above the best one.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import ot
from sklearn.datasets import load_digits

import epsilot
from epsilot.files import write_atomically
from epsilot.files.images import grid_cost
from epsilot.studies.lab.document import markdown_row
from epsilot.studies.lab.environment import machine, versions
from epsilot.studies.lab.timing import in_turns

REGS = (0.01, 0.003, 0.001)


def digits(k: int, enlarged: int) -> np.ndarray:
    """Return the first k digits, each pixel so many times as wide and as high."""
    images = load_digits().images[:k].repeat(enlarged, axis=1).repeat(enlarged, axis=2)
    return images / images.sum(axis=(1, 2), keepdims=True)


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


def digit_rows(
    k: int, enlarged: int, rtol: float, regs: Sequence[float]
) -> Iterator[tuple[str, ...]]:
    """Yield rows: POT's iterations at several regularisations, then ours."""
    A = digits(k, enlarged)
    for metric in ("cityblock", "sqeuclidean"):
        M = grid_cost(A.shape[1:], metric)
        M, rows = M / M.max(), A.reshape(k, -1)
        rivals = {"epsilot": partial(epsilot.barycenter, rows, M, rtol=rtol)}
        for reg in regs:
            rivals[f"POT, reg {reg:g}"] = partial(
                ot.bregman.barycenter, rows.T.copy(), M, reg, method="sinkhorn_log"
            )
        with warnings.catch_warnings(action="ignore"):
            runs = in_turns(rivals, 1)
        ours = runs["epsilot"].result
        for name, run in runs.items():
            gap = ours.gap / ours.lower_bound
            if name != "epsilot":
                b = np.maximum(np.asarray(run.result), 0)
                found = epsilot.certify(M, rows, barycenter=b, potentials=ours.potentials)
                gap = found.gap / found.lower
            yield metric, name, f"{run.median.processor:.3g}", f"{gap:.2%}"


def shape_rows(side: int, rtol: float) -> Iterator[tuple[str, ...]]:
    """Yield rows: four shapes, without a stored cost."""
    images = shapes(side)
    for metric in ("cityblock", "sqeuclidean"):
        call = partial(epsilot.barycenter_grid, images, metric=metric, rtol=rtol)
        (run,) = in_turns({metric: call}, 1).values()
        gap = run.result.gap / run.result.lower_bound
        seconds = f"{run.median.processor:.3g}"
        yield metric, f"{side} x {side}", seconds, f"{gap:.2%}", str(run.result.n_iter)


def table(columns: str, rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    """Yield the lines of a table."""
    names = columns.split(" | ")
    yield markdown_row(names)
    yield markdown_row(["---"] * len(names))
    yield from map(markdown_row, rows)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="a folder for summary.md")
    parser.add_argument("--side", type=int, default=512, help="of the grid of the shapes")
    parser.add_argument("--toy", action="store_true", help="seconds, to see that it runs")
    asked = parser.parse_args(argv)
    k, enlarged, side, rtol = (2, 1, 12, 0.1) if asked.toy else (10, 2, asked.side, 0.01)
    regs = REGS[:1] if asked.toy else REGS
    facts = "; ".join(f"{name} {value}" for name, value in (machine() | versions()).items())
    lines = [
        "# Barycentres",
        f"`python benchmarks/barycenters.py --side {side} --out docs/results/barycenters`",
        facts,
        f"## {k} digits of {8 * enlarged} x {8 * enlarged} pixels, beside `ot.bregman.barycenter`",
        *table("cost | by | s | above the best, at most", digit_rows(k, enlarged, rtol, regs)),
        "## Four shapes on a grid",
        *table("cost | cells | s | gap | steps", shape_rows(side, rtol)),
    ]
    text = "\n\n".join(lines).replace("|\n\n|", "|\n|") + "\n"
    print(text)
    if asked.out is not None:
        asked.out.mkdir(parents=True, exist_ok=True)
        write_atomically(asked.out / "summary.md", lambda file: file.write(text.encode()))


if __name__ == "__main__":
    main()
