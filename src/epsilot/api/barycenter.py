"""Barycentres of histograms, certified."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._types import Array
from ..arguments import check_flag, entries, numeric
from ..barycenters.execute import execute
from ..barycenters.family import Costs, make_family
from ..barycenters.result import BarycenterResult
from ..engine.request import Request
from ..errors import InvalidProblem
from ..geometry import Grid
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
        w, rescaled to total 1; equal by default. A histogram of weight 0 gets its plan and does not
        matter.
    eps, rtol, reg, tol : float, optional
        What to reach, as in :func:`solve`; by default 1 % of the lower bound. With ``reg`` every
        plan's entropy counts: min Σ w_k (<M_k, X_k> - reg H(X_k)).
    method : {"auto", "anderson", "ibp", "lbfgs", "pdasmd", "exact"}
        Iterative Bregman projections with a falling η, accelerated or overrelaxed; quasi-Newton or
        stochastic steps on the semi-dual, with a falling η as well; or linear programs on few arcs.
    max_iter, max_seconds : optional
        Limits in steps and in seconds; the result is then still feasible and carries its true gap.
    seed, n_threads, callback, progress, on_limit, checkpoint, resume
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

    Costs are never stored: every pass goes along the axes, and coarser grids begin. The barycentre
    has the shape of the images.

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
    >>> np.unravel_index(result.barycenter.argmax(), (9, 9)) == (3, 4)
    True
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
