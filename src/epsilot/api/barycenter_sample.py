"""Barycentres of point clouds whose own points are free."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from .._types import Matrix, Vector
from ..arguments import check_count, check_least, check_positive, entries, numeric
from ..barycenters.family import shares
from ..barycenters.free_support import Clouds, SampleBarycenterResult, find_points
from ..engine.request import Request
from ..engine.seeds import generator
from ..errors import InvalidProblem
from ..geometry.coordinates import as_points
from ..problems.problem import describe_bad_weights
from ..problems.work import Record


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
    checkpoint: str | None = None,
    resume: str | None = None,
) -> SampleBarycenterResult:
    r"""Find points that are a barycentre of clouds, for squared Euclidean distances.

    .. math:: \min_{Y} \sum_k w_k \mathrm{OT}(a_k, b; |z_{ki} - y_j|^2)

    Certified solves and moves of the points alternate. The bracket of the result is that of the
    cost of the points that are returned; the points are a local optimum only.

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
    method, seed, n_threads, callback, checkpoint, resume
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
        checkpoint=checkpoint,
        resume=resume,
    )
    found = _clouds(clouds, masses, weights)
    end = np.full(n_points, 1.0 / n_points) if b is None else _masses(b, "b", n_points)
    if end.min() <= 0:
        raise InvalidProblem(
            f"b[{int(end.argmin())}] is 0; every point of the barycentre needs a positive mass "
            "(leave that point out)."
        )
    points = _first(found, n_points, init, request.seed)
    return find_points(found, points, end, request=request, decrease=share)


def _clouds(
    clouds: Sequence[ArrayLike],
    masses: Sequence[ArrayLike | None] | None,
    weights: ArrayLike | None,
) -> Clouds:
    """Return checked clouds of one dimension, with masses."""
    points = [as_points(X, f"clouds[{k}]") for k, X in enumerate(entries(clouds, "clouds"))]
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
        np.full(len(X), 1.0 / len(X)) if a is None else _masses(a, f"masses[{k}]", len(X))
        for k, (X, a) in enumerate(zip(points, given, strict=True))
    )
    return Clouds(tuple(points), weighted, shares(weights, len(points)))


def _masses(a: ArrayLike, name: str, size: int) -> Vector:
    """Return masses of total 1."""
    x = numeric(a, name)
    if x.shape != (size,):
        raise InvalidProblem(f"{name} has shape {x.shape}; it must have shape ({size},).")
    total = float(x.sum())
    if not (x.min() >= 0 and 0 < total < math.inf):
        raise InvalidProblem(describe_bad_weights(x, name))
    return np.asarray(x / total)


def _first(clouds: Clouds, n_points: int, init: ArrayLike | None, seed: int) -> Matrix:
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
