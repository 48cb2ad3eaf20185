"""``epsilot compare``: several methods on one problem."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from ..display.text import clock, operations_text
from ..engine.request import Request
from ..errors import InvalidProblem
from ..wording import shown
from . import options as opt
from .demo import EPS, SIDE, demo_problem
from .exits import finish
from .request_options import LIMITS, TARGETS, asking

if TYPE_CHECKING:
    from ..engine.result import Result
    from .inputs import Inputs

# Those that reach 1 % in seconds on a thousand points; "--methods all" runs every one.
USUAL = (
    "sinkhorn",
    "aam",
    "apdagd",
    "hybrid_primal_dual",
    "pdasgd",
    "pdasmd",
    "dual_extrapolation",
    "dijkstra_dfs",
    "box_newton",
    "exact",
    "restricted_simplex",
)
STORED = 1 << 24  # costs of grids and clouds up to this many entries are stored for all methods
COLUMNS = ("method", "gap", "target", "certified", "value", "epochs", "operations", "time")


@asking(*TARGETS, *LIMITS, "seed", "n_threads", max_seconds=60.0)
def compare(
    *,
    methods: Annotated[
        str | None,
        typer.Option(metavar="A,B,C", help="Methods to compare, or all (default: the usual)."),
    ] = None,
    demo: Annotated[
        bool,
        typer.Option("--demo", rich_help_panel=opt.PROBLEM, help="The images of 'epsilot demo'."),
    ] = False,
    source: opt.Source,
    request: Request,
    plot: opt.Plot = None,
    json: opt.Json = False,
) -> None:
    """Run several methods on one problem, each to the same certified accuracy.

    The limits hold for each method by itself; Ctrl-C ends the comparison there.
    """
    from ..display import report
    from ..display.plotting import check_picture, plot_compare

    if plot is not None:
        check_picture(plot)
    names = method_names(methods, entropic=request.reg is not None)
    problem = _problem(demo, source)
    if demo and request.eps is request.rtol is request.reg is None:
        request = replace(request, eps=EPS)

    import epsilot

    from ..api.solve import run_request

    results: dict[str, Result] = {}
    for name in names:
        asked = replace(request, method=name)
        results[name] = run_request(
            asked, problem.M, problem.a, problem.b, normalize=source.normalize
        )
        if results[name].status is epsilot.Status.INTERRUPTED:
            break
    if plot is not None:
        plot_compare(results, plot)
    if json:
        fields = [report.result_fields(result) for result in results.values()]
        report.print_json({"results": fields, "plot": None if plot is None else str(plot)})
    else:
        report.print_table(COLUMNS, [_row(name, result) for name, result in results.items()])
    finish(results.values())


def method_names(text: str | None, *, entropic: bool) -> list[str]:
    """Return the methods to run, each once; the usual ones that fit the target by default."""
    import epsilot

    known = [entry for entry in epsilot.methods() if entry.costs == "any"]
    if text is None:
        fits = {entry.name for entry in known if entry.solves_entropic or not entropic}
        return [name for name in USUAL if name in fits]
    if text.strip() == "all":
        return [entry.name for entry in known if entry.solves_entropic or not entropic]
    names = [name for part in text.split(",") if (name := part.strip())]
    if not names:
        raise InvalidProblem(
            f"--methods is {shown(text)}; at least one method is required (see 'epsilot methods')"
        )
    return list(dict.fromkeys(names))


def _problem(demo: bool, source: opt.Source) -> Inputs:
    """Return the demonstration's problem or the one from files."""
    from ..arguments import cost_matrix
    from ..files.images import synthetic_pair
    from ..geometry import Geometry
    from .inputs import load_problem

    if not demo:
        problem = load_problem(source)
        if not isinstance(problem.M, Geometry):
            cost_matrix(problem.M)
        n, m = problem.shape
        if isinstance(problem.M, Geometry) and n * m <= STORED:
            return replace(problem, M=problem.M.matrix())
        return problem
    if replace(source, normalize=False) != opt.Source():
        raise InvalidProblem(
            "--demo was given with another problem; exactly one problem is required (leave --demo "
            "out)"
        )
    return demo_problem(*synthetic_pair(SIDE, seed=0))


def _row(name: str, result: Result) -> tuple[str, ...]:
    """Return a line of the table."""
    return (
        name,
        f"{result.gap:.3g}",
        f"{result.target:.3g}",
        "yes" if result.converged else "no",
        f"{result.value:.8g}",
        f"{result.n_iter:,}",
        operations_text(result.work).removesuffix(" operations"),
        clock(result.seconds),
    )
