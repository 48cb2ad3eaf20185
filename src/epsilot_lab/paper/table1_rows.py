"""Table 1's rows: the two curves of a method under a stop, and the exponents they have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from epsilot import methods
from epsilot.solvers import Method, solver_class
from epsilot.solvers.method_info import MethodInfo

from ..fitting import Curve, Fit, curve, select
from ..store import Line
from .fig1_curves import Measure, seconds
from .image_tasks import source_name
from .measures import STOPS, operations


def published() -> dict[str, MethodInfo]:
    """Return the methods of the paper's Table 1, with what is proved of them."""
    records = {method.name: solver_class(method.name).about for method in methods()}
    return {name: about for name, about in records.items() if about.is_in_table1}


def any_cost() -> list[Method]:
    """Return the methods that take any cost: no others solve the paper's matrices."""
    return [method for method in methods() if method.costs == "any"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """A method under a stop: its two curves, and the constants they belong to.

    Where operations are not counted (a simplex in foreign code), the curves are of seconds.
    """

    data: str
    method: str
    stop: str
    n: Curve
    without_logs: Fit  # of n, operations divided by the powers of log n that the bound has
    eps: Curve
    base_eps: float
    base_n: float
    is_counted: bool


def rows_of(lines: Sequence[Line], data: Sequence[str]) -> list[Row]:
    """Return the rows of the table, methods in the registry's order."""
    rows = []
    for each in data:
        for method in any_cost():
            for stop in STOPS:
                own = select(lines, data=source_name(each), method=method.name, stop=stop)
                if own:
                    rows.append(_row(source_name(each), method.name, stop, own))
    return rows


def _row(data: str, method: str, stop: str, own: list[Line]) -> Row:
    base_eps = _most_varied(own, "eps", "n")
    base_n = _most_varied(own, "n", "eps")
    is_counted = any(line["operations"] is not None for line in own)
    measure: Measure = operations if is_counted else seconds
    orders = solver_class(method).about.orders
    power = orders[0].log if orders else 0.0

    def without_logs(line: Line) -> float | None:
        value = measure(line)
        return None if value is None else value / math.log(line["n"]) ** power

    sizes, accuracies = select(own, eps=base_eps), select(own, n=base_n)
    return Row(
        data=data,
        method=method,
        stop=stop,
        n=curve(method, sizes, lambda line: line["n"], measure),
        without_logs=curve(method, sizes, lambda line: line["n"], without_logs).fit,
        eps=curve(method, accuracies, lambda line: 1 / line["eps"], measure),
        base_eps=base_eps,
        base_n=base_n,
        is_counted=is_counted,
    )


def _most_varied(own: list[Line], fixed: str, varied: str) -> float:
    """Return the value of one field at which the other takes the most values."""
    values = sorted({line[fixed] for line in own})
    return float(max(values, key=lambda v: len({x[varied] for x in own if x[fixed] == v})))
