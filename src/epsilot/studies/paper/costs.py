"""How many operations a solve is expected to take: what sizes are chosen by."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..lab.tasks import Task


@dataclass(frozen=True)
class Cost:
    """About ``operations`` at n = 100 and ε = 0.05, growing as n^a ε^-b."""

    operations: float
    a: float
    b: float
    speed: float = 1.2e9  # operations a second

    def at(self, n: int, eps: float) -> float:
        """Return the operations expected."""
        return self.operations * math.pow(n / 100, self.a) * math.pow(0.05 / eps, self.b)


#: (method, stop) -> cost, measured on the synthetic images.
COSTS: dict[tuple[str, str], Cost] = {
    ("sinkhorn", "paper"): Cost(6.4e7, 2.0, 1.5),
    ("greenkhorn", "paper"): Cost(1.0e8, 2.2, 1.1),
    ("stochastic_sinkhorn", "paper"): Cost(1.5e8, 2.2, 1.2),
    ("accelerated_sinkhorn", "paper"): Cost(2.5e8, 2.6, 0.9),
    ("aam", "paper"): Cost(3.0e7, 2.2, 1.0),
    ("apdagd", "paper"): Cost(2.2e8, 2.1, 1.05),
    ("apdamd", "paper"): Cost(2.6e8, 2.2, 1.05),
    ("apdrcd", "paper"): Cost(2.0e9, 2.6, 1.05, 6e8),
    ("apdgcd", "paper"): Cost(1.5e11, 3.5, 1.2),
    ("hybrid_primal_dual", "paper"): Cost(1.1e8, 2.1, 1.0),
    ("pdasgd", "paper"): Cost(2.5e8, 2.1, 1.05),
    ("pdasmd", "paper"): Cost(6.2e8, 2.1, 1.05),
    ("dual_extrapolation", "paper"): Cost(2.0e10, 2.3, 1.0, 1e8),
    ("dijkstra_dfs", "paper"): Cost(3.0e6, 2.5, 0.2),
    ("packing_lp", "paper"): Cost(1.7e11, 2.2, 1.5, 2e8),
    ("box_newton", "paper"): Cost(1.7e9, 2.9, 1.6),
    ("exact", "paper"): Cost(1e6, 3.0, 0.0),
    ("restricted_simplex", "paper"): Cost(1e7, 2.2, 0.0),
    ("apdrcd", "certificate"): Cost(5.0e7, 2.5, 1.1, 6e8),
    ("apdgcd", "certificate"): Cost(3.0e9, 3.7, 1.1),
    ("packing_lp", "certificate"): Cost(7.5e7, 2.1, 1.7, 3e8),
    ("dual_extrapolation", "certificate"): Cost(3.0e7, 2.2, 0.8, 1e8),
}
_DEFAULT = {"paper": Cost(5e8, 2.3, 1.2), "certificate": Cost(1e7, 2.2, 1.2)}


def planned(task: Task) -> Task:
    """Return the task with the operations expected of it."""
    cost = COSTS.get((task.method, task.stop), _DEFAULT[task.stop])
    options: dict[str, Any] = dict(task.options)
    factor = options.get("batch_size", 1) ** 0.45
    operations = factor * cost.at(task.side**2, task.eps)
    return Task(**{**vars(task), "cost": operations, "speed": cost.speed})
