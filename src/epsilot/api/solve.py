"""From a wish (ε, a relative tolerance, or η) to a certified result."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import parallel
from .._types import Potentials
from ..arguments import check_positive, shown
from ..errors import ConvergenceWarning, InvalidProblem, NotConverged
from ..geometry import Geometry
from ..run.auto import Choice, choose
from ..run.checkpoint import Checkpoint
from ..run.driver import Driver, Goal, Run, Stage, Start, warm_up
from ..run.interrupts import graceful_interrupts
from ..run.result import Result, Status
from ..run.schedules import Constant, Continuation, Refinement
from ..run.starts import coarse_start, wants_start
from ..solvers import make_solver, options_of
from ..solvers.base import Solver
from ..transport.objective import Transport, dual_feasible, objective_of
from ..transport.problem import Additive, Entropic, Problem, make_problem
from ..transport.record import Record
from ..transport.work import Work
from ..version import __version__
from .checks import (
    SMALLEST_EPS,
    check_arguments,
    check_fit,
    check_reachable,
    check_regularisation,
    internal_potentials,
    largest_start,
    make_limits,
)

#: Potentials beyond this many times the largest cost (or η) say nothing but their c-transforms.
FAR = 100.0


def solve(
    M: ArrayLike | Geometry,
    a: ArrayLike | None = None,
    b: ArrayLike | None = None,
    *,
    eps: float | None = None,
    rtol: float | None = None,
    reg: float | None = None,
    tol: float | None = None,
    method: str = "auto",
    stop: str = "certificate",
    max_iter: int | None = None,
    max_seconds: float | None = None,
    potentials_init: tuple[ArrayLike, ArrayLike] | None = None,
    seed: int = 0,
    n_threads: int | None = None,
    callback: Callable[[Record], Any] | None = None,
    progress: bool = False,
    on_limit: str = "warn",
    normalize: bool = False,
    checkpoint: str | None = None,
    resume: str | None = None,
    multiscale: bool | None = None,
    **options: Any,
) -> Result:
    r"""Solve a discrete optimal transport problem to a certified accuracy.

    .. math:: \min_X \langle M, X\rangle \quad X 1 = a,\; X^\top 1 = b,\; X \ge 0

    The result holds a feasible plan and a lower bound with ``value - lower_bound <= eps``,
    both recomputed in float64 from the result itself.

    Parameters
    ----------
    M : (n, m) array-like or Geometry
        Finite costs of any sign and scale.
    a, b : (n,), (m,) array-like, optional
        Nonnegative weights of equal total; uniform if None.
    eps, rtol, reg : float, optional
        What to reach, at most one of: an absolute gap in units of M times the mass; a gap
        relative to the lower bound (default 0.01), or within round-off of the costs if that is
        about zero; the *entropic* problem with this regularisation, min <M, X> - reg H(X), to
        the gap ``tol``, where H(X) = -Σ X log X of the plan in the user's units, whatever its mass.
    tol : float, optional
        With ``reg``: the certified entropic gap, by default 1e-6 max|M| times the mass.
    method : str
        A name from :func:`methods`, or "auto".
    stop : {"certificate", "paper"}
        Stop at the certified gap, or follow the method's published procedure to the letter
        (the certificate is still computed).
    max_iter, max_seconds : optional
        Limits in epochs and in seconds of wall time; the result is then still feasible and
        carries its true gap.
    potentials_init : (f, g), optional
        Warm start, in units of M.
    seed : int
        Seed of the generator; it fixes the whole trace, bit by bit: neither threads, nor the
        compilation cache, nor the vector instructions of an x86 processor change it. Runs that
        the clock ends, and other versions of the package, may differ.
    n_threads : int, optional
        Threads the kernels may use; one per core by default. Results do not depend on it.
    callback : callable, optional
        Called with a :class:`Record` at each evaluation; returning True stops.
    progress : bool
        Show a live line with the gap.
    on_limit : {"warn", "raise", "ignore"}
        What to do when a limit ends the run first.
    normalize : bool
        Rescale both weights to total 1 instead of refusing unequal totals.
    checkpoint, resume : path, optional
        Save the run to a file as it goes; continue a saved run to the same trace.
    multiscale : bool, optional
        For a point cloud: start from the potentials of a coarse version of it; by default for
        clouds of 5000 points and more in up to three dimensions.
    **options
        Options of the method.

    Returns
    -------
    Result

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> M = np.abs(np.subtract.outer(np.arange(4.0), np.arange(3.0)))
    >>> result = epsilot.solve(M, eps=0.01)
    >>> bool(result.gap <= 0.01), result.converged
    (True, True)
    """
    check_arguments(
        method=method, stop=stop, on_limit=on_limit, seed=seed, n_threads=n_threads,
        callback=callback, checkpoint=checkpoint, resume=resume, normalize=normalize,
        progress=progress,
    )  # fmt: skip
    problem = make_problem(M, a, b, normalize=normalize)
    if callback is not None:  # which may change what it was given
        problem = problem.detached()
    goal = make_goal(problem, eps=eps, rtol=rtol, reg=reg, tol=tol)
    if goal.reg is not None:  # float32 sweeps do not reach the accuracies that are asked for
        problem = replace(problem, geometry=problem.geometry.exact)
    choice = choose(problem, goal.reg) if method == "auto" else None
    name = method if choice is None else choice.method
    solver = make_solver(name, options, _keywords()).resolved(stop, problem)
    check_fit(name, solver, problem, goal, stop)
    limits = make_limits(solver.patience if max_iter is None else max_iter, max_seconds, callback)
    inner, rows, cols = (
        (problem, slice(None), slice(None)) if stop == "paper" else problem.support()
    )
    largest = largest_start(problem, goal.reg)
    given = _near(internal_potentials(potentials_init, problem, rows, cols, largest), inner, goal)
    is_cold = given is None and goal.reg is None and stop != "paper"
    start = _start(inner, seed) if is_cold and wants_start(inner.geometry, multiscale) else None
    schedule = _schedule(solver, inner, goal, stop, given is not None or start is not None)
    with parallel.limit(n_threads):
        warm_up(solver, schedule.first())
        driver = Driver(
            objective_of(problem, goal.reg), inner, rows, cols, solver, schedule, goal, limits,
            np.random.default_rng(seed),
        )  # fmt: skip
        wish = {"eps": eps, "rtol": goal.rtol, "reg": reg, "tol": tol, "stop": stop}
        saved = Checkpoint(driver.objective, wish, name, solver, seed)
        if checkpoint is not None:
            driver.save = saved.writer(checkpoint)
        resumed = saved.restore(resume, driver) if resume is not None else None
        with graceful_interrupts(), _observed(driver, name, progress):
            run = driver.drive(given, resumed, start)
            result = _result(run, driver, name, choice, seed)
    _report_limit(result, on_limit)
    return result


@cache
def _keywords() -> tuple[str, ...]:
    """Return the names of the arguments of ``solve``, which a misspelt option may mean."""
    return tuple(inspect.signature(solve).parameters)


@contextmanager
def _observed(driver: Driver, name: str, progress: bool) -> Iterator[None]:
    """Show a live line while a driver runs, if it is wanted."""
    if not progress:
        yield
        return
    from ..show.progress import Progress

    goal, problem = driver.goal, driver.objective.problem
    eps = None if goal.eps is None else goal.eps * problem.mass * problem.unit
    with Progress(name, eps, goal.rtol) as line:
        driver.observers, driver.beat = [line], line.beat
        yield


def _near(given: Potentials | None, inner: Problem, goal: Goal) -> Potentials | None:
    """Return a warm start whose exponents do not overflow: far potentials are c-transformed."""
    if given is None:
        return None
    f, g = given[0] - given[0].max(), given[1] + given[0].max()
    reach = FAR * max(inner.cost_max, goal.reg or 0.0)
    if max(np.abs(f).max(), np.abs(g).max()) <= reach:
        return given
    return dual_feasible(inner.geometry, f)


def _start(inner: Problem, seed: int) -> Start:
    """Return a start from a coarse version of a problem, solved within the run's limits."""

    def run(stage: Stage) -> tuple[Potentials, Work]:
        began, work = time.perf_counter(), Work()

        def solve_coarse(*problem: Any, **keywords: Any) -> Result:
            left = max(0.0, stage.max_seconds - (time.perf_counter() - began))
            result = solve(
                *problem, **keywords, normalize=True, on_limit="ignore", seed=seed,
                max_seconds=left, callback=stage.callback,
            )  # fmt: skip
            work.record(result.work)
            return result

        return coarse_start(inner, solve_coarse), work

    return run


