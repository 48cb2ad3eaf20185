"""Solve one problem with a stored or a structured cost."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from numpy.typing import ArrayLike

from ..arguments import check_flag
from ..deadline import OutOfTime
from ..engine.clock import Phase, started
from ..engine.execute import execute
from ..engine.goal import EXACT_RTOL
from ..engine.request import Request
from ..engine.result import Result
from ..geometry import Geometry, as_geometry
from ..labels import weights_like
from ..problems import kinds
from ..problems.work import Record


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
    callback: Callable[[Record], object] | None = None,
    progress: bool = False,
    on_limit: str = "warn",
    on_interrupt: str = "return",
    normalize: bool = False,
    checkpoint: str | None = None,
    resume: str | None = None,
    multiscale: bool | None = None,
    **options: object,
) -> Result:
    r"""Solve a discrete optimal transport problem to a certified accuracy.

    .. math:: \min_X \langle M, X\rangle \ \text{ with } \ X 1 = a,\; X^\top 1 = b,\; X \ge 0

    The result holds a feasible plan and a lower bound with ``value - lower_bound <= eps``,
    both recomputed in float64 from the result itself.

    Parameters
    ----------
    M : (n, m) array-like or Geometry
        Finite costs of any sign and scale.
    a, b : (n,), (m,) array-like, optional
        Nonnegative weights of equal total; uniform if None.
    eps, rtol, reg : float, optional
        The target, at most one of three. ``eps``: an absolute gap, in units of M times the mass.
        ``rtol``: a gap relative to the lower bound (default 0.01), or within round-off of the
        costs if the bound is about zero. ``reg``: solve the *entropic* problem
        min <M, X> - reg H(X) to the gap ``tol``, where H(X) = -Σ X log X of the plan in the user's
        units, for any mass.
    tol : float, optional
        With ``reg``: the certified entropic gap, by default 1e-6 max|M| times the mass.
    method : str
        A name from :func:`methods`, or "auto".
    stop : {"certificate", "paper"}
        "certificate" stops at the certified gap. "paper" follows the method's published procedure:
        the plan that met its stopping rule is rounded and returned with the certificate of that
        plan, and better bounds found earlier are in the history. If a limit ends the run first,
        the best certified plan so far is returned.
    max_iter, max_seconds : optional
        Limits in epochs and in seconds of wall time. A result that they end early is feasible
        and carries its true gap.
    potentials_init : (f, g), optional
        Warm start, in units of M.
    seed : int
        Seed of the generator. It fixes every bit of the run, for any number of threads, state of
        the compilation cache and vector instructions of an x86 processor. Runs that the clock
        ends, and other versions of the package, may differ.
    n_threads : int, optional
        Number of threads; one per core by default. Results do not depend on it.
    callback : callable, optional
        Called with a :class:`Record` at each evaluation; it stops the run by returning True.
    progress : bool
        Show a live line with the gap.
    on_limit : {"warn", "raise", "ignore"}
        What to do when a limit ends the run before the target.
    on_interrupt : {"return", "raise"}
        After Ctrl-C, return the best certified result, or raise ``Interrupted``, a
        ``KeyboardInterrupt`` that carries it. A second Ctrl-C within 5 s ends the program.
    normalize : bool
        Rescale both weights to total 1. Otherwise unequal totals raise ``InvalidProblem``.
    checkpoint, resume : path, optional
        Save the run to a file as it goes; continue a saved run to the same result.
    multiscale : bool, optional
        For a point cloud: start from the potentials of a coarser cloud. Default: True for at
        least 5000 points in up to three dimensions.
    mass : float, optional
        Partial transport: the mass to move, at most the smaller total. Totals may differ.
    unbalanced : float or (float or array, float or array), optional
        Unbalanced transport: the marginal penalty λ, or (λ_a, λ_b). Each of the two is a number,
        or an array of one penalty per source, or per target. ``math.inf`` keeps a marginal, or
        the mass of a point, exact.
    unbalanced_type : {"kl", "tv"}
        The divergence that λ multiplies: Kullback-Leibler, or total variation (l1 distance).
    reg_type : {"entropy", "kl"}
        What ``reg`` weighs: -H(X), or the divergence KL(X | a bᵀ).
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
    >>> round(result.value, 6), round(result.lower_bound, 6)
    (0.5, 0.5)
    >>> result.plan.round(3)
    array([[0.25 , 0.   , 0.   ],
           [0.083, 0.167, 0.   ],
           [0.   , 0.167, 0.083],
           [0.   , 0.   , 0.25 ]])
    """
    return run_request(Request.of_call(locals()), M, a, b, normalize=normalize)


# The signature that help(solve) shows.
solve.__signature__ = kinds.with_keywords(inspect.signature(solve))  # type: ignore[attr-defined]


def run_request(
    request: Request,
    M: ArrayLike | Geometry,
    a: ArrayLike | None = None,
    b: ArrayLike | None = None,
    *,
    normalize: bool = False,
) -> Result:
    """Solve a problem as ``solve`` does, with keywords that are checked already."""
    check_flag("normalize", normalize)
    if hasattr(M, "columns"):
        a, b = weights_like(M, a, b)
    with started(request.max_seconds) as clock:
        try:
            problem = request.problem(M, a, b, normalize=normalize)
        except OutOfTime:  # while the range of the costs was computed
            clock.phase = Phase.RETURN
            rough = M.roughly if isinstance(M, Geometry) else M
            problem = request.problem(rough, a, b, normalize=normalize)
            clock.phase = Phase.STEPS
        result = execute(problem, request, clock)
    return result


def exact(
    M: ArrayLike | Geometry, a: ArrayLike | None = None, b: ArrayLike | None = None
) -> Result:
    """Solve exactly by network simplex, as ``solve(..., method="exact")``.

    Sparse costs, and costs with forbidden pairs, are solved by ``method="network_simplex"``.

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> epsilot.exact(np.array([[0.0, 1.0], [1.0, 0.0]])).value
    0.0
    """
    if hasattr(M, "columns"):
        a, b = weights_like(M, a, b)
    geometry = as_geometry(M)
    method = "exact" if geometry.allowed is None else "network_simplex"
    return solve(geometry, a, b, method=method, rtol=EXACT_RTOL, on_limit="ignore")
