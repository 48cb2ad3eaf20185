"""How many operations a solve is expected to take: what sizes are chosen by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from epsilot.solvers.method_info import growth

from .image_tasks import ImageTask

#: (method, option, value) -> operations beside those of the method's own choice.
FACTORS: dict[tuple[str, str, Any], float] = {
    ("aam", "rule", "violation"): 4.0,
    ("apdagd", "rule", "duality"): 0.3,
    ("pdasmd", "smoothness", "sharp"): 0.45,
}


def priced(task: ImageTask) -> ImageTask:
    """Return the task with the operations expected of it."""
    cost = growth(task.method, task.stop)
    options: dict[str, Any] = dict(task.options)
    factor = options.pop("batch_size", 1) ** 0.45
    for choice in options.items():
        factor *= FACTORS.get((task.method, *choice), 1.0)
    operations = factor * cost.at(task.side**2, task.eps)
    return replace(task, cost=operations, speed=cost.speed)
