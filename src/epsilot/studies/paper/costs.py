"""How many operations a solve is expected to take: what sizes are chosen by."""

from __future__ import annotations

from typing import Any

from ...solvers.about import growth
from ..lab.tasks import Task


def planned(task: Task) -> Task:
    """Return the task with the operations expected of it."""
    cost = growth(task.method, task.stop)
    options: dict[str, Any] = dict(task.options)
    factor = options.get("batch_size", 1) ** 0.45
    operations = factor * cost.at(task.side**2, task.eps)
    return Task(**{**vars(task), "cost": operations, "speed": cost.speed})
