"""What the paper's Table 1 says of every method, beside the exponents measured."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..document import Claim
from ..judging import FAILS, HOLDS, UNMEASURED, Statement, at_most, within
from .fig1_claims import SLOPE_N
from .table1_rows import Row, published

#: A measured exponent agrees with a published one, an upper bound, if it is at most this above.
SLACK = 0.1


def statements(rows: Sequence[Row]) -> list[Statement]:
    """Return the paper's claims: a bound for every method, and that some show n² in practice."""
    found = [
        Statement(f"{name}: O({about.printed})", "Table 1", _tests(rows, name))
        for name, about in published().items()
    ]
    slower = [row for row in rows if row.stop == "paper" and _is_slower(row.method)]
    text = "some methods with a proof for n^2.5/ε show n²/ε in practice"
    return [*found, Statement(text, "Section 6", (_in_practice(slower),))]


def _tests(rows: Sequence[Row], method: str) -> tuple[Claim, ...]:
    """Return the tests of a method's bound; one that was not made, where there is no line."""
    own = [row for row in rows if row.stop == "paper" and row.method == method]
    made = tuple(test for row in own for test in bounds(row))
    return made or (Claim(f"{method}: its bound", "the paper's stop", "–", UNMEASURED),)


def bounds(row: Row) -> tuple[Claim, ...]:
    """Return whether the exponents of a method stay within its published bound."""
    about = published()[row.method]
    order = about.orders[0]
    measured = f"{row.without_logs} ({row.n.fit} with logarithms)" if order.log else str(row.n.fit)
    tested = (
        ("n", order.n, row.without_logs, measured, f"ε = {row.base_eps:g}"),
        ("1/ε", order.eps, row.eps.fit, str(row.eps.fit), f"n = {row.base_n:g}"),
    )
    return tuple(
        Claim(
            f"{row.method}: at most ({name})^{limit:.3g}", where, text, at_most(fit, limit + SLACK)
        )
        for name, limit, fit, text, where in tested
    )


def _is_slower(method: str) -> bool:
    return method in published() and published()[method].orders[0].n == 2.5


def _in_practice(rows: Sequence[Row]) -> Claim:
    """Return whether one of the methods has an exponent of n that is close to 2."""
    fits = {row.method: row.without_logs for row in rows if not math.isnan(row.without_logs.slope)}
    named = ", ".join(f"{name} {fit.slope:.2f}" for name, fit in fits.items())
    found = any(within(fit, *SLOPE_N) == HOLDS for fit in fits.values())
    verdict = UNMEASURED if not fits else HOLDS if found else FAILS
    text = "an exponent of n, without logarithms, close to 2"
    return Claim(text, "the paper's stop", named or "–", verdict)
