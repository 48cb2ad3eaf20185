"""One problem of a batch: by the ordinary path, or as the compiled solver has left it."""

from __future__ import annotations

import time

from ...kernels.small import Answers
from ...transport.linear import Transport
from ...transport.plan import Arcs, Plan
from ...transport.problem import make_problem
from ...transport.record import Record
from ...transport.work import Work
from ...version import __version__
from ..execute import execute
from ..goal import make_goal
from ..request import Request
from ..result import Result, Status
from .chunk import Wish, answer, potentials_of
from .source import Chunk

#: What such results say of their method.
CHOICE = "small_simplex: one of many small problems"


def ordinary(chunk: Chunk, k: int, request: Request) -> Result:
    """Return what ``solve`` makes of the k-th problem of a chunk."""
    return execute(make_problem(*chunk.given(k), normalize=chunk.normalize), request)


def result_of(chunk: Chunk, request: Request) -> Result:
    """Return the result of the only problem of a chunk, its bracket proved once more."""
    began = time.perf_counter()
    packed, answers = answer(chunk, Wish.of(request))
    if answers.n_arcs[0] == 0:
        return ordinary(chunk, 0, request)
    problem = make_problem(*chunk.given(0), normalize=chunk.normalize)
    potentials = potentials_of(packed, answers)[0]
    plan, objective = _plan(answers, problem.shape), Transport(problem)
    proof = objective.prove(plan, (answers.f, answers.g))
    value, lower_bound, error, mass = (float(x) for x in answers.numbers[0, :4])
    seconds = time.perf_counter() - began
    work = Work.of(pivot=problem.shape[0] * problem.shape[1])
    record = Record(
        n_iter=1,
        operations=work.operations,
        seconds=seconds,
        upper=value,
        lower=lower_bound,
        gap=value - lower_bound,
        marginal_error=error,
        reg=0.0,
    )
    return Result(
        plan_operator=plan.scaled(mass),
        potentials=potentials,
        value=value,
        value_linear=value,
        lower_bound=lower_bound,
        marginal_error=error,
        converged=True,
        status=Status.CERTIFIED,
        method="small_simplex",
        reg=0.0,
        seed=request.seed,
        options={},
        version=__version__,
        n_iter=1,
        work=work,
        seconds=seconds,
        history=[record],
        target=problem.mass * problem.unit * make_goal(objective, request).allowed(proof.lower),
        is_entropic=False,
        problem=problem,
        choice=CHOICE,
        slopes=objective.slopes,
        asked=request.written(),
    )


def _plan(answers: Answers, shape: tuple[int, int]) -> Plan:
    """Return the plan of the only problem, of mass 1."""
    n = answers.n_arcs[0]
    i, j = answers.arcs[:, :n].copy()
    return Plan(Arcs(shape, i, j, answers.flow[:n].copy()))
