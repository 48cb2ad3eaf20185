"""Method metadata: references, proven complexity, measured cost."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import resources

from .._types import Fields


@dataclass(frozen=True)
class Order:
    r"""A bound on the operations up to a constant, :math:`n^a (\|C\|/ε)^b (\log n)^c`."""

    n: float
    eps: float = 0.0
    log: float = 0.0

    def at(self, n: float, r: float) -> float:
        """Return the bound at n points and r = ε / ‖C‖∞."""
        return math.pow(n, self.n) * math.pow(math.log(n), self.log) / math.pow(r, self.eps)

    @property
    def text(self) -> str:
        """The bound with logarithms and ‖C‖."""
        logs = {0.0: "", 0.5: "√log n", 1.0: "log n", 2.0: "log² n"}
        log = logs.get(self.log, f"(log n){_power(self.log)}")
        factors = [f"n{_power(self.n)}", f"‖C‖{_power(self.eps)}" if self.eps else "", log]
        below = f" / ε{_power(self.eps)}" if self.eps else ""
        return " ".join(filter(None, factors)) + below

    @property
    def short(self) -> str:
        """The bound as the paper's Table 1 prints it, without logarithms."""
        below = f"/ε{_power(self.eps)}" if self.eps else ""
        return f"n{_power(self.n)}{below}"


#: Stopping rules of ``stop="paper"``: Appendix C's, that of the primal-dual methods, and that of
#: methods which terminate by themselves.
APPENDIX_C = "violation ≤ ε'/2 (Appendix C)"
PRIMAL_DUAL = "rounding and duality gap ≤ ε/6 each"
A_PRIORI = "its own end, proved beforehand"


@dataclass(frozen=True, kw_only=True)
class MethodInfo:
    """Metadata of a method, from which tables, documentation and experiments are derived."""

    family: str
    paper: str
    year: int  # of the first paper named
    orders: tuple[Order, ...] = ()  # the proved bound is their sum, the leading one first
    note: str = "no proof"  # shown in place of a proved bound
    is_in_table1: bool = False  # whether the paper compares with it there
    rule: str = APPENDIX_C  # stopping rule of the method's own paper, for stop="paper"
    departure: str = ""  # how stop="paper" differs from the method's paper
    exactness: str = "to any ε"
    solves_entropic: bool = True
    needs_rows: bool = False
    needs_dense: bool = False
    needs_lattice: bool = False
    needs_line: bool = False
    form: str = "balanced"  # of the problems it solves: the ``form`` of their objectives
    needs_small: bool = False  # needs at most 512 nodes
    takes_point_prices: bool = True  # takes one marginal penalty per point
    needs_arcs: bool = False  # needs a sparse cost
    takes_arcs: bool = False  # also takes sparse costs

    @property
    def complexity(self) -> str:
        """The proved bound, or the note in its place."""
        return " + ".join(order.text for order in self.orders) or self.note

    @property
    def costs(self) -> str:
        """Cost types that the method supports."""
        if self.form != "balanced":
            return f"any, {self.form}"
        if self.needs_small:
            return "small"
        if self.needs_arcs:
            return "sparse"
        if self.needs_lattice:
            return "l1 grids"
        return "points on a line" if self.needs_line else "any"

    @property
    def printed(self) -> str:
        """The proved bound as in the paper's Table 1."""
        return " + ".join(order.short for order in self.orders)


def _power(exponent: float) -> str:
    """Return an exponent as text: empty for 1, else ², ³, ^2.5, ^(7/3)."""
    value = Fraction(exponent).limit_denominator(12)
    if value.denominator > 2:
        return f"^({value})"
    return {1.0: "", 2.0: "²", 3.0: "³"}.get(exponent, f"^{exponent:g}")


@dataclass(frozen=True)
class Growth:
    """Measured growth: ``operations`` at n = 100 and ε = 0.05 max C, times n^a ε^-b."""

    operations: float
    a: float
    b: float
    speed: float = 1.2e9  # operations per second

    def at(self, n: int, eps: float) -> float:
        """Return the expected number of operations."""
        return self.operations * math.pow(n / 100, self.a) * math.pow(0.05 / eps, self.b)


#: Growth assumed for methods that were not measured, by stop mode.
UNMEASURED = {"paper": Growth(5e8, 2.3, 1.2), "certificate": Growth(1e7, 2.2, 1.2)}


def measured_operations(name: str) -> str:
    """Return the operations to ε = 0.02 max C at n = 144, as text (study ``registry``)."""
    return str(_measured().get(name, {}).get("operations", ""))


def growth(name: str, stop: str) -> Growth:
    """Return the growth of operations on the synthetic images, for a stop mode."""
    found = _measured().get(name, {}).get("growth", {}).get(stop)
    return UNMEASURED[stop] if found is None else Growth(*found)


@cache
def _measured() -> dict[str, Fields]:
    text = resources.files("epsilot").joinpath("data/measured.json").read_text(encoding="utf-8")
    found: dict[str, Fields] = json.loads(text)
    return found
