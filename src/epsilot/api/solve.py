"""From a wish (ε, a relative tolerance, or η) to a certified result."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from numpy.typing import ArrayLike

from ..arguments import check_flag
from ..deadline import OutOfTime
from ..engine import kinds
from ..engine.clock import Phase, started
from ..engine.execute import execute
from ..engine.request import Request
from ..engine.result import Result
from ..geometry import Geometry
from ..problems.record import Record


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
    normalize: bool = False,
    checkpoint: str | None = None,
    resume: str | None = None,
    multiscale: bool | None = None,
    **options: object,
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
        Stop at the certified gap, or follow the method's published procedure to the letter: the
        plan that met its paper's rule is rounded and returned, with the certificate of that very
        plan (better bounds seen on the way are in the history). A limit that comes first leaves
        the best certified answer so far, as always: the procedure has none yet.
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
    mass : float, optional
        Partial transport: move this much, and no more than either side has; totals may differ.
    unbalanced : float or (float, float), optional
        Marginals may be missed, at this price for sources and targets; ``math.inf`` keeps a side.
    unbalanced_type : {"kl", "tv"}
        How that is charged: by Kullback-Leibler divergences, or by l1 distances.
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
    kind, own = kinds.kind_from_keywords(options)
    request = Request(
        eps=eps,
        rtol=rtol,
        reg=reg,
        tol=tol,
        method=method,
        stop=stop,
        max_iter=max_iter,
        max_seconds=max_seconds,
        potentials_init=potentials_init,
        seed=seed,
        n_threads=n_threads,
        callback=callback,
        progress=progress,
        on_limit=on_limit,
        checkpoint=checkpoint,
        resume=resume,
        multiscale=multiscale,
        kind=kind,
        options=own,
    )
    return run_request(request, M, a, b, normalize=normalize)


# What help(solve) shows: the keywords above, and those of the kinds of problem.
solve.__signature__ = kinds.with_keywords(inspect.signature(solve))  # type: ignore[attr-defined]


def run_request(
    request: Request,
    M: ArrayLike | Geometry,
    a: ArrayLike | None = None,
    b: ArrayLike | None = None,
    *,
    normalize: bool = False,
) -> Result:
    """Return what ``solve`` does, of a request that is made already."""
    check_flag("normalize", normalize)
    with started(request.max_seconds) as clock:
        try:
            problem = request.kind.problem(M, a, b, normalize=normalize)
        except OutOfTime:  # while the range of the costs was looked for
            clock.phase = Phase.RETURN
            rough = M.roughly if isinstance(M, Geometry) else M
            problem = request.kind.problem(rough, a, b, normalize=normalize)
            clock.phase = Phase.STEPS
        result = execute(problem, request, clock)
    return result


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
