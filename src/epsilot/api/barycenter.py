"""Certified barycentres of histograms, of images, and of point clouds with free points."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._types import Array, Matrix, Vector
from ..arguments import check_count, check_flag, check_least, check_positive, entries, numeric
from ..barycenters.execute import execute
from ..barycenters.family import Costs, make_family, shares
from ..barycenters.free_support import Clouds, Ending, SampleBarycenterResult, find_points
from ..barycenters.result import BarycenterResult
from ..engine.request import Request
from ..engine.seeds import generator
from ..errors import Interrupted, InvalidProblem
from ..geometry import Grid
from ..geometry.coordinates import as_points
from ..labels import columns_as, columns_like, labels_of
from ..problems.problem import describe_bad_weights
from ..problems.work import Record


def barycenter(
    A: ArrayLike | Sequence[ArrayLike],
    M: Costs,
    weights: ArrayLike | None = None,
    *,
    eps: float | None = None,
    rtol: float | None = None,
    reg: float | None = None,
    tol: float | None = None,
    method: str = "auto",
    max_iter: int | None = None,
    max_seconds: float | None = None,
    seed: int = 0,
    n_threads: int | None = None,
    callback: Callable[[Record], object] | None = None,
    progress: bool = False,
    on_limit: str = "warn",
    on_interrupt: str = "return",
    normalize: bool = False,
    checkpoint: str | None = None,
    resume: str | None = None,
    **options: object,
) -> BarycenterResult:
    r"""Find the barycentre of histograms to a certified accuracy.

    .. math:: \min_{b,\, X_k \ge 0} \sum_k w_k \langle M_k, X_k\rangle
        \quad X_k 1 = a_k,\; X_k^\top 1 = b

    The result holds b, plans to it from every histogram, and potentials with Σ w_k g_k = 0 that
    prove ``value - lower_bound <= eps``, all recomputed in float64 from the result itself.

    Parameters
    ----------
    A : (k, n) array-like, or a sequence of k vectors
        Histograms of equal total. Ragged ones need a cost each.
    M : (n, m) array-like or Geometry, or a sequence of k of them
        Costs from the places of the histograms to the m places of the barycentre.
    weights : (k,) array-like, optional
        w, rescaled to total 1; equal by default. A histogram of weight 0 gets a plan, but does not
        change the barycentre.
    eps, rtol, reg, tol : float, optional
        Accuracy, as in :func:`solve`; by default 1 % of the lower bound. With ``reg`` every
        plan's entropy counts: min Σ w_k (<M_k, X_k> - reg H(X_k)).
    method : {"auto", "anderson", "ibp", "lbfgs", "pdasmd", "exact"}
        Iterative Bregman projections with a falling η, accelerated or overrelaxed; quasi-Newton or
        stochastic steps on the semi-dual, with a falling η as well; or linear programs on few arcs.
    max_iter, max_seconds : optional
        Limits in steps and in seconds; the result is then still feasible and carries its true gap.
    seed, n_threads, callback, progress, on_limit, on_interrupt, checkpoint, resume
        As in :func:`solve`; only ``pdasmd`` draws random numbers.
    normalize : bool
        Rescale every histogram to total 1 instead of refusing unequal totals.
    **options
        Options of the method.

    Returns
    -------
    BarycenterResult

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> M = np.subtract.outer(np.arange(5.0), np.arange(5.0)) ** 2
    >>> result = epsilot.barycenter([[1, 0, 0, 0, 0], [0, 0, 0, 0, 1]], M)
    >>> result.barycenter
    array([0., 0., 1., 0., 0.])
    >>> round(result.value, 6)
    4.0
    """
    request = Request.of_call(locals())
    check_flag("normalize", normalize)
    for name in request.kind.keywords:
        raise InvalidProblem(
            f"{name} was given; a barycentre moves all mass of every histogram (leave {name} out, "
            "and rescale histograms with normalize=True)."
        )
    A = columns_as(A, labels_of(getattr(M, "index", None)), "A", "the rows of M have")
    return execute(make_family(A, M, weights, normalize=normalize, reg=request.reg), request)


def barycenter_grid(
    images: Sequence[ArrayLike] | Array,
    weights: ArrayLike | None = None,
    *,
    metric: str = "cityblock",
    spacing: float | Sequence[float] = 1.0,
    **keywords: Any,
) -> BarycenterResult:
    """Find the barycentre of masses on a grid, in O(k cells) memory.

    Costs are never stored: every pass goes along the axes. The run starts on coarser grids. The
    barycentre has the shape of the images.

    Parameters
    ----------
    images : array-like of k images, or a sequence of them
        Masses of equal total on d = 1, 2 or 3 axes, all of one shape.
    weights : (k,) array-like, optional
        As in :func:`barycenter`.
    metric : {"cityblock", "sqeuclidean"}
        Cost between cell centres.
    spacing : float or sequence of float
        Distance of neighbouring centres along each axis.
    **keywords
        As in :func:`barycenter`.

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> images = np.zeros((2, 9, 9))
    >>> images[0, 1, 1] = images[1, 5, 7] = 1.0
    >>> result = epsilot.barycenter_grid(images, metric="sqeuclidean")
    >>> np.argwhere(result.barycenter > 0.5)
    array([[3, 4]])
    """
    fields = [numeric(image, f"images[{k}]") for k, image in enumerate(entries(images, "images"))]
    if not fields:
        raise InvalidProblem("images is empty; a barycentre needs at least one image.")
    shape = fields[0].shape
    for k, field in enumerate(fields):
        if not 1 <= field.ndim <= 3 or field.size == 0:
            raise InvalidProblem(
                f"images[{k}] has shape {field.shape}; masses on a grid have one to three axes."
            )
        if field.shape != shape:
            raise InvalidProblem(
                f"images[0] has shape {shape} and images[{k}] {field.shape}; all images must have "
                "the same shape (pad or resize them)."
            )
    grid = Grid(shape, shape, metric, spacing)
    result = barycenter([np.ravel(field) for field in fields], grid, weights, **keywords)
    return replace(result, barycenter=result.barycenter.reshape(shape))


def barycenter_sample(
    clouds: Sequence[ArrayLike],
    n_points: int,
    *,
    masses: Sequence[ArrayLike | None] | None = None,
    weights: ArrayLike | None = None,
    b: ArrayLike | None = None,
    init: ArrayLike | None = None,
    rtol: float = 1e-3,
    decrease: float = 1e-4,
    max_iter: int = 100,
    max_seconds: float | None = None,
    method: str = "auto",
    seed: int = 0,
    n_threads: int | None = None,
    callback: Callable[[Record], object] | None = None,
    on_interrupt: str = "return",
    checkpoint: str | None = None,
    resume: str | None = None,
) -> SampleBarycenterResult:
    r"""Find points that are a barycentre of clouds, for squared Euclidean distances.

    .. math:: \min_{Y} \sum_k w_k \mathrm{OT}(a_k, b; |z_{ki} - y_j|^2)

    Certified solves and moves of the points alternate. The bounds of the result are those of the
    cost of the returned points. The points are a local optimum only.

    Parameters
    ----------
    clouds : sequence of (n_k, d) array-likes
        Points.
    n_points : int
        Points of the barycentre.
    masses : sequence of (n_k,) array-likes, optional
        Masses of the points of every cloud, each rescaled to total 1; uniform where None.
    weights : (k,) array-like, optional
        w, rescaled to total 1; equal by default.
    b : (n_points,) array-like, optional
        Positive masses of the barycentre's points, rescaled to total 1; uniform by default.
    init : (n_points, d) array-like, optional
        Where its points begin; by default at points drawn from the clouds.
    rtol : float
        Certified relative gap of every solve.
    decrease : float
        The points have settled when a round lowers the value by at most this share.
    max_iter, max_seconds : optional
        Limits, in rounds and in seconds.
    method, seed, n_threads, callback, on_interrupt, checkpoint, resume
        As in :func:`solve`; the seed also draws the first points, and a round is one evaluation.

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> square = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    >>> result = epsilot.barycenter_sample([square, square + 4], 4, init=square + 1)
    >>> result.points.mean(axis=0)
    array([2.5, 2.5])
    """
    n_points = check_count("n_points", n_points, 1)
    rounds = check_count("max_iter", max_iter, 0)
    share = check_least("decrease", decrease, 0.0)
    rtol = check_positive("rtol", rtol)
    request = Request(
        rtol=rtol,
        method=method,
        max_iter=rounds + 1,  # a round solves, then moves; the last one only solves
        max_seconds=max_seconds,
        seed=seed,
        n_threads=n_threads,
        callback=callback,
        on_limit="ignore",
        on_interrupt=on_interrupt,
        checkpoint=checkpoint,
        resume=resume,
    )
    found = _clouds(clouds, masses, weights)
    end = np.full(n_points, 1.0 / n_points) if b is None else _normalized_masses(b, "b", n_points)
    if end.min() <= 0:
        raise InvalidProblem(
            f"b[{int(end.argmin())}] is 0; every point of the barycentre needs a positive mass "
            "(leave that point out)."
        )
    points = _first_points(found, n_points, init, request.seed)
    result = find_points(found, points, end, request=request, decrease=share)
    if result.status is Ending.INTERRUPTED and on_interrupt == "raise":
        raise Interrupted(str(result.status), result)
    return result


def _clouds(
    clouds: Sequence[ArrayLike],
    masses: Sequence[ArrayLike | None] | None,
    weights: ArrayLike | None,
) -> Clouds:
    """Return checked clouds of one dimension, with masses."""
    tables = entries(clouds, "clouds")
    points = [
        as_points(columns_like(X, tables[0], f"clouds[{k}]", "clouds[0]"), f"clouds[{k}]")
        for k, X in enumerate(tables)
    ]
    if not points:
        raise InvalidProblem("clouds is empty; a barycentre needs at least one cloud.")
    for k, X in enumerate(points):
        if X.shape[1] != points[0].shape[1]:
            raise InvalidProblem(
                f"clouds[0] has {points[0].shape[1]} coordinates and clouds[{k}] {X.shape[1]}; all "
                "clouds must have the same number."
            )
    given = [None] * len(points) if masses is None else entries(masses, "masses")
    if len(given) != len(points):
        raise InvalidProblem(
            f"masses has {len(given)} entries for {len(points)} clouds; it must have one for each, "
            "or None."
        )
    weighted = tuple(
        np.full(len(X), 1.0 / len(X))
        if a is None
        else _normalized_masses(a, f"masses[{k}]", len(X))
        for k, (X, a) in enumerate(zip(points, given, strict=True))
    )
    return Clouds(tuple(points), weighted, shares(weights, len(points)))


def _normalized_masses(a: ArrayLike, name: str, size: int) -> Vector:
    """Return masses of total 1."""
    x = numeric(a, name)
    if x.shape != (size,):
        raise InvalidProblem(f"{name} has shape {x.shape}; it must have shape ({size},).")
    total = float(x.sum())
    if not (x.min() >= 0 and 0 < total < math.inf):
        raise InvalidProblem(describe_bad_weights(x, name))
    return np.asarray(x / total)


def _first_points(clouds: Clouds, n_points: int, init: ArrayLike | None, seed: int) -> Matrix:
    """Return the points to begin with."""
    everything = np.concatenate(clouds.points)
    if init is None:
        rng = generator(seed)
        again = n_points > len(everything)
        return np.asarray(everything[rng.choice(len(everything), n_points, replace=again)])
    Y = as_points(init, "init")
    if Y.shape != (n_points, everything.shape[1]):
        raise InvalidProblem(
            f"init has shape {Y.shape}; it must have shape ({n_points}, {everything.shape[1]})."
        )
    return Y
