"""The protocol of kinds of problem, and what a user gives them. Imports no numerical code."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..geometry import Geometry
    from .objective import Objective
    from .problem import Problem


class UserProblem(NamedTuple):
    """Cost and weights as the user gave them."""

    M: ArrayLike | Geometry
    a: ArrayLike | None = None
    b: ArrayLike | None = None
    normalize: bool = False
    can_shift: bool = True  # whether costs may be shifted to begin at 0

    @property
    def options(self) -> dict[str, bool]:
        """The fields after cost and weights, by name."""
        return {"normalize": self.normalize, "can_shift": self.can_shift}


class Kind(Protocol):
    """A kind of problem, with the values of its keywords."""

    def problem(self, given: UserProblem) -> Problem:
        """Validate a user's cost and weights, or raise ``InvalidProblem`` with one sentence."""

    def objective(self, problem: Problem, reg: float | None) -> Objective:
        """Return the objective to minimise, with an entropy if ``reg`` is given."""

    @property
    def keywords(self) -> dict[str, object]:
        """The keywords that select this kind, with their values."""
