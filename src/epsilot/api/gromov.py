"""Gromov-Wasserstein between point clouds, with bounds on the global optimum."""

from __future__ import annotations

from collections.abc import Callable

from numpy.typing import ArrayLike

from ..engine.request import Request
from ..errors import InvalidProblem
from ..gromov.execute import execute
from ..gromov.matrix_bounds import GromovBounds, bound_matrices, make_matrix_pair
from ..gromov.problem import make_gromov_problem
from ..gromov.result import GromovResult
from ..problems.work import Record
from ..wording import shown


def solve_gromov(
    X: ArrayLike,
    Y: ArrayLike,
    a: ArrayLike | None = None,
    b: ArrayLike | None = None,
    *,
    M: ArrayLike | None = None,
    alpha: float | None = None,
    metric: str = "sqeuclidean",
    rtol: float = 0.01,
    atol: float | None = None,
    method: str = "auto",
    max_seconds: float | None = None,
    max_ot: int | None = None,
    starts: int = 4,
    seed: int = 0,
    n_threads: int | None = None,
    progress: bool = False,
    callback: Callable[[Record], object] | None = None,
    checkpoint: str | None = None,
    resume: str | None = None,
    on_limit: str = "warn",
    on_interrupt: str = "return",
) -> GromovResult:
    r"""Couple two clouds by Gromov-Wasserstein, with a bound on the global optimum.

    .. math:: \min_{P} \sum_{ijkl} (|x_i-x_k|^2 - |y_j-y_l|^2)^2 P_{ij} P_{kl}
        + \langle M, P\rangle, \quad P 1 = a,\; P^\top 1 = b,\; P \ge 0

    The inner costs are *squared* Euclidean distances; for plain distances the bound does not hold.
    The result holds a coupling, its value, and a lower bound that holds for all couplings, with
    ``value - lower_bound <= max(rtol * lower_bound, atol)``. Both were checked by independent code.

    Parameters
    ----------
    X : (n, dx) array-like
        Points; a vector means points on a line.
    Y : (m, dy) array-like
        Points of another space, which may have another dimension.
    a, b : (n,), (m,) array-likes, optional
        Masses of equal total; uniform by default.
    M : (n, m) array-like, optional
        Linear cost of the fused problem.
    alpha : float, optional
        With M, minimise (1 - alpha) <M, P> + alpha GW(P), as POT does; by default their sum.
    metric : {"sqeuclidean"}
        Inner cost of both clouds. Others have no such bound (see :func:`gromov_bounds`).
    rtol, atol : float, optional
        Gap to reach, relative to the lower bound or absolute; by default 1 %, or 1e-9 of the size
        of the numbers that cancel in the objective. Copies of a cloud have the optimum 0, where no
        relative gap exists.
    method : {"auto", "triangulation", "boxes"}
        A triangulation of cross moments for dx dy <= 6, else boxes of them.
    max_seconds, max_ot : optional
        Limits in seconds, and in transport problems solved; the bounds hold after any of them.
    starts : int
        Random starts of local descents, besides those that map principal axes to each other.
    seed, n_threads, progress, callback, checkpoint, resume, on_limit, on_interrupt
        As in :func:`solve`. The seed draws the starts.

    Returns
    -------
    GromovResult

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> X = np.random.default_rng(0).normal(size=(40, 2)) * [2, 1]
    >>> turned = X[::-1] @ np.array([[0.6, 0.8], [-0.8, 0.6]]) + 5
    >>> result = epsilot.solve_gromov(X, turned + 0.1 * np.cos(turned))
    >>> print(f"{result.lower_bound:.4f} {result.value:.4f}")
    0.6366 0.6366
    """
    if metric != "sqeuclidean":
        raise InvalidProblem(
            f"metric is {shown(metric)}; the bound holds for 'sqeuclidean' inner costs only (pass "
            "matrices of other distances to gromov_bounds)."
        )
    problem = make_gromov_problem(X, Y, a, b, M, alpha)
    request = Request(
        rtol=rtol,
        method=method,
        max_seconds=max_seconds,
        seed=seed,
        n_threads=n_threads,
        progress=progress,
        callback=callback,
        checkpoint=checkpoint,
        resume=resume,
        on_limit=on_limit,
        on_interrupt=on_interrupt,
    )
    return execute(problem, request, atol=atol, starts=starts, max_ot=max_ot)


def gromov_bounds(
    C1: ArrayLike,
    C2: ArrayLike,
    a: ArrayLike | None = None,
    b: ArrayLike | None = None,
    *,
    M: ArrayLike | None = None,
    starts: int = 4,
    max_seconds: float | None = None,
    seed: int = 0,
    n_threads: int | None = None,
) -> GromovBounds:
    r"""Bound Gromov-Wasserstein between any two matrices, such as distances in graphs.

    .. math:: \min_{P} \sum_{ijkl} (C^1_{ik} - C^2_{jl})^2 P_{ij} P_{kl} + \langle M, P\rangle

    The lower bound is one transport problem between the sorted rows of both matrices (Mémoli's
    third lower bound); it holds for all couplings. The upper bound is the best of several descents.
    Nothing limits the gap: it is a few percent where matrices differ much and most of the value
    where they are alike. For squared distances of points use :func:`solve_gromov`, which closes it.

    Parameters
    ----------
    C1, C2 : (n, n), (m, m) array-likes
        Any finite matrices, also asymmetric ones.
    a, b : (n,), (m,) array-likes, optional
        Masses of equal total, which are divided by it; uniform by default.
    M : (n, m) array-like, optional
        Linear cost of the fused problem.
    starts : int
        Random starts of descents, besides the product coupling and that of the lower bound.
    max_seconds, seed, n_threads
        As in :func:`solve`; the lower bound is always computed.

    Returns
    -------
    GromovBounds

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> line = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
    >>> ring = np.minimum(line, 5 - line)
    >>> bounds = epsilot.gromov_bounds(line, ring)
    >>> round(bounds.lower_bound, 3), round(bounds.value, 3)
    (0.56, 0.88)
    """
    pair = make_matrix_pair(C1, C2, a, b, M)
    return bound_matrices(
        pair, starts=starts, seed=seed, n_threads=n_threads, max_seconds=max_seconds
    )
