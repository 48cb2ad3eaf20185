"""PDASGD (Xie, Luo, Huo 2022): PDASMD in the Euclidean norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..errors import InvalidProblem
from .method_info import MethodInfo, Order
from .pdasmd import PDASMD


@dataclass(frozen=True, kw_only=True)
class PDASGD(PDASMD):
    """Descend the semi-dual by variance-reduced, accelerated stochastic gradient steps.

    :class:`PDASMD` with the l2 norm. The Euclidean variance bound (Allen-Zhu 2017) makes the
    step constant 3 enough, which is the default with a certificate; the listing has 9.
    """

    norm: str = "l2"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.norm != "l2":
            raise InvalidProblem(
                f"norm is {self.norm!r}; pdasgd is the l2 case (use method='pdasmd' for others)."
            )

    about: ClassVar[MethodInfo] = MethodInfo(
        family="accelerated stochastic",
        paper="Xie, Luo, Huo 2022",
        year=2022,
        orders=(Order(2.5, eps=1, log=0.5),),
        is_in_table1=True,
        departure="the conditions on the plan's expectation are tested on the plan in hand",
        needs_rows=True,
    )
    sharp_constant: ClassVar[float] = 3.0