# -- the wish --------------------------------------------------------------------------------


def make_goal(
    problem: Problem,
    *,
    eps: float | None = None,
    rtol: float | None = None,
    reg: float | None = None,
    tol: float | None = None,
) -> Goal:
    """Turn eps, rtol or reg into a goal in internal units, or say what is wrong with them."""
    given = {k: v for k, v in (("eps", eps), ("rtol", rtol), ("reg", reg)) if v is not None}
    if len(given) > 1:
        raise InvalidProblem(
            f"{' and '.join(given)} were given; pass exactly one of eps, rtol and reg."
        )
    if tol is not None and reg is None:
        raise InvalidProblem(
            f"tol={shown(tol)} was given without reg; tol is the accuracy for reg only."
        )
    for name, value in {**given, **({} if tol is None else {"tol": tol})}.items():
        check_positive(name, value)
    size, mass, unit = problem.scale, problem.mass, problem.unit
    value = mass * unit  # what an internal 1 is worth to the user
    slack = 8 * float(np.finfo(float).eps) * size
    if reg is not None:
        eta = float(reg) / unit
        check_regularisation(float(reg), problem)
        tolerance = 1e-6 * (size or 1.0) if tol is None else float(tol) / mass / unit
        check_reachable("tol", tolerance, max(size, eta), value)
        return Goal(eps=tolerance, reg=eta, slack=max(slack, 1e-15 * eta))
    if eps is not None:
        check_reachable("eps", float(eps) / mass / unit, size, value)
        return Goal(eps=float(eps) / mass / unit, slack=slack)
    rtol = 0.01 if rtol is None else float(rtol)
    if rtol < 1e-12:
        raise InvalidProblem(
            f"rtol is {rtol:g}; float64 arithmetic can certify about 1e-12 (ask for rtol >= 1e-12)."
        )
    tiny = max(1e-9, SMALLEST_EPS / rtol) * size  # an optimum of 0 is certified to round-off
    return Goal(rtol=rtol, offset=problem.offset, tiny=tiny, slack=slack)


