"""Compare transport costs between drawn images with those published for DOTmark.

    python -m epsilot_lab dotmark            # sides 32 and 64, six draws of ten images a class

Zanetti and Gondzio ("An Interior-Point-Inspired algorithm for Linear Programs arising in Discrete
Optimal Transport", 2023) keep the optimal l1 costs of all 45 pairs of the ten images of every class
in their repository (INFORMSJoC/2022.0184, results of Lemon's network simplex). Images are divided
by their largest value, and the heavier one of a pair is scaled to the mass of the other; a step to
the next pixel costs 1. The quantiles of those costs are compared with those of images drawn here.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import combinations

import numpy as np

import epsilot

from ..document import markdown_row
from ..dotmark import CLASSES, grey

QUANTILES = (0.1, 0.5, 0.9)
N_IMAGES, N_DRAWS = 10, 6
#: side -> class -> quantiles of the 45 published costs
PUBLISHED = {
    32: {
        "WhiteNoise": (339.6, 366.5, 429.7),
        "GRFrough": (339.8, 469.8, 655.7),
        "GRFmoderate": (753.6, 1162.4, 1888.8),
        "GRFsmooth": (1444.2, 2057.9, 2897.6),
        "LogGRF": (476.6, 737.2, 1151.3),
        "LogitGRF": (1332.3, 1814.0, 2576.7),
        "CauchyDensity": (725.7, 2277.7, 4831.1),
        "Shapes": (1088.0, 2384.6, 4096.0),
    },
    64: {
        "WhiteNoise": (1535.7, 1709.5, 1937.6),
        "GRFrough": (2197.2, 3260.5, 4025.5),
        "GRFmoderate": (7155.6, 9755.8, 15426.1),
        "GRFsmooth": (9875.9, 16182.3, 27200.7),
        "LogGRF": (3013.9, 4717.5, 6799.5),
        "LogitGRF": (9336.1, 13037.9, 20543.2),
        "CauchyDensity": (6167.6, 15514.8, 31711.8),
        "Shapes": (8036.5, 18685.9, 32768.0),
    },
}


def costs(name: str, side: int, draw: int) -> list[float]:
    """Return the costs of all pairs of ten images of a class."""
    rng = np.random.default_rng([draw, side, list(CLASSES).index(name)])
    images = [grey(CLASSES[name](side, rng)) for _ in range(N_IMAGES)]
    images = [image / image.max() for image in images]
    found = []
    for A, B in combinations(images, 2):
        moved = epsilot.solve_grid(A / A.sum(), B / B.sum(), metric="cityblock", rtol=1e-6)
        found.append(float(min(A.sum(), B.sum()) * moved.value))
    return found


def compare(name: str, side: int, n_draws: int) -> tuple[str, ...]:
    """Return a row: quantiles as published and as drawn, and the medians of single draws."""
    drawn = np.array([np.quantile(costs(name, side, k), QUANTILES) for k in range(n_draws)])
    theirs = PUBLISHED[side][name]
    low, high = drawn[:, 1].min(), drawn[:, 1].max()
    return (
        name,
        str(side),
        " / ".join(f"{x:,.0f}" for x in theirs),
        " / ".join(f"{x:,.0f}" for x in drawn.mean(axis=0)),
        f"{low:,.0f} to {high:,.0f}",
        f"{drawn[:, 1].mean() / theirs[1]:.2f}",
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sides", nargs="*", type=int, default=list(PUBLISHED), choices=PUBLISHED)
    parser.add_argument("--classes", nargs="*", default=list(CLASSES), choices=list(CLASSES))
    parser.add_argument("--draws", type=int, default=N_DRAWS)
    options = parser.parse_args(argv)
    columns = ("class", "side", "published, 10 / 50 / 90 %", "drawn", "medians of draws", "ratio")
    print(markdown_row(columns), markdown_row(("---",) * len(columns)), sep="\n")
    for side in options.sides:
        for name in options.classes:
            print(markdown_row(compare(name, side, options.draws)), flush=True)
