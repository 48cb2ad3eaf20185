"""Read the problem that command line options describe."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .._types import Array, Matrix, Vector
from ..errors import InvalidProblem
from ..files import IMAGE_SUFFIXES, column_names, read_array, read_image
from ..labels import order_of
from ..metrics import METRICS, PIXEL_METRICS, POINT_METRICS, nearest_name
from ..wording import LONGEST_SHOWN, named, shorter, shown

if TYPE_CHECKING:
    from ..geometry import Geometry
    from .options import Source


@dataclass(frozen=True)
class Inputs:
    """A cost matrix or geometry, and weights; None means uniform weights."""

    M: Array | Geometry
    a: Vector | None = None
    b: Vector | None = None

    @property
    def shape(self) -> list[int]:
        """Shape of the cost."""
        return list(self.M.shape)

    def normalized(self) -> Inputs:
        """Return the problem with weights of total 1."""
        return Inputs(
            self.M, *(None if w is None else w / (w.sum() or 1.0) for w in (self.a, self.b))
        )


def load_problem(source: Source) -> Inputs:
    """Read a problem from the files that the options name."""
    if source.files:
        were = "was" if len(source.files) == 1 else "were"
        raise InvalidProblem(
            f"{shorter(' and '.join(source.files), LONGEST_SHOWN)} {were} given without an option; "
            "pass points as --points X Y, images as --images A B, costs as --cost FILE, weights as "
            "--a FILE and --b FILE"
        )
    cost, points, images, metric = source.cost, source.points, source.images, source.metric
    sources = {"--cost": cost, "--points": points, "--images": images}
    given = [name for name, value in sources.items() if value is not None]
    if len(given) != 1:
        received = f"{' and '.join(given)} were" if given else "no problem was"
        raise InvalidProblem(
            f"{received} given; exactly one of {', '.join(sources)} is required (see --help)"
        )
    near = source.max_distance, source.k_neighbors
    if points is None and near != (None, None):
        raise InvalidProblem(
            "--max-distance and --k-neighbors choose pairs of points; pass the points as --points "
            "(or store a sparse cost)"
        )
    if source.power is not None and points is None:
        raise InvalidProblem(
            f"--power {source.power:g} was given without --points, whose metric it raises to a "
            "power (leave it out)"
        )
    if images is not None:
        if source.a is not None or source.b is not None:
            raise InvalidProblem(
                "--images was given with --a or --b; the images are the weights (leave them out)"
            )
        return _from_images(*images, metric or PIXEL_METRICS[0])
    if points is not None:
        X, Y = read_clouds(*points)
        power = 1.0 if source.power is None else source.power
        cost_of = _cost_from_points(X, Y, metric or POINT_METRICS[0], power, near)
        return Inputs(cost_of, *_both_weights(source.a, source.b))
    if metric is not None:
        raise InvalidProblem(
            f"--metric {named(metric)} was given with --cost, which already holds the distances "
            "(leave it out, or pass --points)"
        )
    assert cost is not None
    return Inputs(read(cost), *_both_weights(source.a, source.b))


def read(name: str) -> Array:
    """Read an array; ``archive.npz:key`` selects one of an archive."""
    head, mark, key = name.rpartition(":")
    if mark and head.lower().endswith(".npz"):
        return read_array(head, key)
    return read_array(name)


def read_clouds(first: str, second: str) -> tuple[Matrix, Matrix]:
    """Read two tables of points; columns that have names in both are matched by them."""
    X, Y = (as_points(read(name), name) for name in (first, second))
    wanted, names = (column_names(name) for name in (first, second))
    order = order_of(names, wanted, f"{named(second)} has the columns", f"{named(first)} has")
    return X, Y if order is None else Y[:, order]


def read_vector(name: str) -> Vector:
    """Read a vector: a 1-d array, a single row or column, or an image."""
    array = read(name)
    is_image = Path(name).suffix.lower() in IMAGE_SUFFIXES
    if array.ndim != 1 and array.size != max(array.shape, default=0) and not is_image:
        raise InvalidProblem(
            f"{named(name)} holds an array of shape {array.shape}; a vector is required "
            "(save one row or one column)"
        )
    vector: Vector = array.ravel()
    return vector


def _both_weights(a: str | None, b: str | None) -> tuple[Vector | None, Vector | None]:
    """Read the weights whose files are given."""
    return (
        None if a is None else read_vector(a),
        None if b is None else read_vector(b),
    )


def as_points(array: Array, name: str) -> Matrix:
    """Return points as rows; a vector holds 1-d points."""
    if not 1 <= array.ndim <= 2:
        raise InvalidProblem(
            f"{named(name)} holds an array of shape {array.shape}; points must be a table, one "
            "point per row (reshape it to two dimensions)"
        )
    table: Matrix = np.asarray(array, dtype=np.float64).reshape(len(array), -1)
    if not np.isfinite(table).all():
        row = int(np.argmin(np.isfinite(table).all(axis=1)))
        raise InvalidProblem(
            f"{named(name)} holds NaN or infinity in point {row}, counted from 0; coordinates must "
            "be finite (repair or remove the point)"
        )
    return table


def _checked_metric(metric: str, known: tuple[str, ...]) -> str:
    """Check the name of a metric, and suggest the nearest if it is unknown."""
    if metric not in known:
        near = nearest_name(metric, known)
        names = ", ".join(name for name in known if name in METRICS)
        others = "" if known == PIXEL_METRICS else ", or another name of scipy's cdist"
        raise InvalidProblem(
            f"--metric is {shown(metric)}; it must be one of {names}{others} "
            f"({f'did you mean {near}?' if near else f'{known[0]} is the default'})"
        )
    return metric


def _cost_from_points(
    X: Matrix, Y: Matrix, metric: str, power: float, near: tuple[float | None, int | None]
) -> Geometry:
    """Return the cost between two sets of points, stored only if it is small."""
    from ..geometry.coordinates import as_metric
    from ..geometry.inputs import cloud_geometry
    from ..geometry.near_pairs import near_geometry

    _checked_metric(metric, POINT_METRICS)
    if X.shape[1] != Y.shape[1]:
        raise InvalidProblem(
            f"the points have {X.shape[1]} and {Y.shape[1]} coordinates; both must have the same "
            "number (check the columns of the files)"
        )
    if near == (None, None):
        return cloud_geometry(X, Y, metric, p=power)
    return near_geometry(X, Y, as_metric(metric, power), *near)


def _from_images(first: str, second: str, metric: str) -> Inputs:
    """Return the problem of transporting one image onto another, on their pixels."""
    A, B = read_mass(first), read_mass(second)
    return Inputs(pixel_geometry(A.shape, B.shape, metric), _unit(A), _unit(B))


def read_mass(name: str) -> Matrix:
    """Read an image and check that its mass is positive."""
    image = read_image(name)
    if not image.any():
        raise InvalidProblem(
            f"{named(name)} is completely black; an image with positive mass is required (invert "
            "it?)"
        )
    return image


def pixel_geometry(
    shape_a: tuple[int, ...], shape_b: tuple[int, ...], metric: str = PIXEL_METRICS[0]
) -> Geometry:
    """Return the cost between the pixels of two images in units of pixels, as ``solve_grid``."""
    from ..geometry.inputs import grid_geometry

    return grid_geometry(shape_a, shape_b, _checked_metric(metric, PIXEL_METRICS), 1.0)


def _unit(image: Matrix) -> Vector:
    """Return the pixels of an image, scaled to total mass 1."""
    weights: Vector = image.ravel() / image.sum()
    return weights
