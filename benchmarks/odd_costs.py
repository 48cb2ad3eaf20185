"""method="auto" beside ot.emd2 on costs and weights that the benchmark's families do not have.

python benchmarks/odd_costs.py [--size 2000] [--seeds 3]

Heavy-tailed weights, outliers, clusters, ties, long and wide matrices: what may surprise a method
that was tuned on clouds and images. Milliseconds of wall time, medians over seeds; every answer is
certified and compared with the exact value.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import ot
from scipy.spatial.distance import cdist

import epsilot


def uniform(n: int) -> Any:
    """Return equal weights."""
    return np.full(n, 1 / n)


def clustered(n: int, rng: Any) -> Any:
    """Return points around eight centres."""
    centres = rng.random((8, 2))
    return [centres[rng.integers(8, size=n)] + 0.01 * rng.normal(size=(n, 2)) for _ in range(2)]


def with_outliers(n: int, rng: Any) -> Any:
    """Return two clouds, some points of which are far away."""
    X, Y = rng.random((2, n, 2))
    X[:5] *= 100
    Y[:3] *= -50
    return X, Y


#: name -> (n, generator, two uniform clouds) -> cost, weights (None: equal)
ODD: dict[str, Callable[[int, Any, Any, Any], tuple[Any, Any, Any]]] = {
    "heavy-tailed weights": lambda n, rng, X, Y: (
        cdist(X, Y), rng.dirichlet(np.full(n, 0.05)), rng.dirichlet(np.full(n, 0.05))
    ),
    "heavy-tailed to equal weights": lambda n, rng, X, Y: (
        cdist(X, Y, "sqeuclidean"), rng.dirichlet(np.full(n, 0.05)), None
    ),
    "root of the distance": lambda n, rng, X, Y: (np.sqrt(cdist(X, Y)), None, None),
    "fourth power": lambda n, rng, X, Y: (cdist(X, Y) ** 4, None, None),
    "clusters": lambda n, rng, X, Y: (cdist(*clustered(n, rng), "sqeuclidean"), None, None),
    "outliers": lambda n, rng, X, Y: (cdist(*with_outliers(n, rng), "sqeuclidean"), None, None),
    "1-d": lambda n, rng, X, Y: (cdist(X[:, :1], Y[:, :1]), None, None),
    "lognormal": lambda n, rng, X, Y: (
        np.exp(2 * rng.normal(size=(n, n))), rng.dirichlet(np.ones(n)), None
    ),
    "0.5 % zeros, else ones": lambda n, rng, X, Y: (
        (rng.random((n, n)) < 0.995).astype(float), rng.dirichlet(np.ones(n)), None
    ),
    "integers 0 to 4": lambda n, rng, X, Y: (
        rng.integers(0, 5, (n, n)).astype(float), rng.dirichlet(np.ones(n)), None
    ),
    "n / 8 sources": lambda n, rng, X, Y: (cdist(X[: n // 8], Y, "sqeuclidean"), None, None),
    "n / 8 targets": lambda n, rng, X, Y: (cdist(X, Y[: n // 8]), None, None),
    "far apart": lambda n, rng, X, Y: (cdist(X, Y + 10, "sqeuclidean"), None, None),
    "products": lambda n, rng, X, Y: (
        np.outer(X[:, 0], Y[:, 0]), rng.dirichlet(np.ones(n)), None
    ),
}  # fmt: skip


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return milliseconds and the result of a call."""
    began = time.perf_counter()
    found = call()
    return 1e3 * (time.perf_counter() - began), found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    n = options.size
    for method in ("exact", "restricted_simplex"):  # compile
        epsilot.solve(np.random.default_rng(0).random((64, 64)), method=method)
    print(f"n = {n}\n\n| cost | emd2 | to 1 % | rounds | × | to 1e-6 | rounds | × |")
    print("|---" * 8 + "|")
    for name, build in ODD.items():
        rows = []
        for seed in range(options.seeds):
            rng = np.random.default_rng(seed)
            M, a, b = build(n, rng, *rng.random((2, n, 2)))
            a, b = (uniform(k) if w is None else w for k, w in zip(M.shape, (a, b), strict=True))
            row, value = timed(lambda a=a, b=b, M=M: ot.emd2(a, b, M, numItermax=10**8))
            rows.append([row])
            for rtol in (1e-2, 1e-6):
                ms, result = timed(lambda a=a, b=b, M=M, r=rtol: epsilot.solve(M, a, b, rtol=r))
                assert result.converged
                assert abs(result.value - value) <= max(rtol * abs(value), 1e-11 * M.max())
                rows[-1] += [ms, len(result.history)]
        emd2, loose, rounds, tight, tight_rounds = (median(x) for x in zip(*rows, strict=True))
        print(
            f"| {name} | {emd2:.0f} | {loose:.0f} | {rounds} | {emd2 / loose:.1f} | {tight:.0f} "
            f"| {tight_rounds} | {emd2 / tight:.1f} |", flush=True,
        )  # fmt: skip


if __name__ == "__main__":
    main()
