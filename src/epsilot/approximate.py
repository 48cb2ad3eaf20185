"""From a wish (ε, a relative tolerance, or η) to a certified result."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._types import Potentials
from .arguments import check_positive, shown
from .auto import Choice, choose
from .checkpoint import Checkpoint
from .checks import (
    SMALLEST_EPS,
    check_arguments,
    check_fit,
    check_reachable,
    internal_potentials,
    largest_start,
    make_limits,
)
from .driver import Driver, Goal, Run, warm_up
from .errors import ConvergenceWarning, InvalidProblem, NotConverged
from .geometry import Geometry
from .kernels import threads
from .plan import detached
from .problem import Additive, Entropic, Problem, make_problem
from .result import Record, Result, Status
from .schedules import Constant, Continuation, Refinement
from .solvers import make_solver, options_of
from .solvers.base import Solver
from .version import __version__


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
        the gap ``tol``.
    tol : float, optional
        With ``reg``: the certified entropic gap, by default 1e-6 max|M|.
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
        Seed of the generator; it fixes the whole trace.
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
    goal = make_goal(problem, eps=eps, rtol=rtol, reg=reg, tol=tol)
    choice = choose(problem, goal.reg) if method == "auto" else None
    name = method if choice is None else choice.method
    solver = make_solver(name, options, _keywords()).resolved(stop, problem)
    check_fit(name, solver, problem, goal, stop)
    limits = make_limits(solver.patience if max_iter is None else max_iter, max_seconds, callback)
    inner, rows, cols = (
        (problem, slice(None), slice(None)) if stop == "paper" else problem.support()
    )
    schedule = _schedule(solver, inner, goal, stop, potentials_init is not None)
    with threads.limit(n_threads):
        warm_up(solver, schedule.first())
        driver = Driver(
            problem, inner, rows, cols, solver, schedule, goal, limits, np.random.default_rng(seed)
        )
        saved = Checkpoint(problem, name, solver, seed)
        if checkpoint is not None:
            driver.save = saved.writer(checkpoint)
        resumed = saved.restore(resume, driver) if resume is not None else None
        largest = largest_start(problem, goal.reg)
        start = internal_potentials(potentials_init, problem, rows, cols, largest)
        run = _drive(driver, start, resumed, name, problem, goal, progress)
    result = _result(run, problem, goal, name, solver, seed, choice)
    _report_limit(result, on_limit)
    return result


@cache
def _keywords() -> tuple[str, ...]:
    """Return the names of the arguments of ``solve``, which a misspelt option may mean."""
    return tuple(inspect.signature(solve).parameters)


def _drive(
    driver: Driver, start: Potentials | None, resumed: Any, name: str, problem: Problem, goal: Goal,
    progress: bool,
) -> Run:  # fmt: skip
    if not progress:
        return driver.drive(start, resumed)
    from .progress import Progress

    eps = None if goal.eps is None else goal.eps * problem.mass
    with Progress(name, eps, goal.rtol) as line:
        driver.observers, driver.beat = [line], line.beat
        return driver.drive(start, resumed)


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
    unit = problem.scale / problem.mass
    if reg is not None:
        tolerance = 1e-6 * (unit or 1.0) if tol is None else tol / problem.mass
        check_reachable("tol", tolerance, max(unit, reg))
        return Goal(eps=float(tolerance), reg=float(reg))
    if eps is not None:
        check_reachable("eps", eps / problem.mass, unit)
        return Goal(eps=float(eps) / problem.mass)
    rtol = 0.01 if rtol is None else float(rtol)
    if rtol < 1e-12:
        raise InvalidProblem(
            f"rtol is {rtol:g}; float64 arithmetic can certify about 1e-12 (ask for rtol >= 1e-12)."
        )
    tiny = max(1e-9, SMALLEST_EPS / rtol) * unit  # an optimum of 0 is certified to round-off
    return Goal(rtol=rtol, offset=problem.offset, tiny=tiny)


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


def _result(
    run: Run,
    problem: Problem,
    goal: Goal,
    name: str,
    solver: Solver,
    seed: int,
    choice: Choice | None,
) -> Result:
    assert run.plan is not None
    assert run.potentials is not None
    f, g = run.potentials
    value = problem.to_user(run.upper)
    linear = value if goal.reg is None else problem.to_user(run.plan.cost(problem.geometry))
    allowed = goal.allowed(run.lower)
    return Result(
        plan_operator=detached(run.plan).scaled(problem.mass),
        potentials=(f + problem.offset, g),
        value=value,
        value_linear=linear,
        lower_bound=problem.to_user(run.lower),
        marginal_error=problem.mass * run.marginal_error,
        converged=bool(run.gap <= allowed),
        status=run.status,
        method=name,
        reg=goal.reg if goal.reg is not None else run.eta,
        seed=seed,
        options=options_of(solver),
        version=__version__,
        n_iter=run.n_iter,
        work=run.work,
        seconds=run.seconds,
        history=list(run.history),
        target=problem.mass * allowed,
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
