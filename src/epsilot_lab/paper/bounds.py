"""Divide what a run took by the bound of its paper, with the constants of the proof."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from epsilot import theory
from epsilot._types import Vector
from epsilot.problems.problem import make_problem
from epsilot.solvers.base import published_parameters

from ..instances import images
from ..store import Line

#: (line, smoothed p', smoothed q', ε'/2) -> most iterations, in the unit of the line's ``n_iter``.
Bound = Callable[[Line, Vector, Vector, float], float]

#: Largest cost of every problem between images.
COST_MAX = 1.0


def share(line: Line) -> float | None:
    """Return the iterations of a run over its bound; None where no constant is known."""
    bound = BOUNDS.get(line["method"])
    if bound is None or not line["has_ended"]:
        return None
    p, q, tolerance = _parameters(line["data"], line["side"], line["seed"], line["eps"])
    return float(line["n_iter"]) / bound(line, p, q, tolerance)


@cache
def _parameters(data: str, side: int, seed: int, eps: float) -> tuple[Vector, Vector, float]:
    """Return p', q' and ε'/2 of Appendix C."""
    target, tolerance = published_parameters(make_problem(*images(side, seed, data)), eps)
    return target.p, target.q, tolerance


def _sinkhorn(line: Line, p: Vector, q: Vector, tolerance: float) -> float:
    return theory.sinkhorn_iterations(tolerance, COST_MAX, line["reg"], p, q)


def _coordinates(line: Line, p: Vector, q: Vector, tolerance: float) -> float:
    """Return the bound in epochs of n + m updates."""
    updates = theory.stochastic_sinkhorn_iterations(tolerance, COST_MAX, line["reg"], p, q)
    return updates / (p.size + q.size)


def _accelerated_sinkhorn(line: Line, p: Vector, q: Vector, tolerance: float) -> float:
    return theory.accelerated_sinkhorn_iterations(tolerance, COST_MAX, line["reg"], p, q)


def _pdasmd(line: Line, p: Vector, q: Vector, tolerance: float) -> float:
    options = line["options"]
    return theory.pdasmd_outer_loops(
        line["eps"],
        COST_MAX,
        p,
        q,
        norm=options["norm"],
        batch_size=options["batch_size"],
        smoothness=options["smoothness"],
        step_constant=options["step_constant"],
    )


def _accelerated(line: Line, p: Vector, q: Vector, tolerance: float) -> float:
    """Return the bound of APDAGD, which AAM shares, for the rule that ended the run.

    The papers' rule asks for f + φ <= ε/6 and a cost of rounding, at most ‖C‖∞/2 times the
    violation, of ε/6. Appendix C's rule has ε'/2 and ε/4.
    """
    eps = line["eps"]
    violation, gap = tolerance, eps / 4
    if line["options"].get("rule", "duality") == "duality":
        violation, gap = eps / (3 * COST_MAX), eps / 6
    return theory.apdagd_iterations(violation, COST_MAX, line["reg"], p, q, objective=gap)


def _apdamd(line: Line, p: Vector, q: Vector, tolerance: float) -> float:
    gap = line["eps"] / 4
    return theory.apdamd_iterations(tolerance, COST_MAX, line["reg"], p, q, objective=gap)


def _hybrid(line: Line, p: Vector, q: Vector, tolerance: float) -> float:
    return theory.hybrid_primal_dual_iterations(line["eps"], COST_MAX, p.size, q.size)


def _dijkstra(line: Line, p: Vector, q: Vector, tolerance: float) -> float:
    return theory.dijkstra_phases(line["eps"], COST_MAX)


BOUNDS: dict[str, Bound] = {
    "sinkhorn": _sinkhorn,
    "greenkhorn": _coordinates,
    "stochastic_sinkhorn": _coordinates,
    "accelerated_sinkhorn": _accelerated_sinkhorn,
    "aam": _accelerated,
    "apdagd": _accelerated,
    "apdamd": _apdamd,
    "hybrid_primal_dual": _hybrid,
    "pdasgd": _pdasmd,
    "pdasmd": _pdasmd,
    "dijkstra_dfs": _dijkstra,
}
