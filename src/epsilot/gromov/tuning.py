"""Collect the numbers that steer the searches of Gromov-Wasserstein."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GromovTuning:
    """Sizes, shares and tolerances of the searches for a global bound."""

    evaluate_after: float = 0.1  # share of all work between two records
    # Absolute gap by default, as a share of K: copies have an optimum of 0.
    default_gap: float = 1e-9
    # Smallest gap that float64 certifies, as a share of the numbers that are added up.
    least_gap: float = 4e-12
    # Boxes that are halved in one step of the driver; the threads share their transport problems.
    boxes_per_step: int = 32
    # Share of the tolerance within which a box of the best objective is not halved any more.
    closed_share: float = 0.9
    first_boxes: int = 1 << 8  # boxes that the arrays of a search hold at first
    # Bytes of potentials beyond which those of closed boxes are not kept; ``verify`` solves
    # again.
    max_kept_bytes: int = 1 << 29
    # Square of the distance, in units of the clouds' squared deviations, of points that are the
    # same.
    same_point: float = 1e-12
    # A corner so near the place of least bound, as a share of that, leaves round-off only.
    stuck: float = 1e-4
    attempts: int = 5  # attempts to insert a point, each nearer to the middle of its simplex
    # A bound of known potentials that rises by this share of what is missing needs no transport
    # problem of its own. Problems of clouds with a sample cost more, so that less is enough.
    closing_share: float = 1.5
    large_closing_share: float = 1.0


TUNING = GromovTuning()
