"""Fields that results have in common; reports, figures and pages show them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from .._types import Matrix
from ..problems.plan import Arcs, Plan
from ..problems.problem import Problem
from ..problems.work import Record, Status, Work

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


@dataclass(frozen=True, kw_only=True)
class CertifiedResult:
    """Proved bounds of an optimum, and how a run found them."""

    value: float
    lower_bound: float
    marginal_error: float
    converged: bool
    status: Status
    method: str
    n_iter: int
    work: Work
    seconds: float
    history: list[Record] = field(repr=False)
    target: float
    seed: int
    version: str
    choice: str | None = None  # the method that "auto" chose, and the reason
    quantity: str = field(default="transport cost", repr=False)  # the name of ``value``
    compile_seconds: float = 0.0  # of kernels, during the call; not part of ``seconds``

    @property
    def gap(self) -> float:
        """Certified bound on the distance from the optimum: ``value - lower_bound``."""
        return self.value - self.lower_bound

    def plot_convergence(self, ax: Axes | None = None) -> Figure | SubFigure:
        """Draw upper and lower bound against operations; returns the figure.

        Examples
        --------
        >>> import numpy as np, epsilot
        >>> M = np.abs(np.subtract.outer(np.arange(9.0), np.arange(9.0)))
        >>> figure = epsilot.solve(M, method="sinkhorn").plot_convergence()
        >>> figure.savefig("bounds.png")
        """
        from .plotting import plot_convergence

        return plot_convergence(self, ax=ax)


@dataclass(frozen=True, kw_only=True)
class TransportResult(CertifiedResult):
    """The plan of a transport problem, and how it was found."""

    plan_operator: Plan = field(repr=False)
    value_linear: float
    reg: float
    is_entropic: bool
    options: dict[str, object]
    problem: Problem = field(repr=False)
    asked: dict[str, str] = field(default_factory=dict, repr=False)  # keywords, in Python

    @cached_property
    def problem_hash(self) -> str:
        """Hash of cost and weights, which identifies the problem of a saved result."""
        return self.problem.digest()


@dataclass(frozen=True, kw_only=True)
class CoupledClouds(CertifiedResult, ABC):
    """A coupling of two clouds, and how it was found."""

    arcs: Arcs = field(repr=False)
    n_ot: int

    @abstractmethod
    def aligned(self) -> tuple[Matrix, Matrix]:
        """Return both centred clouds in the principal axes of the second, the first one turned."""
