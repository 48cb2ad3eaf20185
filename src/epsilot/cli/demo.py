"""``epsilot demo``: solve a built-in example and draw it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..engine.request import Request
from . import options as opt

if TYPE_CHECKING:
    from .._types import Matrix
    from ..engine.result import Result
    from .inputs import Inputs

#: Default side of the images in pixels, and default tolerance in units of the largest cost.
SIDE, EPS = 20, 0.02
#: Largest side, in pixels, with a stored cost; larger images use the grid and one method.
MAX_DENSE_SIDE = 48
PICTURE = Path("demo") / "epsilot-demo.png"


def demo(
    side: Annotated[int, typer.Option(help="Pixels along each side of the images.")] = SIDE,
    seed: opt.Seed = 0,
    eps: Annotated[float, typer.Option(help="Tolerance on the gap; the largest cost is 1.")] = EPS,
    megapixel: Annotated[
        bool, typer.Option("--megapixel", help="Use two images of 1000 x 1000 pixels.")
    ] = False,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Write the figure to this file.")
    ] = PICTURE,
    json: opt.Json = False,
) -> None:
    """Transport one synthetic image onto another with two methods, and certify both results."""
    from ..display import report
    from ..display.plan_plots import plot_demo
    from ..display.plotting import check_picture
    from ..files.images import synthetic_pair

    if out != PICTURE:
        check_picture(out)
    side = 1000 if megapixel else side
    A, B = synthetic_pair(side, seed)
    problem = demo_problem(A, B)
    request = Request(eps=eps, seed=seed, progress=sys.stderr.isatty(), on_limit="ignore")

    from ..api.solve import run_request
    from ..problems.work import Status

    results: dict[str, Result] = {}
    for method in ("auto", "pdasmd") if side <= MAX_DENSE_SIDE else ("auto",):
        result = run_request(replace(request, method=method), problem.M, problem.a, problem.b)
        label = result.method if method != "auto" else f"auto ({result.method})"
        results[label] = result
        if not json:
            verdict = "certified" if result.converged else "NOT certified"
            title = f"{label}: gap {result.gap:.3g}, {verdict}"
            report.print_lines(title, report.result_lines(result), good=result.converged)
        if result.status is Status.INTERRUPTED:
            break
    if out == PICTURE:
        out.parent.mkdir(exist_ok=True)
    plot_demo(A, B, results, out)
    if json:
        fields = [report.result_fields(result) for result in results.values()]
        report.print_json({"side": side, "eps": eps, "picture": str(out), "results": fields})
    else:
        typer.echo(f"picture: {out}")
    raise typer.Exit(int(not all(result.converged for result in results.values())))


def demo_problem(A: Matrix, B: Matrix) -> Inputs:
    """Return the cost between pixels, and two images as weights."""
    from ..files.images import grid_cost
    from ..geometry import Grid
    from .inputs import Inputs

    is_small, reach = max(A.shape) <= MAX_DENSE_SIDE, sum(A.shape) - len(A.shape)
    cost = grid_cost(A.shape) if is_small else Grid(A.shape, B.shape, "cityblock", 1 / reach)
    return Inputs(cost, A.ravel(), B.ravel())
