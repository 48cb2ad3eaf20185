r"""Batches of PDASMD: which rows an inner step draws, and how long it may then be.

The paper lets a batch of B rows lower the weight of the snapshot, τ₂ = 1/(2B), and leaves the steps
as they are; outer loops then grow like √B. The variance that B rows leave also allows steps B times
as long, as long as those are within what the whole dual, which is smoother than its rows, allows:

.. math:: L_⋄ = \max(L, \bar L / B), \quad τ_2 = \bar L / (2 B L_⋄), \quad α = 1 / (c τ_1 L_⋄)

Then outer loops do not grow at all up to B = L̄ / L (``docs/section6.md`` has the proof). The
Hessian of the dual is at most that of its first part, diag(Xᵀ1) / η, so the largest column sum
stands for L.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from .._types import Index, Vector
from ..errors import InvalidProblem
from ..finite_sum.algorithm import draw

#: What the listing does, and steps as long as the batch allows: for independent rows, and for one
#: row of each of B strata of equal mass.
BATCHINGS = ("paper", "long", "strata")
#: Factor by which column sums may grow within an outer loop before φ is less smooth than supposed.
HEADROOM = 2.0


class Coupling(NamedTuple):
    """What a batch does to an outer loop."""

    smoothness: float  # L⋄ η, or L̄ η in the listing
    tau2: float


def check_batching(batching: str, norm: str, *, is_euclidean: bool) -> None:
    """Refuse long steps in other norms than l2: in l∞ the dual is no smoother than its rows."""
    if batching != "paper" and not (norm == "l2" and is_euclidean):
        raise InvalidProblem(
            f"batching is {batching!r} with norm={norm!r}; steps as long as a batch allows are for "
            "norm='l2' with the Euclidean mirror map (use method='pdasgd')."
        )


def coupling(batching: str, batch_size: int, smoothness: float, largest_column: float) -> Coupling:
    """Return the constants of an outer loop, given L̄ η and the largest column sum."""
    if batching == "paper":
        return Coupling(smoothness, 1 / (2 * batch_size))
    shared = max(smoothness / batch_size, HEADROOM * largest_column)
    return Coupling(shared, smoothness / (2 * batch_size * shared))


def draw_rows(
    rng: Generator, p: Vector, n_inner: int, batch_size: int, batching: str
) -> tuple[int, Index]:
    """Draw the step of step 15, and the rows of step 8, in proportion to their masses.

    A row of each stratum has the right expectation as well, and no more variance.
    """
    cumulative = np.cumsum(p)
    if batching != "strata":
        return draw(rng, cumulative, n_inner, batch_size)
    selected = int(rng.integers(n_inner))
    places = (rng.random((n_inner, batch_size)) + np.arange(batch_size)) / batch_size
    sample = np.searchsorted(cumulative, places * cumulative[-1], side="right")
    return selected, np.minimum(sample, p.size - 1)
