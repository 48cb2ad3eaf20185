"""Collect the accuracy of our answers to POT's calls, and limits that POT has."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AccuracyTuning:
    """Accuracy of our answers to POT's calls, and limits that POT has."""

    # Relative gap of problems without regularisation; most optimal vertices reach round-off.
    rtol: float = 1e-11
    # Relative difference of totals that counts as round-off: b was scaled to the total of a.
    totals_rtol: float = 1e-9
    tol_share: float = 1e-12  # entropic gap, as a share of the largest cost or the regularisation
    # Largest l1 error of entropic marginals, as a share of the mass; POT's default is 1e-9 in l2.
    marginal_error: float = 1e-10
    # Relative gap of an optimum that the round-off of costs may hide, which are so many times the
    # largest cost in use.
    loose_rtol: float = 1e-9
    dear_ratio: float = 1e6
    # Most pairs of points on a line for which stored costs are faster than sorting.
    max_stored_line: int = 1 << 13
    # Iterations below which a caller wants that many of POT's, not the solution.
    few_iterations: int = 10
    barycenter_rtol: float = 1e-8  # relative gap of a barycentre without regularisation
    # Entropic gap of a barycentre, as a share of the largest cost or the regularisation.
    barycenter_tol_share: float = 1e-9
    # Largest difference of the totals of a and b that POT accepts.
    max_totals_difference: float = 1.5e-6
    # Number of pivots after which POT ends by default; smaller limits are looked at.
    default_pivots: int = 100_000
    max_pivots: int = 1_000_000  # limit of POT's simplex in ``ot.solve``


TUNING = AccuracyTuning()
