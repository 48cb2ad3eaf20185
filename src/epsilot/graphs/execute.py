"""Run a request on a graph, and prove the answer."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from scipy import sparse

from .. import parallel
from ..engine.clock import Clock
from ..engine.execute import drive, proved, report_limit
from ..engine.goal import make_goal
from ..engine.request import Request
from ..engine.run_plan import RunPlan
from ..engine.schedules import ConstantSchedule
from ..engine.starts import COLD
from ..solvers.base import AnySolver
from .objective import FlowObjective
from .problem import FlowProblem
from .result import GraphResult
from .simplex import FlowNetwork, FlowSimplex


def execute(problem: FlowProblem, request: Request, clock: Clock) -> GraphResult:
    """Find a flow as requested, and prove the answer."""
    objective = FlowObjective(problem)
    goal = make_goal(objective, request)
    network = cast("Any", FlowNetwork.of(problem))
    run_plan = RunPlan(
        method="network_simplex",
        choice=None,
        solver=cast("AnySolver", FlowSimplex()),
        support=objective,
        start=COLD,
        schedule=ConstantSchedule(network, evaluate_after=None),
    )
    with parallel.limit(request.n_threads):
        run = drive(objective, goal, request, run_plan, clock)
        answer = proved(run, objective, goal)
    edges, flow, mass = problem.edges, run.plan.values, problem.mass
    used = np.flatnonzero(flow > 0)
    entries = mass * flow[used], (edges.sources[used], edges.targets[used])
    result = GraphResult(
        flows=sparse.csr_array(entries, shape=(edges.n_nodes, edges.n_nodes)),
        potentials=problem.unit * run.potentials,
        value=answer.value,
        lower_bound=answer.lower_bound,
        gap=answer.value - answer.lower_bound,
        target=answer.target,
        status=answer.status,
        seconds=run.seconds,
        n_iter=run.n_iter,
        nodes=problem.nodes,
        work=run.work,
        history=list(run.history),
        compile_seconds=clock.compile_seconds(),
    )
    report_limit(result, request)
    return result
