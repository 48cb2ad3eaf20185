"""Colour transfer: give a picture the colours of another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from .. import parallel
from .._types import Array, Matrix
from ..api.solve import run_request
from ..arguments import check_choice, check_count, check_least, check_options
from ..engine.maps import barycentric
from ..engine.result import Result
from ..errors import InvalidProblem, MissingExtra
from ..geometry.inputs import cloud_geometry
from . import lattice as kernels
from .estimators import interpolate, request_of
from .pixels import Palette, Pixels, clustered, local_affine, reduced, sampled

try:
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils import Tags
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:
    raise MissingExtra("ColorTransfer", "scikit-learn", "sklearn") from error

#: Nodes per side of the lattice on which a colour map is tabulated.
LATTICE_SIDE = 33
_PALETTES = {"cluster": clustered, "sample": sampled}


class ColorTransfer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Give a picture the colours of another by transport between their palettes.

    Both pictures are reduced to palettes: colours with their shares of the picture. A certified
    plan between the palettes sends each colour of the source to the mean of its destinations. Other
    colours move like their nearest palette colours, with continuous weights.

    Parameters
    ----------
    n_colors : int
        Largest number of colours per palette.
    palette : {"cluster", "sample"}
        Use cluster means with the clusters' shares, or random pixels.
    method, eps, rtol, reg, tol, max_iter, max_seconds, seed, progress, on_limit
        As in :func:`epsilot.solve`. Colours are in the unit cube and the cost is the squared
        distance, so ``eps=1e-3`` is a root mean square error of 0.03 in colour.
    n_neighbors : int
        Number of palette colours that determine how other colours move.
    smoothing : float
        Radius, as a fraction of the picture's diagonal, of an edge-preserving filter that hides
        noise and compression artefacts. With 0 there is no smoothing, and equal colours stay equal.
    options : dict, optional
        Options of the method.

    Attributes
    ----------
    source_palette_, reference_palette_ : Palette
        Colours and weights.
    result_ : Result
        The certified plan between them.
    cost_, gap_ : float
        Transport cost of the plan, and the proven bound on its error.

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> rng = np.random.default_rng(0)
    >>> dark, light = rng.uniform(0, 0.5, (20, 20, 3)), rng.uniform(0.5, 1, (30, 20, 3))
    >>> result = epsilot.ColorTransfer(n_colors=50).fit(dark, light).transform(dark)
    >>> round(float(dark.mean()), 2), round(float(result.mean()), 2)
    (0.26, 0.74)

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
        """Compute the plan between the palettes of two pictures.

        Parameters
        ----------
        source_image, reference_image : (height, width[, channels]) arrays
            uint8, uint16, or floats in [0, 1]; grey or RGB, with or without opacity. Palettes
            weight pixels by their opacity.
        """
        check_choice("palette", self.palette, tuple(_PALETTES))
        n_colors, seed = (
            check_count("n_colors", self.n_colors, 1),
            check_count("seed", self.seed, 0),
        )
        check_count("n_neighbors", self.n_neighbors, 1)
        if (smoothing := check_least("smoothing", self.smoothing, 0)) > 1:
            raise InvalidProblem(
                f"smoothing is {smoothing:g}; it must be between 0 and 1, a fraction of the "
                "picture's diagonal."
            )
        check_options(self.options)
        source = Pixels.of(source_image, "the source picture")
        reference = Pixels.of(reference_image, "the reference picture")
        rng = np.random.default_rng(seed)
        make = _PALETTES[self.palette]
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
        """Map the colours of a picture from the source to the reference.

        The result has the size, depth and opacity of the picture. It is grey if both fitted
        pictures are grey, and has three colour channels otherwise.
        """
        return self._recolored(image, "forth")

    def inverse_transform(self, image: ArrayLike) -> Array:
        """Map the colours of a picture from the reference to the source."""
        return self._recolored(image, "back")

    def __sklearn_tags__(self) -> Tags:
        """Tell that inputs are pictures, and that a reference is needed to fit."""
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        tags.input_tags.positive_only = True
        tags.target_tags.required = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        """Tell whether the plan was computed."""
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
        """Apply the colour map between the palettes."""
        if direction not in self._lattices:
            self._lattices[direction] = self._tabulated(direction)
        return _applied(kernels.trilinear, colors, self._lattices[direction])

    def _tabulated(self, direction: str) -> Matrix:
        """Tabulate the colour map at the nodes of the lattice."""
        from scipy.spatial import cKDTree

        plan = self.result_.plan_operator
        here, there = self.source_palette_.colors, self.reference_palette_.colors
        if direction == "forth":
            images = barycentric(plan, there)
        else:
            here, images = there, barycentric(plan.T, here)
        step = np.linspace(0.0, 1.0, LATTICE_SIDE)
        nodes = np.stack(np.meshgrid(step, step, step, indexing="ij"), axis=-1).reshape(-1, 3)
        k = min(check_count("n_neighbors", self.n_neighbors, 1) + 1, len(here))
        distance, index = cKDTree(here).query(nodes, k=[*range(1, k + 1)], workers=-1)
        moved = nodes + interpolate(distance, index, images - here)
        return np.ascontiguousarray(
            moved.reshape(LATTICE_SIDE, LATTICE_SIDE, LATTICE_SIDE, 3), dtype=np.float32
        )


def _applied(kernel: Callable[..., None], colors: Matrix, table: Matrix, *place: int) -> Matrix:
    """Apply a kernel to colours, in several threads."""
    out = np.empty_like(colors)
    parallel.share(kernel, len(colors), 8 * colors.size, table, colors, *place, out)
    return out
