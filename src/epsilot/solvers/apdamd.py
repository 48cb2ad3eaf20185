"""Adaptive primal-dual accelerated mirror descent (Lin, Ho, Jordan 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._types import Vector
from .apdagd import APDAGD
from .method_info import MethodInfo, Order


@dataclass(frozen=True, kw_only=True)
class APDAMD(APDAGD):
    r"""APDAGD with the l∞ norm in its line search.

    .. math:: φ(e') ≤ φ(w) + <∇φ(w), e'-w> + \tfrac M2 \|e'-w\|_∞^2

    With the mirror map everybody uses, ‖z-z'‖²/(2n) with δ = n, the published recursion turns
    into APDAGD's on renaming a to n a; the norm is all that is left of the mirror. The test is
    the stricter one, so APDAMD is the more cautious method.

    Parameters
    ----------
    average, rule
        As in :class:`~epsilot.solvers.apdagd.APDAGD`; its own rule is that of Appendix C.

    References
    ----------
    Lin, Ho, Jordan 2019, *On Efficient Optimal Transport: An Analysis of Greedy and Accelerated
    Mirror Descent Algorithms*, Algorithm 4.
    """

    about: ClassVar[MethodInfo] = MethodInfo(
        family="accelerated",
        paper="Lin, Ho, Jordan 2019",
        year=2019,
        orders=(Order(2.5, eps=1, log=0.5),),
        is_in_table1=True,
    )
    smoothness: ClassVar[tuple[float, float]] = (2.0, 4.0)
    own_rule: ClassVar[str] = "violation"

    @staticmethod
    def squared_norm(d: Vector) -> float:
        """Return the squared l∞ norm."""
        largest = float(np.abs(d).max())
        return largest * largest
