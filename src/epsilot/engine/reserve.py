"""The seconds that a last certificate takes, which a run with a limit keeps for it."""

from __future__ import annotations

from ..problems.objective import RunObjective
from .clock import Clock
from .run_state import RunState

#: Seconds of an evaluation from which the pair it finds is proved at once, not at the end.
PROVED_AT_ONCE = 0.2
#: Factor from the operations of a certificate to those of it and its proof, in float64.
MARGIN = 4.0
#: Share of the time of a certificate and its proof that potentials alone take.
DUAL_SHARE = 0.4


def expected(run: RunState, objective: RunObjective) -> float:
    """Return the seconds that a certificate and its proof are expected to take.

    Those of the last one; before the first, by the speed of the steps, with a margin.
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
    """Tell whether there is time for a last certificate; a guess of what it takes may err."""
    caution = 1.0 if run.evaluation_seconds > 0 else 2 / MARGIN
    return caution * expected(run, objective) <= clock.seconds_for_proof()


def can_be_bounded_below(run: RunState, objective: RunObjective, clock: Clock) -> bool:
    """Tell whether there is time for the lower bound of potentials."""
    return DUAL_SHARE * expected(run, objective) <= clock.seconds_for_proof()


def reserve(run: RunState, objective: RunObjective, clock: Clock) -> float:
    """Return the seconds to keep for the end: for a certificate, or for potentials alone."""
    whole, left = expected(run, objective), clock.seconds_for_proof()
    if whole <= left:
        return whole
    is_worth_it = run.plan is None and DUAL_SHARE * whole <= left
    return DUAL_SHARE * whole if is_worth_it else 0.0