def _schedule(solver: Solver, inner: Problem, goal: Goal, stop: str, is_warm: bool) -> Any:
    if goal.reg is not None:
        return Constant(Entropic(inner.geometry, goal.reg, inner.p, inner.q))
    if stop == "paper":
        target, tolerance = solver.published(inner, goal.allowed(-inner.offset))
        return Constant(target, True, tolerance, 0.5)  # evaluated for the record only
    if solver.about.exactness == "exact":
        target = Additive(inner.geometry, goal.allowed(-inner.offset), inner.p, inner.q)
        return Constant(target, evaluate_after=solver.pace.evaluate_after)
    if not solver.about.solves_entropic:
        return Refinement(inner, goal, solver.pace)
    return Continuation(inner, goal, solver.pace, is_warm)


# -- the answer ------------------------------------------------------------------------------


def _result(run: Run, driver: Driver, name: str, choice: Choice | None, seed: int) -> Result:
    """Prove the bracket once more, from the very plan and potentials that are returned."""
    objective, goal, solver = driver.objective, driver.goal, driver.solver
    problem, unit = objective.problem, objective.problem.unit
    assert run.plan is not None
    assert run.potentials is not None
    upper, lower, cost = objective.prove(run.plan, run.potentials)
    value, lower_bound = objective.to_user(upper), objective.to_user(lower)
    target = problem.mass * unit * goal.allowed(lower)
    converged = value - lower_bound <= target
    status = run.status
    if status is Status.CERTIFIED and not converged:
        status = Status.FINISHED
    return Result(
        plan_operator=run.plan.detached().scaled(problem.mass),
        potentials=objective.to_user_potentials(run.potentials),
        value=value,
        value_linear=Transport(problem).to_user(cost),
        lower_bound=lower_bound,
        marginal_error=problem.mass * run.marginal_error,
        converged=converged,
        status=status,
        method=name,
        reg=unit * (run.eta if goal.reg is None else goal.reg),
        seed=seed,
        options=options_of(solver),
        version=__version__,
        n_iter=run.n_iter,
        work=run.work,
        seconds=run.seconds,
        history=list(run.history),
        target=target,
        is_entropic=goal.reg is not None,
        problem=problem,
        choice=None if choice is None else str(choice),
    )


def _report_limit(result: Result, on_limit: str) -> None:
    if result.converged or on_limit == "ignore" or result.status is Status.CALLBACK:
        return
    message = (
        f"{result.method}: {result.status}. The plan is feasible and its gap is "
        f"{result.gap:.3g}, above the target {result.target:.3g}."
    )
    if on_limit == "raise":
        raise NotConverged(message, result)
    warnings.warn(message, ConvergenceWarning, stacklevel=3)


def exact(
    M: ArrayLike | Geometry, a: ArrayLike | None = None, b: ArrayLike | None = None
) -> Result:
    """Solve exactly by network simplex; the same as ``solve(..., method="exact")``.

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> epsilot.exact(np.array([[0.0, 1.0], [1.0, 0.0]])).value
    0.0
    """
    return solve(M, a, b, method="exact", rtol=1e-9, on_limit="ignore")
