"""The place of costs that the file of a result does not hold."""

from __future__ import annotations

from .._types import Matrix
from ..errors import InvalidProblem
from .base import Geometry


class UnsavedCost(Geometry):
    """A cost whose entries are unknown; only its shape is.

    Parameters
    ----------
    shape
        (n, m).
    path
        The file, for messages.
    """

    def __init__(self, shape: tuple[int, int], path: str) -> None:
        self.shape = shape
        self._path = path

    def block(self, start: int, stop: int) -> Matrix:
        """Raise InvalidProblem: the costs are needed."""
        raise InvalidProblem(
            f"{self._path} does not hold the costs, which this needs; pass the problem to "
            "Result.load(path, M, a, b)."
        )

    def shifted(self, delta: float) -> Geometry:
        """Return the geometry itself."""
        return self
