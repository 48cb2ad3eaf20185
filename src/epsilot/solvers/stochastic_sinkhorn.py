"""Stochastic Sinkhorn (Abid, Gower 2018; the paper's Appendix E)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from numpy.random import Generator

from .._types import Vector
from ..errors import InvalidProblem
from .greenkhorn import CoordinateDescent
from .method_info import MethodInfo, Order


@dataclass(frozen=True, kw_only=True)
class StochasticSinkhorn(CoordinateDescent):
    r"""Update a random row or column, drawn with probability :math:`h_I^α / \sum_i h_i^α`.

    The violations :math:`h = (ρ(p, r), ρ(q, c))` are those of Greenkhorn. The run stops on the
    realised violation, so the guarantee holds for the run in hand, not in expectation.

    Parameters
    ----------
    power : float
        α >= 0: 0 is uniform, 1 the authors' choice, infinity Greenkhorn.
    start, is_normalized : optional
        As in :class:`~epsilot.solvers.greenkhorn.CoordinateDescent`.
    """

    power: float = 1.0

    about: ClassVar[MethodInfo] = MethodInfo(
        family="Sinkhorn",
        paper="Abid, Gower 2018; Luo, Xie, Huo 2023, Appendix E",
        year=2018,
        orders=(Order(2, eps=2, log=1),),
        is_in_table1=True,
        departure="a scaling comes from a fresh sum of its row or column, not from running sums",
        needs_dense=True,
    )
    _scans: ClassVar[int] = 2  # total, and the scan of its prefix sums

    def __post_init__(self) -> None:
        CoordinateDescent.__post_init__(self)
        if not self.power >= 0:
            raise InvalidProblem(
                f"power is {self.power}; it must be nonnegative (1 is the authors' choice)."
            )

    def _choice(self, rng: Generator, n_updates: int) -> tuple[float, Vector]:
        return float(self.power), rng.random(n_updates)
