"""The certificate of a plan and potentials from any source."""

from __future__ import annotations

from dataclasses import dataclass

from .._types import Vector
from ..problems.objective import AUDIT_TOLERANCE, Objective
from ..problems.plan import Core


@dataclass(frozen=True)
class Certificate:
    """Proved bounds ``lower <= OT <= upper`` for a plan and potentials from any source.

    Attributes
    ----------
    upper : float
        The cost of the plan after rounding to its marginals.
    lower : float
        No plan costs less.
    gap : float
        ``upper - lower``.
    marginal_error : float
        l1 distance of the plan from its marginals, as it was given.
    is_feasible : bool
        Whether the plan was feasible as given (to 1e-9 of the mass, in l1).

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> audit = epsilot.certify(1.0 - np.eye(2), plan=np.full((2, 2), 0.25))
    >>> audit.is_feasible, round(audit.gap, 6)
    (True, 0.5)
    """

    upper: float
    lower: float
    gap: float
    marginal_error: float
    is_feasible: bool

    def _repr_html_(self) -> str:
        """Return the bounds for a notebook."""
        from ..display.notebook import certificate_card

        return certificate_card(self)


def certificate_of(objective: Objective, core: Core, f: Vector) -> Certificate:
    """Return the certificate of a plan of mass 1 and a row potential, in the user's units."""
    found = objective.evaluate(core, f)
    upper, lower = objective.bounds_to_user(found.upper, found.lower)
    error = objective.problem.mass * found.marginal_error
    return Certificate(upper, lower, upper - lower, error, found.marginal_error <= AUDIT_TOLERANCE)
