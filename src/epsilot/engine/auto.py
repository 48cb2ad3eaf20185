"""Choose the method for ``method="auto"``: the cheapest offer of the registered solvers.

Each solver that "auto" may choose states its own condition and cost model (its ``offer``).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..problems.objective import Objective
from ..problems.problem import Problem
from ..solvers import auto_methods
from ..solvers.cost_models import Offer


@dataclass(frozen=True)
class Choice:
    """The method that "auto" chose, with the reason and the predicted cost."""

    method: str
    reason: str
    seconds: float  # predicted
    bytes: int  # predicted peak, beyond the inputs

    def __str__(self) -> str:
        return (
            f"{self.method}: {self.reason} (predicted {self.seconds:.2g} s, "
            f"{self.bytes / 2**20:.3g} MiB)"
        )


def choose(objective: Objective, *, is_exact: bool = False) -> Choice:
    """Return the method for an objective: its own, or the fastest exact one that serves it.

    ``is_exact`` tells that the plan must be exact, not just within a gap.
    """
    if objective.default_method is not None:
        return Choice(*objective.default_method, 0.0, 0)
    problem = objective.problem
    offers = _offers(problem) or _offers(problem, is_fallback=True)
    if len(offers) > 1:
        method = min(offers, key=lambda name: offers[name].compared(is_exact=is_exact))
    else:
        (method,) = offers
    offer = offers[method]
    return Choice(method, offer.reason, offer.seconds, offer.bytes)


def _offers(problem: Problem, *, is_fallback: bool = False) -> dict[str, Offer]:
    """Return the offers of the methods that serve a problem, by name."""
    offers = {}
    for name, solver in auto_methods(problem.geometry, is_fallback=is_fallback):
        offer = solver.offer(problem)
        if offer is not None:
            offers[name] = offer
    return offers
