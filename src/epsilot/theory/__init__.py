"""The papers' bounds as functions, to hold measured runs against, and how well each is proved.

PDASMD's bounds (Luo, Xie, Huo: Theorems 1 to 3 and Corollary 1) come in two forms: with
``printed=True`` as in the paper, otherwise with its arithmetic corrected. The corrections: the
weights of S outer loops sum to S (S + 7) / 4, not to S (2S + 3) / 4 >= S² / 2; L̄ = 1/η suffices
in l∞ too; the proof of Theorem 3 gives 224, not 112; and the dual radius is half as large.
:data:`STATEMENTS` says of each which is proved, corrected, or printed but not proved.

>>> round(violation_bound(100, smoothness=1.0, radius=1.0, inner_loops=50, gamma=50.0), 5)
0.0071
>>> [s.name for s in STATEMENTS if s.standing is Standing.UNPROVED]
['Theorem 1, the average as sampled', 'Batch theorem, l∞', 'Theorem 2', 'Corollary 1', 'Theorem 3']
"""

from .bounds import (
    STATEMENTS,
    Standing,
    Statement,
    accelerated_sinkhorn_iterations,
    apdagd_iterations,
    apdamd_iterations,
    dijkstra_phases,
    dual_radius,
    entropic_radius,
    hybrid_primal_dual_iterations,
    objective_bound,
    order,
    outer_loops,
    pdasmd_loop_operations,
    pdasmd_operations,
    pdasmd_outer_loops,
    sinkhorn_iterations,
    stochastic_sinkhorn_iterations,
    violation_bound,
    weight_total,
)

__all__ = [
    "STATEMENTS",
    "Standing",
    "Statement",
    "accelerated_sinkhorn_iterations",
    "apdagd_iterations",
    "apdamd_iterations",
    "dijkstra_phases",
    "dual_radius",
    "entropic_radius",
    "hybrid_primal_dual_iterations",
    "objective_bound",
    "order",
    "outer_loops",
    "pdasmd_loop_operations",
    "pdasmd_operations",
    "pdasmd_outer_loops",
    "sinkhorn_iterations",
    "stochastic_sinkhorn_iterations",
    "violation_bound",
    "weight_total",
]
