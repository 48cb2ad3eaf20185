"""Measured cost models of methods, and the offers that ``method="auto"`` compares.

A model predicts seconds of processor time on an n x m problem:
overhead + dense n m + scale (n + m)^power. Predictions never depend on the number of threads.
``python -m epsilot_lab calibrate`` fits the coefficients. The package ships them in
``data/cost_models.json``; the environment variable ``EPSILOT_COST_MODELS`` names another file.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import NamedTuple

from .._types import Fields
from ..errors import InvalidProblem
from ..wording import first_line, shown


class Offer(NamedTuple):
    """A method's bid to be the one that "auto" chooses."""

    reason: str  # why the method suits the problem, shown in ``Result.choice``
    seconds: float  # predicted processor time
    bytes: int  # predicted peak memory beyond the inputs
    handicap: float = 1.0  # factor on the seconds when offers are compared; lower wins
    exact_handicap: float = 1.0  # another factor where the plan must be exact

    def compared(self, *, is_exact: bool) -> float:
        """Return the seconds by which offers are compared."""
        return self.seconds * self.handicap * (self.exact_handicap if is_exact else 1.0)


@dataclass(frozen=True, kw_only=True)
class CostModel:
    """Coefficients of a cost model, in seconds of processor time and in bytes."""

    overhead: float  # seconds per call
    dense: float  # seconds per entry of the cost
    scale: float  # seconds per (n + m) ** power
    power: float
    bytes: float = 0.0  # per entry, or per row and column: see each method's offer
    lazy: float = 0.0  # seconds per entry of a cost that is not stored

    def seconds(self, n: int, m: int, *, is_lazy: bool = False) -> float:
        """Return the predicted seconds on an n x m problem."""
        per_entry = self.lazy if is_lazy else self.dense
        rest = self.scale * float((n + m) ** self.power)
        return self.overhead + per_entry * (n * m) + rest


@lru_cache(maxsize=4)
def _read(path: str | None) -> tuple[dict[str, Fields], dict[str, CostModel]]:
    """Return all models as read, and as objects; models a file lacks are the shipped ones."""
    try:
        if path is None:
            text = resources.files("epsilot").joinpath("data/cost_models.json").read_text()
        else:
            with open(path) as file:
                text = file.read()
        fields: dict[str, Fields] = json.loads(text)
        fields = fields if path is None else _read(None)[0] | fields
        return fields, {name: CostModel(**model) for name, model in fields.items()}
    except (OSError, ValueError, TypeError) as error:
        raise InvalidProblem(
            f"EPSILOT_COST_MODELS is {shown(path)}, which cannot be read ({first_line(error)}); it "
            "must name a JSON file written by python -m epsilot_lab calibrate."
        ) from None


def cost_models() -> dict[str, Fields]:
    """Return the coefficients in force, by the name of the model."""
    return _read(os.environ.get("EPSILOT_COST_MODELS"))[0]


def cost_model(name: str) -> CostModel:
    """Return the model of this name."""
    return _read(os.environ.get("EPSILOT_COST_MODELS"))[1][name]
