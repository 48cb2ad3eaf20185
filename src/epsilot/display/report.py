"""Print results: one JSON object, a panel on a terminal, or plain lines in a pipe."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from .._types import Json
from .results import CertifiedResult, TransportResult
from .text import (
    accuracy_note,
    clock,
    compile_note,
    cost_words,
    counted,
    distance_note,
    is_counted,
    operations_text,
)

if TYPE_CHECKING:
    pass


class Audited(Protocol):
    """Fields of a certificate that reports show."""

    @property
    def upper(self) -> float: ...  # noqa: D102
    @property
    def lower(self) -> float: ...  # noqa: D102
    @property
    def gap(self) -> float: ...  # noqa: D102
    @property
    def marginal_error(self) -> float: ...  # noqa: D102
    @property
    def is_feasible(self) -> bool: ...  # noqa: D102


def print_json(fields: Mapping[str, object]) -> None:
    """Print one JSON object on one line."""
    print(json.dumps(_plain(fields), allow_nan=False, ensure_ascii=False))


def certified_fields(result: CertifiedResult) -> dict[str, object]:
    """Return the fields that results of all kinds have in JSON output."""
    return {
        "method": result.method,
        "choice": result.choice,
        "converged": result.converged,
        "status": result.status.name.lower(),
        "message": str(result.status),
        "value": result.value,
        "lower_bound": result.lower_bound,
        "gap": result.gap,
        "target": result.target,
        "marginal_error": result.marginal_error,
        "n_iter": result.n_iter,
        "operations": result.work.operations if is_counted(result.work) else None,
        "certificate_operations": result.work.certificate,
        "seconds": result.seconds,
        "compile_seconds": result.compile_seconds,
        "seed": result.seed,
        "version": result.version,
    }


def result_fields(result: TransportResult) -> dict[str, object]:
    """Return the fields of a result for JSON output."""
    return certified_fields(result) | {
        "shape": list(result.plan_operator.shape),
        "cost": cost_words(result.problem),
        "value_linear": result.value_linear,
        "reg": result.reg,
        "options": result.options,
    }


def result_lines(result: TransportResult) -> dict[str, str]:
    """Return the fields of a result as labelled text."""
    n, m = result.plan_operator.shape
    accuracy = accuracy_note(result.quantity, result.value, result.lower_bound)
    cost = cost_words(result.problem)
    distance = distance_note(result.problem, result.quantity, result.value)
    lines = {
        "problem": f"{n} × {m}" + ("" if cost is None else f", {cost}"),
        "value": f"{result.value:.10g}",
        **({} if distance is None else {"distance": distance}),
        "lower bound": f"{result.lower_bound:.10g}",
        "gap": f"{result.gap:.3g} (target {result.target:.3g}{accuracy and '; ' + accuracy})",
        "method": result.method + (f", η = {result.reg:.3g}" if result.reg else ""),
        "work": f"{counted(result.n_iter, 'epoch')}, {operations_text(result.work)}, "
        f"{clock(result.seconds)}{compile_note(result.compile_seconds)}",
        "status": str(result.status),
    }
    if result.is_entropic:
        lines["transport cost"] = f"{result.value_linear:.10g}"
    return lines


def verdict(result: CertifiedResult) -> str:
    """Return the title of a printed result."""
    return "Certified" if result.converged else "Stopped before the target"


def certificate_lines(certificate: Audited) -> dict[str, str]:
    """Return the fields of a certificate as labelled text."""
    feasibility = "feasible" if certificate.is_feasible else "not feasible, rounded before pricing"
    return {
        "upper bound": f"{certificate.upper:.10g}",
        "lower bound": f"{certificate.lower:.10g}",
        "gap": f"{certificate.gap:.3g}",
        "plan": f"{feasibility} (marginal error {certificate.marginal_error:.3g})",
    }


def print_lines(title: str, lines: Mapping[str, str], *, good: bool) -> None:
    """Print labelled values: a panel on a terminal, plain lines otherwise."""
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        print(f"{title}\n" + "\n".join(f"  {k}: {v}" for k, v in lines.items()))
        return
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    for name, value in lines.items():
        grid.add_row(name, Text(value, style="bold" if name == "gap" else ""))
    colour = "green" if good else "yellow"
    console.print(Panel(grid, title=title, title_align="left", border_style=colour, expand=False))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table: formatted on a terminal, tab-separated otherwise."""
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        print("\n".join("\t".join(row) for row in (columns, *rows)))
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=column in ("name", "method"))
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def _plain(value: object) -> Json:
    """Convert a value to JSON types: NumPy scalars to numbers, non-finite floats to null."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)
