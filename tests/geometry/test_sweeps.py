"""A sweep hands every block of rows to a kernel, in float64 or as a crude pass in float32."""

import numpy as np
import pytest

from epsilot import parallel
from epsilot.geometry import Dense, Grid, PointCloud, points, sweeps
from epsilot.geometry.sweeps import ByRow, ColumnSums, row_blocks
from tuning import tune

POINTS = np.random.default_rng(0).random((2, 30, 2))
GEOMETRIES = {
    "dense": Dense(np.random.default_rng(1).random((30, 21))),
    "cloud": PointCloud(*POINTS, single=True),
    "grid": Grid((5, 6)),
}


@pytest.mark.parametrize(("n", "m", "size"), [(1, 7, 3), (10, 7, 20), (10, 7, 70), (3, 1, 1)])
def test_blocks_cover_all_rows(n, m, size):
    blocks = list(row_blocks(n, m, size))
    np.testing.assert_array_equal(np.concatenate([np.arange(n)[rows] for rows in blocks]), range(n))
    assert all(rows.stop - rows.start == max(1, min(n, size // m)) for rows in blocks[:-1])


@pytest.mark.parametrize(("unit", "tolerance"), [(None, 1e-15), (2.0, 1e-6)])
@pytest.mark.parametrize("n_entries", [40, 1 << 18])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_a_sweep_sees_every_row_once(name, n_entries, unit, tolerance, monkeypatch):
    tune(monkeypatch, points, block_entries=n_entries)
    monkeypatch.setattr(sweeps.row_blocks, "__defaults__", (n_entries,))
    tune(monkeypatch, parallel, min_entries_per_thread=16)
    geometry = GEOMETRIES[name]
    n, m = geometry.shape
    factor, seen, columns = np.arange(1.0, n + 1), np.zeros((n, m)), ColumnSums(m)

    def copied(C, factor, out, start, stop):
        assert C.dtype == (np.float64 if unit is None else np.float32)
        out[start:stop] += C[start:stop] * factor[start:stop, None]

    def summed(C, factor, parts, start, stop):
        for k in range(start, stop):
            rows = slice(len(C) * k // len(parts), len(C) * (k + 1) // len(parts))
            parts[k] += factor[rows] @ C[rows]

    geometry.sweep(copied, ByRow(factor), ByRow(seen), unit=unit)
    geometry.sweep(summed, ByRow(factor), columns, unit=unit)
    wanted = geometry.block(0, n) * factor[:, None] / (unit or 1.0)
    np.testing.assert_allclose(seen, wanted, rtol=tolerance, atol=30 * tolerance)
    np.testing.assert_allclose(columns.total, seen.sum(axis=0), rtol=1e-12)
