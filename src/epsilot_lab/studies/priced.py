"""Compare problems with one penalty per point with linear programs by HiGHS.

python -m epsilot_lab priced [--problems 10000] [--seed 0]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

import epsilot
from epsilot import InvalidProblem
from epsilot._types import Matrix, Vector

#: HiGHS meets constraints to 1e-7: largest difference, as a share of costs, penalties and masses.
HIGHS_TOLERANCE = 1e-7


class Priced(NamedTuple):
    """A problem with total variation penalties per point; inf keeps the mass of a point.

    Costs of inf are forbidden pairs. Then inf keeps all points of one side, or none.
    """

    M: Matrix
    a: Vector
    b: Vector
    price_a: Vector
    price_b: Vector

    @property
    def size(self) -> float:
        """The largest cost or penalty, times the total mass."""
        prices = np.append(self.price_a, self.price_b)
        costs = np.abs(self.M).max(where=np.isfinite(self.M), initial=0.0)
        largest = float(np.max(prices, where=np.isfinite(prices), initial=costs))
        return largest * float(self.a.sum() + self.b.sum())


def drawn(seed: int) -> Priced:
    """Return a random problem, with ties, empty points and exact masses from time to time."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 9, 2)
    M = rng.random((n, m)) - rng.choice([0.0, 0.1])
    M = np.round(4 * M) / 4 if rng.random() < 0.3 else M
    a, b = rng.random(n), rng.choice([0.5, 1.0, 2.7]) * rng.random(m)
    a[: n // 2] *= rng.random() > 0.2
    prices = [0.06 + 10 ** rng.uniform(-rng.choice([1, 12]), 0.7, k) for k in (n, m)]
    if rng.random() < 0.1:
        prices = [1e5 * price for price in prices]
    if rng.random() < 0.5:
        for price in prices:
            price[rng.random(price.size) < rng.choice([0.0, 0.5])] = np.inf
    if rng.random() < 0.4:
        M[rng.random(M.shape) < rng.choice([0.2, 0.5, 0.8])] = np.inf
        prices = [np.where(np.isinf(price), 1.0, price) for price in prices]
        if rng.random() < 0.5:
            prices[rng.integers(2)][:] = np.inf
    return Priced(M, a, b, *prices)


def optimum(problem: Priced) -> float | None:
    """Return the value of the linear program, or None if it has no solution."""
    M, a, b, *prices = problem
    n, m = M.shape
    paid, identity = np.concatenate(prices), np.eye(n + m)
    marginals = [np.kron(np.eye(n), np.ones((1, m))), np.kron(np.ones((1, n)), np.eye(m))]
    most = np.where(np.isinf(paid), 0.0, np.inf)
    paid = np.where(np.isinf(paid), 0.0, paid)
    is_allowed = np.isfinite(M).ravel()
    limits = np.concatenate([np.where(is_allowed, np.inf, 0.0), most, most])
    found = linprog(
        np.concatenate([np.where(is_allowed, M.ravel(), 0.0), paid, paid]),
        A_eq=np.hstack([np.vstack(marginals), -identity, identity]),
        b_eq=np.append(a, b),
        bounds=list(zip(np.zeros(limits.size), limits, strict=True)),
    )
    return float(found.fun) if found.status == 0 else None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the study with the words of a command line; return 1 if an answer was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--problems", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    began, solved, refused, worst, wrong = time.process_time(), 0, 0, 0.0, []
    for seed in range(options.seed, options.seed + options.problems):
        problem, wanted = drawn(seed), optimum(drawn(seed))
        prices = problem.price_a, problem.price_b
        try:
            found = epsilot.solve(
                *problem[:3], unbalanced=prices, unbalanced_type="tv", rtol=1e-9, on_limit="ignore"
            )
        except InvalidProblem:
            refused += 1
            wrong += [seed] if wanted is not None else []
            continue
        solved += 1
        if wanted is None or found.gap < 0 or not found.converged:
            wrong.append(seed)
            continue
        difference = abs(found.value - wanted) / problem.size
        worst = max(worst, difference)
        wrong += [seed] if difference > HIGHS_TOLERANCE else []
    spent = time.process_time() - began
    print(
        f"{solved:,} problems solved, {refused:,} without a plan, {spent:.0f} s of processor time"
    )
    print(f"largest difference from HiGHS: {worst:.1e} of costs and penalties times masses")
    print(f"wrong, not converged, or with a negative gap: {len(wrong)} {wrong[:10]}")
    return int(bool(wrong))
