"""``epsilot certify``: bound the optimal cost from the output of any solver."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..engine.request import Request
from ..errors import InvalidProblem
from . import options as opt
from .options import request_options

if TYPE_CHECKING:
    from ..engine.certificate import Certificate
    from .inputs import Inputs

ANSWER = "Answer to audit"


@request_options("kind")
def certify(
    *,
    source: opt.Source,
    request: Request,
    plan: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", rich_help_panel=ANSWER, help="Transport plan, n by m, from any solver."
        ),
    ] = None,
    potentials: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="F G", rich_help_panel=ANSWER, help="Dual potentials, two vectors."),
    ] = None,
    result: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.npz",
            rich_help_panel=ANSWER,
            help="Result saved by 'epsilot solve --out'.",
        ),
    ] = None,
    json: opt.Json = False,
) -> None:
    """Compute certified bounds from a plan, from potentials, or from a saved result.

    An infeasible plan is rounded, and potentials are made feasible. If only one of both is given,
    the other is computed.
    """
    if (plan is None and potentials is None) == (result is None):
        raise InvalidProblem(
            f"{'nothing to audit' if result is None else '--result with a plan or potentials'} "
            "was given; either --result or --plan and --potentials (one or both) are required"
        )
    from ..display import report
    from .inputs import load_problem

    problem = load_problem(source)
    claimed: dict[str, object] = {}
    if result is None:
        problem = problem.normalized() if source.normalize else problem
        certificate = _audited(problem, request, plan, potentials)
    else:
        from ..engine.saved_result import recertify
        from ..problems.kinds import UserProblem

        kind = request.kind
        checked = kind.problem(UserProblem(problem.M, problem.a, problem.b, source.normalize))
        header, certificate = recertify(result, checked, kind)
        claimed = {key: header[key] for key in ("method", "value", "lower_bound") if key in header}
    if json:
        report.print_json(
            {"shape": problem.shape, **dataclasses.asdict(certificate)}
            | ({"claimed": claimed} if claimed else {})
        )
    else:
        report.print_lines("Certificate", report.certificate_lines(certificate), good=True)


def _audited(
    problem: Inputs, request: Request, plan: str | None, potentials: tuple[str, str] | None
) -> Certificate:
    """Return the certificate of a plan and of potentials that are read from files."""
    from ..api.certify import DERIVED_RTOL, audit
    from .inputs import read, read_vector

    return audit(
        dataclasses.replace(request, rtol=DERIVED_RTOL),
        problem.M,
        problem.a,
        problem.b,
        plan=None if plan is None else read(plan),
        potentials=potentials and (read_vector(potentials[0]), read_vector(potentials[1])),
    )
