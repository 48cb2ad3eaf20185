"""Define what a run reports: its operations, its evaluations, and how it ended.

One operation is one scalar +, -, ×, ÷, comparison, abs, exp, log, sqrt or random draw.
Copies and indexing are free, and so is building C. A solver reports *units* (how many matrix
or vector entries went through which kind of pass); one table prices them, so all methods
are counted alike.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import NamedTuple

from ..geometry import Geometry

#: unit -> (operations, exponentials among them) per entry
TABLE: dict[str, tuple[int, int]] = {
    "scale": (1, 0),  # C / η, once
    "lse": (5, 1),  # subtract, max, subtract, exp, sum
    "softmax": (7, 1),  # lse, scale, divide
    "both_marginals": (7, 1),  # two adds, max, subtract, exp, row sums, column sums
    "gibbs": (3, 1),  # X from potentials: two adds, exp
    "rounding": (8, 0),
    "ctransform": (2, 0),  # subtract, min
    "inner": (2, 0),  # multiply, add
    "coordinate": (15, 1),  # lse, scale, running sum, ρ (5), distance to the marginal (3)
    "vector": (1, 0),  # one operation per entry
    "pivot": (1, 0),  # an arc priced by a simplex method
    "arc_relaxed": (4, 0),  # three additions and a comparison of a shortest-path search
    "arc_tested": (3, 0),  # two additions and a comparison; also an arc of an augmented path
    "packing_step": (40, 2),  # one coordinate of the packing LP
    "transport": (0, 0),  # a transport problem solved within a method; its passes count elsewhere
    "newton_plan": (5, 1),  # X from potentials with its row and column sums
}


@dataclass(slots=True)
class Work:
    """Counts of units of work; ``operations`` and ``exponentials`` add them up.

    ``certificate`` holds the operations of evaluations made only to certify, which are not
    part of ``operations``.
    """

    units: dict[str, int] = field(default_factory=dict)
    certificate: int = 0

    @classmethod
    def of(cls, **units: int) -> Work:
        """Return the work of the named units."""
        return cls(units)

    def __add__(self, other: Work) -> Work:
        total = Work(dict(self.units), self.certificate)
        total.record(other)
        return total

    def record(self, other: Work) -> None:
        """Add other work in place."""
        units = self.units
        for name, count in other.units.items():
            units[name] = units.get(name, 0) + count
        self.certificate += other.certificate

    @property
    def operations(self) -> int:
        """Arithmetic operations of the method itself."""
        total = 0
        for name, count in self.units.items():  # a loop: this is asked before every step
            total += TABLE[name][0] * count
        return total

    @property
    def exponentials(self) -> int:
        """Exponentials among the operations; they dominate the time."""
        return sum(TABLE[name][1] * count for name, count in self.units.items())


#: Operations of a certificate per entry.
_CERTIFICATE = Work.of(gibbs=1, rounding=1, ctransform=2, inner=1).operations


def certificate_work(geometry: Geometry) -> Work:
    """Return the work of one certificate: the plan, its rounding, two c-transforms, its cost."""
    return Work(certificate=_CERTIFICATE * geometry.certificate_passes * geometry.pass_entries)


class Record(NamedTuple):
    """The best bounds at one evaluation, in the user's units.

    Attributes
    ----------
    n_iter : int
        Epochs up to here.
    operations : int
        Arithmetic operations up to here.
    seconds : float
        Time up to here.
    upper, lower, gap : float
        The best bounds so far, and their difference.
    marginal_error : float
        l1 distance of the iterate from the marginals.
    reg : float
        The regularisation of the iterate.
    """

    n_iter: int
    operations: int
    seconds: float
    upper: float
    lower: float
    gap: float
    marginal_error: float
    reg: float


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
