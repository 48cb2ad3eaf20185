"""Estimate the seconds to keep for the last certificate of a run with a time limit."""

from __future__ import annotations

from ..problems.objective import RunObjective
from .clock import Clock
from .run_state import RunState

#: Evaluations that take more seconds than this are proved at once, not at the end.
PROVED_AT_ONCE = 0.2
#: Operations of a certificate with its proof, in units of those of the certificate.
MARGIN = 4.0
#: Share of that time for the lower bound alone.
DUAL_SHARE = 0.4
#: Steps of fewer operations than this share of a certificate's do not tell how long one takes: a
#: millisecond in which another process ran would count as many seconds.
RELIABLE_SHARE = 1 / 16


def expected(run: RunState, objective: RunObjective) -> float:
    """Return the expected seconds of a certificate and its proof.

    They are those of the last one. Before the first, they follow from the speed of the steps.
    """
    if run.evaluation_seconds > 0:
        is_proved = run.evaluation_seconds > PROVED_AT_ONCE
        return run.evaluation_seconds * (1.0 if is_proved else 2.0)
    operations = run.work.operations
    if operations == 0:
        return 0.0
    needed = objective.certificate_work().certificate
    return MARGIN * needed * run.seconds / operations


def can_be_certified(run: RunState, objective: RunObjective, clock: Clock) -> bool:
    """Tell whether there is time for a last certificate."""
    factor = 1.0 if run.evaluation_seconds > 0 else 2 / MARGIN  # before the first, a guess
    return factor * expected(run, objective) <= clock.seconds_for_proof()


def can_be_bounded_below(run: RunState, objective: RunObjective, clock: Clock) -> bool:
    """Tell whether there is time for a last lower bound."""
    return DUAL_SHARE * expected(run, objective) <= clock.seconds_for_proof()


def reserve(run: RunState, objective: RunObjective, clock: Clock) -> float:
    """Return the seconds to keep for a last certificate, or for a last lower bound."""
    if run.evaluation_seconds == 0:
        needed = objective.certificate_work().certificate
        if run.work.operations < RELIABLE_SHARE * needed:
            return 0.0
    whole, left = expected(run, objective), clock.seconds_for_proof()
    if whole <= left:
        return whole
    is_worth_it = run.plan is None and DUAL_SHARE * whole <= left
    return DUAL_SHARE * whole if is_worth_it else 0.0
