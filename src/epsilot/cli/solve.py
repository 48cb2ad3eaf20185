"""``epsilot solve``: solve one problem to a certified accuracy."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..engine.request import Request
from . import options as opt
from .options import RUN_OPTIONS, request_options

if TYPE_CHECKING:
    from ..engine.result import Result


@request_options(*RUN_OPTIONS)
def solve(
    *,
    source: opt.Source,
    request: Request,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.npz", help="Write the result to this file.")
    ] = None,
    plot: opt.Plot = None,
    page: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE.html", help="Write a web page of the result."),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Print the method that auto chose, the reason, and its cost."
        ),
    ] = False,
    json: opt.Json = False,
) -> None:
    """Solve a problem to a certified accuracy.

    Ctrl-C stops the run and prints its best certified result so far.
    """
    from ..display import report
    from ..display.page import check_page
    from ..display.plotting import check_picture, save_convergence
    from ..files import check_distinct, check_own
    from .inputs import load_problem

    check_distinct(out=out, checkpoint=request.checkpoint, plot=plot, report=page)
    if out is not None:
        check_own(out, "epsilot-result")
    if plot is not None:
        check_picture(plot)
    if page is not None:
        check_page(page)
    problem = load_problem(source)

    from ..api.solve import run_request

    began = time.perf_counter()
    result = run_request(request, problem.M, problem.a, problem.b, normalize=source.normalize)
    why = _explanation(result, time.perf_counter() - began) if explain else {}
    written = {"out": out, "plot": plot, "report": page}
    if request.checkpoint is not None and Path(request.checkpoint).exists():
        written["checkpoint"] = Path(request.checkpoint)
    files = {name: str(path) for name, path in written.items() if path is not None}
    if json:
        report.print_json(report.result_fields(result) | why | {"files": files})
    else:
        lines = report.result_lines(result) | why | files
        report.print_lines(report.verdict(result), lines, good=result.converged)
    # The result is printed first: writing files may fail on a full disk.
    if out is not None:
        result.save(out)
    if plot is not None:
        save_convergence(result, plot)
    if page is not None:
        result.report(page, command=shlex.join(["epsilot", *sys.argv[1:]]))
    raise typer.Exit(int(not result.converged))


def _explanation(result: Result, seconds: float) -> dict[str, str]:
    """Return the choice of the method with its reason, and the time and memory used."""
    chosen = result.choice or f"{result.method}: chosen by the caller"
    peak = ""
    if sys.platform != "win32":
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        peak = f", peak memory of the process {used / 2**20:.0f} MiB"
    return {"chosen": chosen, "actual": f"{seconds:.2g} s{peak}"}
