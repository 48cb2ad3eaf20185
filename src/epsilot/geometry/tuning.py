"""Collect the sizes at which geometries change how they compute."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GeometryTuning:
    """Sizes at which geometries change how they compute, and durations that they assume."""

    # Entries in a block of rows: 2 MiB of float64, about the second-level cache.
    block_entries: int = 1 << 18
    searched_columns: int = 100  # columns per row that a search of trees compares, about
    max_kept_entries: int = 1 << 22  # most entries of a cost that is kept between passes
    max_chunks: int = 8  # most chunks per block; each chunk has its own column sums
    # Most columns of a tile, and so most points that a worker holds or a task carries.
    max_tile_columns: int = 1 << 20
    # Most entries of a stored cost: beyond, computing it again is faster than reading it.
    max_stored_entries: int = 1 << 24
    # Most entries that are compared one by one to find the smallest and the largest cost.
    max_compared_entries: int = 1 << 28
    # The same in few dimensions, where the corners of convex hulls are found quickly.
    max_compared_entries_flat: int = 1 << 24
    # Highest dimension in which convex hulls have few corners and are found quickly.
    max_hull_dimension: int = 3
    # Largest exponent (f + g - C) / η that float32 holds to within 1e-3.
    max_float32_exponent: float = 1e4
    # Range of coordinates whose sums of squares float32 holds safely.
    min_float32_reach: float = 1e-12
    max_float32_reach: float = 1e12
    # Fewest columns for which float32 narrows down the minima that float64 then computes.
    min_float32_columns: int = 1024
    # Fewest entries of a power of distances on a line for which c-transforms do not pass over
    # all.
    min_power_entries: int = 1 << 17
    # Fewest coordinates for which a product is faster than differences.
    min_product_dimension: int = 4
    # Blocks of float32 costs have a multiple of so many rows on every machine: whole tiles, even
    # shares for two threads.
    block_row_multiple: int = 48
    terms_per_entry: int = 8  # terms of a product that take as long as one entry of other passes
    thread_depth: int = 5  # depth of the tree nodes that are shared among threads
    entries_per_search: int = 2048  # time of one search of a tree, in entries of a full pass
    entries_per_pair: int = 16  # time of one pair's cost, in entries of a row
    # Stored entries that take as long as one entry of a pass along the axes of a grid.
    stored_per_pass_entry: int = 4
    max_row_entries: int = 1 << 32  # most entries of a cost whose rows are computed in seconds
    # Most entries of a grid pass whose minima compare all pairs along an axis: a tenth of a
    # second.
    max_pair_entries: int = 1 << 28
    # Most cells of a grid whose log-sum-exp runs in one compiled call.
    max_one_call_cells: int = 1 << 15
    min_grid_cells: int = 64  # fewest cells of a grid that is detected in a stored cost
    max_grid_axes: int = 3  # most axes of such a grid
    # Largest difference of stored costs from grid distances, as a share of the largest cost.
    grid_tolerance: float = 1e-13
    max_kernel_axis: int = 4096  # longest axis, in cells, whose squared-Euclidean kernel is stored
    # Most cells of the scratch arrays that a thread keeps: six of at most 4 MiB each.
    max_scratch_cells: int = 1 << 19
    # Fewest entries, and highest dimension, for which c-transforms search trees.
    min_searched_entries: int = 1 << 23
    max_searched_axes: int = 8
    sample_rows: int = 64  # rows of the sample that predicts the time of a search
    entries_per_visit: int = 32  # time of visiting a node of a tree, in entries of a full pass


TUNING = GeometryTuning()
