"""Estimate the seconds to keep for the last certificate of a run with a time limit."""

from __future__ import annotations

from ..problems.objective import RunObjective
from .clock import Clock
from .run_state import RunState
from .tuning import TUNING


def expected(run: RunState, objective: RunObjective) -> float:
    """Return the expected seconds of a certificate and its proof.

    They are those of the last one. Before the first, they follow from the speed of the steps, which
    may be far slower per operation than the passes of a certificate.
    """
    if run.evaluation_seconds > 0:
        is_proved = run.evaluation_seconds > TUNING.proved_at_once_seconds
        return run.evaluation_seconds * (1.0 if is_proved else 2.0)
    operations = run.work.operations
    if operations == 0:
        return 0.0
    pace = min(run.seconds / operations, TUNING.slowest_pass_seconds)
    return TUNING.proof_margin * objective.certificate_operations() * pace


def can_be_certified(run: RunState, objective: RunObjective, clock: Clock) -> bool:
    """Tell whether there is time for a last certificate."""
    is_measured = run.evaluation_seconds > 0  # otherwise the time is a guess
    factor = 1.0 if is_measured else 2 / TUNING.proof_margin
    return factor * expected(run, objective) <= clock.seconds_for_proof()


def can_be_bounded_below(run: RunState, objective: RunObjective, clock: Clock) -> bool:
    """Tell whether there is time for a last lower bound."""
    return TUNING.dual_share * expected(run, objective) <= clock.seconds_for_proof()


def reserve(run: RunState, objective: RunObjective, clock: Clock) -> float:
    """Return the seconds to keep for a last certificate, or for a last lower bound."""
    if run.evaluation_seconds == 0:
        needed = objective.certificate_operations()
        if run.work.operations < TUNING.reliable_share * needed:
            return 0.0
    whole, left = expected(run, objective), clock.seconds_for_proof()
    if whole <= left:
        return whole
    is_worth_it = run.plan is None and TUNING.dual_share * whole <= left
    return TUNING.dual_share * whole if is_worth_it else 0.0
