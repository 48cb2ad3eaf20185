"""Geometries: costs between sources and targets, stored or computed on the fly."""

from .base import Geometry
from .dense import Dense, as_geometry
from .grid import Grid
from .points import PointCloud

__all__ = ["Dense", "Geometry", "Grid", "PointCloud", "as_geometry"]
