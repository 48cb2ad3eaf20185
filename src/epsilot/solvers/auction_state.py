"""What an auction knows, as plain arrays that a checkpoint can hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Index, Vector
from ..kernels import auction as kernels

#: Relative gaps from which on a plan on the way is worth a certificate: a first, and a second one.
RIPE, RIPEST = 0.1, 0.01


@dataclass(kw_only=True)
class MarketState:
    """The auction of one level. Names of several arrays stand for one after the other."""

    is_flipped: bool  # whether the problem's columns are the rows that bid
    rows: Index  # rows that bid, in the order of their tree
    cols: Index  # columns, in the order of theirs
    weights: Vector  # masses of those rows
    quotas: Vector  # masses of those columns
    fine_x: Vector  # points of the rows
    fine_y: Vector
    level: int  # levels begun
    is_selling: bool  # whether a phase has begun and not ended
    is_ripe: bool  # whether the phase that has just ended may satisfy a loose goal
    wanted: float  # relative gap from which on a plan on the way is worth a certificate
    is_over: bool  # whether the last phase of the level has ended
    eps: float
    last_eps: float
    early: float  # mass that may be left when a phase ends
    enough: float  # and when the last one does
    small: float  # mass below which rows go last
    x: Vector  # points or cells of the level
    y: Vector
    nodes: Vector  # tree of the level's columns
    by_column: Vector  # prices, base, unsold, specks
    heads: kernels.Places  # cheapest pieces of the columns
    by_row: Vector  # excess, dust, thresholds, leasts
    pieces: Vector  # costs, masses and limits of pieces
    piece_links: kernels.Places  # child, sibling, row and column of pieces
    list_cols: kernels.Places
    list_costs: Vector
    line: kernels.Places  # queue, is_queued, waiting
    counts: Index

    @property
    def market(self) -> kernels.Market:
        """The arrays as kernels take them."""
        prices, base, unsold, specks = self.by_column.reshape(4, -1)
        excess, dust, thresholds, _ = self.by_row.reshape(4, -1)
        costs, mass, limit = self.pieces.reshape(3, -1)
        queue, is_queued, waiting = self.line.reshape(3, -1)
        child, sibling, piece_row, piece_col = self.piece_links.reshape(4, -1)
        n = excess.size
        return kernels.Market(
            prices=prices,
            base=base,
            unsold=unsold,
            specks=specks,
            heads=self.heads,
            excess=excess,
            dust=dust,
            child=child,
            sibling=sibling,
            piece_row=piece_row,
            piece_col=piece_col,
            piece_cost=costs,
            mass=mass,
            limit=limit,
            cols=self.list_cols.reshape(n, -1),
            costs=self.list_costs.reshape(n, -1),
            thresholds=thresholds,
            queue=queue,
            is_queued=is_queued,
            waiting=waiting,
            counts=self.counts,
        )

    @property
    def leasts(self) -> Vector:
        """Least cost + price of every row of the level, under the prices a phase ended with."""
        return np.asarray(self.by_row.reshape(4, -1)[3])

    @property
    def asked(self) -> Vector:
        """Prices of the level's columns."""
        return np.asarray(self.by_column.reshape(4, -1)[0])

    @property
    def may_be_left(self) -> float:
        """Mass with which the phase under way may end."""
        return self.early if self.eps > self.last_eps else self.enough

    def ripen(self, gap: float) -> None:
        """Note the relative gap of a plan on the way, and whether it is worth a certificate."""
        self.is_ripe = gap <= self.wanted
        if self.is_ripe:
            self.wanted = RIPEST if gap > RIPEST else 0.0

    def is_arranged(self, n: int, m: int) -> bool:
        """Tell whether rows, columns, masses and points of a saved market belong together."""
        sides = (
            (self.rows, self.weights, self.fine_x, n),
            (self.cols, self.quotas, self.fine_y, m),
        )
        return all(
            index.size == weights.size
            and points.size % max(index.size, 1) == 0
            and (index.size == 0 or 0 <= index.min() <= index.max() < size)
            for index, weights, points, size in sides
        )

    def is_market(self) -> bool:
        """Tell whether sizes and places of a saved level belong together."""
        n, m, size = self.by_row.size // 4, self.heads.size, self.pieces.size // 3
        k = self.list_cols.size // max(n, 1)
        sizes = (
            (self.by_row.size, 4 * n),
            (self.by_column.size, 4 * m),
            (self.pieces.size, 3 * size),
            (self.piece_links.size, 4 * size),
            (self.list_cols.size, n * k),
            (self.list_costs.size, n * k),
            (self.line.size, 3 * n),
            (self.counts.size, kernels.N_COUNTS),
        )
        if any(found != wanted for found, wanted in sizes):
            return False
        links = self.piece_links.reshape(4, -1)
        places = (
            (self.heads, size),
            (links[:2], size),
            (links[2], n),
            (links[3], m),
            (self.list_cols, m),
            (self.line, max(n, 2)),
            (self.counts[: kernels.BIDS], n + size + 1),
        )
        return all(x.size == 0 or -1 <= x.min() <= x.max() < end for x, end in places)


def empty_market() -> dict[str, Any]:
    """Return the fields of a market before its first level."""
    none, nothing = np.zeros(0), np.zeros(0, dtype=np.int32)
    nobody = np.zeros(0, dtype=np.int64)
    return {
        "is_flipped": False,
        "rows": nobody,
        "cols": nobody,
        "weights": none,
        "quotas": none,
        "fine_x": none,
        "fine_y": none,
        "level": 0,
        "is_selling": False,
        "is_ripe": False,
        "wanted": RIPE,
        "is_over": False,
        "eps": 0.0,
        "last_eps": 0.0,
        "early": 0.0,
        "enough": 0.0,
        "small": 0.0,
        "x": none,
        "y": none,
        "nodes": none,
        "by_column": none,
        "heads": nothing,
        "by_row": none,
        "pieces": none,
        "piece_links": nothing,
        "list_cols": nothing,
        "list_costs": none,
        "line": nothing,
        "counts": np.zeros(kernels.N_COUNTS, dtype=np.int64),
    }
