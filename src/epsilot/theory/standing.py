"""Which of the papers' statements are proved, which corrected, which printed but not proved.

Errata are numbered as in ``docs/errata.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Standing(Enum):
    """How well a statement stands."""

    PROVED = "proved"  # as printed, or by a proof of ours that is given where it is used
    CORRECTED = "corrected"  # proved after a correction, which the functions have by default
    UNPROVED = "printed, not proved"  # a step of the printed proof fails, and none replaces it


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A statement, the function that computes it, and how well it stands."""

    name: str
    says: str
    function: str  # of epsilot.theory
    standing: Standing
    why: str
    errata: tuple[str, ...] = ()


STATEMENTS: tuple[Statement, ...] = (
    Statement(
        name="Theorem 1",
        says="violation and gap of the expected average of x(v) fall as 1/S²",
        function="violation_bound",
        standing=Standing.CORRECTED,
        why="the weights sum to S (S + 7) / 4, so the constant 2 is 4 / (1 + 7/S)",
        errata=("E3", "E8"),
    ),
    Statement(
        name="Theorem 1, the average as sampled",
        says="the same of the algorithm's own average, which samples y",
        function="violation_bound",
        standing=Standing.UNPROVED,
        why="the proof averages x(v), where the gradient is taken, and nothing is said of x(y)",
        errata=("E4",),
    ),
    Statement(
        name="Theorem 1 in any mirror map",
        says="the same with γ from V_0(u) <= γ ‖u‖² / 2 alone",
        function="violation_bound",
        standing=Standing.PROVED,
        why="the proof uses the smoothness of w only in V at the start z = 0",
    ),
    Statement(
        name="Batch theorem, l2",
        says="Theorem 1 with 1 + (l - 1)/B in place of l",
        function="violation_bound",
        standing=Standing.CORRECTED,
        why="as Theorem 1; in a Hilbert norm the variance of a mean falls by B",
        errata=("E3",),
    ),
    Statement(
        name="Batch theorem, l∞",
        says="the same in l∞",
        function="violation_bound",
        standing=Standing.UNPROVED,
        why="the l1 norm of a mean of B independent vectors need not fall at all",
        errata=("E7",),
    ),
    Statement(
        name="Smoothness lemma",
        says="row i is n p_i / η-smooth in l2 and, printed with a factor 5, in l∞",
        function="pdasmd_outer_loops",
        standing=Standing.CORRECTED,
        why="the factor 5 is proved and not sharp: a variance is at most ‖u‖∞²",
        errata=("E5",),
    ),
    Statement(
        name="Dual radius",
        says="‖λ*‖∞ <= (‖C‖∞ + η log(q_max / q_min)) / 2 for one shift",
        function="dual_radius",
        standing=Standing.PROVED,
        why="the printed bound is Lin, Ho, Jordan's and at least twice as large",
    ),
    Statement(
        name="Theorem 2",
        says="an ε-solution in expectation in n² ‖C‖ √log n / ε operations (l∞), n^2.5 (l2)",
        function="pdasmd_operations",
        standing=Standing.UNPROVED,
        why=(
            "the conditions bound the expected plan, and the rounding cost of a plan is not that "
            "of its expectation; n^2.5 is an artefact of bounding φ(0) - φ* by L̄R²/2"
        ),
        errata=("E6", "E9"),
    ),
    Statement(
        name="Corollary 1",
        says="√B times the operations with batches of B, in l∞",
        function="pdasmd_operations",
        standing=Standing.UNPROVED,
        why="it rests on the batch theorem in l∞ and on Theorem 2",
        errata=("E6", "E7"),
    ),
    Statement(
        name="Theorem 3's lemma",
        says="2 + 224 n R / δ updates of Stochastic Sinkhorn, printed with 112",
        function="stochastic_sinkhorn_iterations",
        standing=Standing.CORRECTED,
        why="the minimum over the split is 224, and the start must have mass 1",
        errata=("E12", "A1"),
    ),
    Statement(
        name="Theorem 3",
        says="an ε-solution in expectation in n² ‖C‖² log n / ε² operations",
        function="stochastic_sinkhorn_iterations",
        standing=Standing.UNPROVED,
        why="from the printed start u = v = 1, where the lemma behind its step is false",
        errata=("E12", "A1"),
    ),
    Statement(
        name="Sinkhorn",
        says="2 + 4 R / δ half-steps (Dvurechensky et al. 2018)",
        function="sinkhorn_iterations",
        standing=Standing.PROVED,
        why="as printed",
    ),
    Statement(
        name="Accelerated Sinkhorn",
        says="1 + (16 √n R / δ)^(2/3) iterations (Lin, Ho, Jordan 2022)",
        function="accelerated_sinkhorn_iterations",
        standing=Standing.CORRECTED,
        why="for the variant whose last update takes the other block",
        errata=("L1", "L2", "L3"),
    ),
    Statement(
        name="APDAGD",
        says="√(16 L R √(2n) / δ) iterations (Dvurechensky et al. 2018)",
        function="apdagd_iterations",
        standing=Standing.PROVED,
        why="as printed",
    ),
    Statement(
        name="Hybrid primal-dual, without regularisation",
        says="⌈‖C‖ √((n + m) log nm) / ε⌉ iterations",
        function="hybrid_primal_dual_iterations",
        standing=Standing.PROVED,
        why="by our own proof, with the sharp bound of rounding",
    ),
    Statement(
        name="Dijkstra's search and DFS",
        says="⌊2 ‖C‖ / ((1 - s) ε)⌋ + 1 phases (Lahn, Mulchandani, Raghvendra 2019)",
        function="dijkstra_phases",
        standing=Standing.PROVED,
        why="as printed",
    ),
)
