"""How a run can end."""

from __future__ import annotations

import enum


class Status(enum.Enum):
    """How a run ended; the value is a sentence for the user."""

    CERTIFIED = "certified: the gap is within the target"
    PUBLISHED_STOP = "the method's published stopping rule fired"
    FINISHED = (
        "the method has reached its end and the gap is above the target; raise its limits, or use "
        "a larger target"
    )
    MAX_ITER = "stopped by max_iter before the target; raise it, or use a larger target"
    MAX_OT = "stopped by max_ot before the target; raise it, or use a larger target"
    MAX_SECONDS = "stopped by max_seconds before the target; raise it, or use a larger target"
    INTERRUPTED = "interrupted; this is the best certified result so far"
    CALLBACK = "stopped by the callback; this is the best certified result so far"
    STALLED = "the gap stopped improving before the target; use a larger target"
    NOT_FINITE = (
        "the iterate overflowed; this is the best certified result before that, use a larger target"
    )
    REFUSED = "rejected: the input is not a valid problem; see errors for the reason"

    def __str__(self) -> str:
        return self.value
