"""``epsilot compare`` and ``epsilot methods``: run several methods, and list all of them."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from ..display.text import clock, operations_text
from ..engine.request import Request
from ..errors import InvalidProblem
from ..wording import shown
from . import options as opt
from .demo import EPS, SIDE, demo_problem
from .options import LIMITS, TARGETS, request_options

if TYPE_CHECKING:
    from ..engine.result import Result
    from .inputs import Inputs

#: Methods that reach 1 % within seconds on a thousand points; "--methods all" runs all.
DEFAULT_METHODS = (
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
COLUMNS = ("method", "gap", "target", "certified", "value", "epochs", "operations", "time")


@request_options(*TARGETS, *LIMITS, "seed", "n_threads", max_seconds=60.0)
def compare(
    *,
    methods: Annotated[
        str | None,
        typer.Option(metavar="A,B,C", help="Methods to compare, or all (default: the fast ones)."),
    ] = None,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo", rich_help_panel=opt.PROBLEM, help="Compare on the images of 'epsilot demo'."
        ),
    ] = False,
    source: opt.Source,
    request: Request,
    plot: opt.Plot = None,
    json: opt.Json = False,
) -> None:
    """Run several methods on one problem, each to the same certified accuracy.

    Limits apply to each method separately. Ctrl-C ends the comparison.
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
        own = replace(request, method=name)
        results[name] = run_request(
            own, problem.M, problem.a, problem.b, normalize=source.normalize
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
    raise typer.Exit(int(not all(result.converged for result in results.values())))


def method_names(text: str | None, *, entropic: bool) -> list[str]:
    """Return the methods to run, each once; by default the fast ones that solve the problem."""
    import epsilot

    known = [entry for entry in epsilot.methods() if entry.costs == "any"]
    if text is None:
        fits = {entry.name for entry in known if entry.solves_entropic or not entropic}
        return [name for name in DEFAULT_METHODS if name in fits]
    if text.strip() == "all":
        return [entry.name for entry in known if entry.solves_entropic or not entropic]
    names = [name for part in text.split(",") if (name := part.strip())]
    if not names:
        raise InvalidProblem(
            f"--methods is {shown(text)}; at least one method is required (see 'epsilot methods')"
        )
    return list(dict.fromkeys(names))


def _problem(demo: bool, source: opt.Source) -> Inputs:
    """Return the problem of the demo, or read the one that the options name."""
    from ..arguments import cost_matrix
    from ..files.images import synthetic_pair
    from ..geometry import Geometry
    from ..geometry.tuning import TUNING as GEOMETRY_TUNING
    from .inputs import load_problem

    if not demo:
        problem = load_problem(source)
        if not isinstance(problem.M, Geometry):
            cost_matrix(problem.M)
        n, m = problem.shape
        if isinstance(problem.M, Geometry) and n * m <= GEOMETRY_TUNING.max_stored_entries:
            return replace(problem, M=problem.M.matrix())
        return problem
    if replace(source, normalize=False) != opt.Source():
        raise InvalidProblem(
            "--demo was given with another problem; exactly one problem is required (leave --demo "
            "out)"
        )
    return demo_problem(*synthetic_pair(SIDE, seed=0))


def _row(name: str, result: Result) -> tuple[str, ...]:
    """Return one row of the table."""
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


def methods(json: opt.Json = False) -> None:
    """List the methods with their papers, proven complexities and measured costs.

    --json adds their families and options.
    """
    import epsilot

    from ..display import report

    entries = epsilot.methods()
    if json:
        report.print_json({"methods": [dataclasses.asdict(entry) for entry in entries]})
        return
    report.print_table(
        ("year", "name", "paper", "complexity", "entropic", "operations, n = 144, ε = 0.02"),
        [
            (
                str(entry.year),
                entry.name,
                entry.paper,
                entry.complexity,
                "yes" if entry.solves_entropic else "no",
                entry.measured,
            )
            for entry in sorted(entries, key=lambda entry: entry.year)
        ],
    )
