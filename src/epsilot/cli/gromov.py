"""``epsilot gromov``: couple two clouds, with a bound on the global optimum."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..engine.request import Request
from . import options as opt
from .options import METHOD, PROBLEM, TARGET, request_options

if TYPE_CHECKING:
    from ..gromov.result import GromovResult


@request_options("rtol", "max_seconds", "seed", "n_threads", "checkpoint", "resume")
def gromov(
    *,
    clouds: Annotated[
        tuple[str, str],
        typer.Argument(metavar="X Y", help="Two clouds (.csv, .npy, .npz), one point per line."),
    ],
    a: opt.WeightsA = None,
    b: opt.WeightsB = None,
    linear: Annotated[
        str | None,
        typer.Option(
            "--cost", metavar="FILE", rich_help_panel=PROBLEM, help="Linear cost of fused problems."
        ),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            metavar="α",
            rich_help_panel=PROBLEM,
            help="With --cost, minimise (1 - α) <M, P> + α GW(P) (default: their sum).",
        ),
    ] = None,
    atol: Annotated[
        float | None,
        typer.Option(metavar="G", rich_help_panel=TARGET, help="Gap that suffices in any case."),
    ] = None,
    method: Annotated[
        str, typer.Option(rich_help_panel=METHOD, help="triangulation, boxes, or auto.")
    ] = "auto",
    starts: Annotated[
        int, typer.Option(min=0, rich_help_panel=METHOD, help="Random starts of descents.")
    ] = 4,
    max_ot: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Stop after this many problems.")
    ] = None,
    request: Request,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE.npz", help="Write coupling (i, j, flow), bounds and moment."),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE.html", help="Write a web page of the result."),
    ] = None,
    json: opt.Json = False,
) -> None:
    """Couple two clouds by Gromov-Wasserstein, with a bound on the global optimum.

    Inner costs are squared Euclidean distances. Ctrl-C stops the run and prints its best bounds.
    """
    import dataclasses

    from ..display import report
    from ..display.page import check_page, gromov_lines
    from ..files import check_distinct, check_writable
    from ..gromov.execute import execute
    from ..gromov.problem import make_gromov_problem
    from .inputs import as_points, read, read_vector

    check_distinct(out=out, checkpoint=request.checkpoint, report=page)
    if out is not None:
        check_writable(out)
    if page is not None:
        check_page(page)
    X, Y = (as_points(read(name), name) for name in clouds)
    p, q = (None if name is None else read_vector(name) for name in (a, b))
    M = None if linear is None else read(linear)
    problem = make_gromov_problem(X, Y, p, q, M, alpha)
    request = dataclasses.replace(request, method=method)
    result = execute(problem, request, atol=atol, starts=starts, max_ot=max_ot)
    written = {"out": out, "report": page, "checkpoint": request.checkpoint}
    files = {name: str(path) for name, path in written.items() if path is not None}
    if json:
        fields = report.certified_fields(result)
        fields |= {"n_ot": result.n_ot, "shape": list(result.plan_operator.shape)}
        fields |= {"pieces": result.cover.pieces, "cross_moment": result.cross_moment.tolist()}
        report.print_json(fields | {"files": files})
    else:
        lines = gromov_lines(result) | files
        report.print_lines(report.verdict(result), lines, good=result.converged)
    if out is not None:
        _write(out, result)
    if page is not None:
        result.report(page, command=shlex.join(["epsilot", *sys.argv[1:]]))
    raise typer.Exit(int(not result.converged))


def _write(out: Path, result: GromovResult) -> None:
    """Write the coupling and its bounds atomically."""
    import numpy as np

    from ..files import write_atomically

    coupling = result.plan_operator.tosparse().tocoo()
    arrays = {
        "i": coupling.coords[0], "j": coupling.coords[1], "flow": coupling.data,
        "shape": np.array(coupling.shape), "value": np.array(result.value),
        "lower_bound": np.array(result.lower_bound), "cross_moment": result.cross_moment,
    }  # fmt: skip
    write_atomically(out, lambda file: np.savez(file, **arrays))
