"""Geometries: costs between sources and targets, stored or computed on the fly."""

from .base import Geometry
from .dense import Dense
from .grid import Grid
from .inputs import as_geometry
from .points import PointCloud
from .sparse import Sparse

__all__ = ["Dense", "Geometry", "Grid", "PointCloud", "Sparse", "as_geometry"]
