"""Colour transfer: a picture in the colours of another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from .. import parallel
from .._types import Array, Matrix
from ..api.solve import run_request
from ..arguments import check_choice, check_count, check_least, check_options
from ..engine.result import Result
from ..errors import InvalidProblem
from ..geometry.clouds import cloud_geometry
from . import lattice as kernels
from .extras import MissingExtra
from .maps import barycentric, interpolate
from .palette import Palette, clustered, sampled
from .pixels import Pixels
from .requests import request_of
from .smoothing import local_affine, reduced

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:
    raise MissingExtra("ColorTransfer", "scikit-learn", "sklearn") from error

#: Nodes along each side of the lattice on which a colour map is tabulated.
SIDE = 33
_MAKERS = {"cluster": clustered, "sample": sampled}


class ColorTransfer(BaseEstimator):  # type: ignore[misc]
    r"""Give a picture the colours of another by transport between their palettes.

    Both pictures are reduced to palettes, colours with the share of the picture each has; a
    certified plan between the palettes sends each colour of the source to the mean of its
    destinations; pixels between palette colours move as their nearest palette colours do,
    with weights that change without jumps.

    Parameters
    ----------
    n_colors : int
        Colours in each palette, at most.
    palette : {"cluster", "sample"}
        Means of clusters with the clusters' shares, or pixels drawn at random.
    method, eps, rtol, reg, tol, max_iter, max_seconds, seed, progress, on_limit
        As in :func:`epsilot.solve`; colours lie in the unit cube and the cost is the squared
        distance, so that ``eps=1e-3`` is a root mean square error of 0.03 in colour.
    n_neighbors : int
        Palette colours that decide how a colour between them moves.
    smoothing : float
        Radius, as a fraction of the picture's diagonal, within which the change of colour is
        smoothed along the picture's own edges, so that noise and compression do not show; 0 for
        none, when equal colours stay equal.
    options : dict, optional
        Options of the method.

    Attributes
    ----------
    source_palette_, reference_palette_ : Palette
        Colours and weights.
    result_ : Result
        The certified plan between them.
    cost_, gap_ : float
        Its transport cost, and how far at most it is from the least.

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> rng = np.random.default_rng(0)
    >>> dark, light = rng.uniform(0, 0.5, (20, 20, 3)), rng.uniform(0.5, 1, (30, 20, 3))
    >>> result = epsilot.ColorTransfer(n_colors=50).fit(dark, light).transform(dark)
    >>> bool(result.mean() > 0.7)
    True

    References
    ----------
    Luo, Xie and Huo (2023), Appendix H. Ferradans, Papadakis, Peyré and Aujol (2014),
    "Regularized discrete optimal transport". Rabin, Ferradans and Papadakis (2014), "Adaptive
    color transfer with relaxed optimal transport".
    """

    def __init__(
        self,
        n_colors: int = 1000,
        *,
        palette: str = "cluster",
        method: str = "auto",
        eps: float | None = None,
        rtol: float | None = None,
        reg: float | None = None,
        tol: float | None = None,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        n_neighbors: int = 8,
        smoothing: float = 0.01,
        seed: int = 0,
        options: dict[str, object] | None = None,
        progress: bool = False,
        on_limit: str = "warn",
    ) -> None:
        self.n_colors = n_colors
        self.palette = palette
        self.method = method
        self.eps = eps
        self.rtol = rtol
        self.reg = reg
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.n_neighbors = n_neighbors
        self.smoothing = smoothing
        self.seed = seed
        self.options = options
        self.progress = progress
        self.on_limit = on_limit

    def fit(self, source_image: ArrayLike, reference_image: ArrayLike) -> ColorTransfer:
        """Find the plan between the palettes of two pictures.

        Parameters
        ----------
        source_image, reference_image : (height, width[, channels]) arrays
            uint8, uint16, or floats in [0, 1]; grey or RGB, with opacity or without. Pixels
            count in the palette as much as they are opaque.
        """
        check_choice("palette", self.palette, tuple(_MAKERS))
        n_colors, seed = (
            check_count("n_colors", self.n_colors, 1),
            check_count("seed", self.seed, 0),
        )
        check_count("n_neighbors", self.n_neighbors, 1)
        if (smoothing := check_least("smoothing", self.smoothing, 0)) > 1:
            raise InvalidProblem(
                f"smoothing is {smoothing:g}; it is a share of the picture's diagonal, between 0 "
                "and 1."
            )
        check_options(self.options)
        source = Pixels.of(source_image, "the source picture")
        reference = Pixels.of(reference_image, "the reference picture")
        rng = np.random.default_rng(seed)
        make = _MAKERS[self.palette]
        self.source_palette_: Palette = make(source, n_colors, rng)
        self.reference_palette_: Palette = make(reference, n_colors, rng)
        self.is_grey_ = source.is_grey and reference.is_grey
        here, there = self.source_palette_, self.reference_palette_
        cost = cloud_geometry(here.colors, there.colors)
        self.result_: Result = run_request(request_of(self), cost, here.weights, there.weights)
        self.cost_, self.gap_ = self.result_.value, self.result_.gap
        self._lattices: dict[str, Matrix] = {}
        return self

    def transform(self, image: ArrayLike) -> Array:
        """Return a picture with the colours of the source in those of the reference.

        The result has the size, depth and opacity of the picture given. It is grey when both
        fitted pictures were, and has three channels of colour otherwise.
        """
        return self._recolored(image, "forth")

    def inverse_transform(self, image: ArrayLike) -> Array:
        """Return a picture with the colours of the reference in those of the source."""
        return self._recolored(image, "back")

    def __sklearn_is_fitted__(self) -> bool:
        """Tell whether there is a plan."""
        return hasattr(self, "result_")

    def _recolored(self, image: ArrayLike, direction: str) -> Array:
        check_is_fitted(self)
        pixels = Pixels.of(image, "the picture")
        out = pixels.blank(self.is_grey_ and pixels.is_grey)
        if (smoothing := check_least("smoothing", self.smoothing, 0)) > 0:
            colors, mass = reduced(pixels)
            moved = self._moved(colors.reshape(-1, 3).astype(np.float32), direction)
            shift = moved.reshape(colors.shape) - colors
            maps = local_affine(colors, shift, mass, smoothing * float(np.hypot(*mass.shape)))
            for where, part, _ in pixels.chunks():
                place = (*pixels.shape[:2], where.start)
                out.put(where, _applied(kernels.affine, part, maps, *place))
        else:
            for where, part, _ in pixels.chunks():
                out.put(where, self._moved(part, direction))
        return out.image

    def _moved(self, colors: Matrix, direction: str) -> Matrix:
        """Return where the map between the palettes sends colours."""
        if direction not in self._lattices:
            self._lattices[direction] = self._tabulated(direction)
        return _applied(kernels.trilinear, colors, self._lattices[direction])

    def _tabulated(self, direction: str) -> Matrix:
        """Return the colour map at the nodes of the lattice."""
        from scipy.spatial import cKDTree

        plan = self.result_.plan_operator
        here, there = self.source_palette_.colors, self.reference_palette_.colors
        if direction == "forth":
            images = barycentric(plan, there)
        else:
            here, images = there, barycentric(plan.T, here)
        step = np.linspace(0.0, 1.0, SIDE)
        nodes = np.stack(np.meshgrid(step, step, step, indexing="ij"), axis=-1).reshape(-1, 3)
        k = min(check_count("n_neighbors", self.n_neighbors, 1) + 1, len(here))
        distance, index = cKDTree(here).query(nodes, k=[*range(1, k + 1)], workers=-1)
        moved = nodes + interpolate(distance, index, images - here)
        return np.ascontiguousarray(moved.reshape(SIDE, SIDE, SIDE, 3), dtype=np.float32)


def _applied(kernel: Callable[..., None], colors: Matrix, table: Matrix, *place: int) -> Matrix:
    """Call a kernel on colours, shared among threads."""
    out = np.empty_like(colors)
    parallel.share(kernel, len(colors), 8 * colors.size, table, colors, *place, out)
    return out
