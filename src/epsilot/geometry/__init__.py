"""Geometries: costs between sources and targets, stored or computed on the fly."""

from .base import Geometry
from .convert import as_geometry
from .dense import Dense
from .grid import Grid
from .points import PointCloud
from .sparse import Sparse

__all__ = ["Dense", "Geometry", "Grid", "PointCloud", "Sparse", "as_geometry"]
