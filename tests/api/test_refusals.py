"""Every call that cannot be served is refused in one sentence, before anything is allocated."""

import math
from functools import partial

import numpy as np
import pytest

import epsilot
from epsilot import Dense, Grid, InvalidProblem, PointCloud, memory
from epsilot.errors import TooLarge
from epsilot.geometry.inputs import cloud_geometry
from sample_problems import M34

X, Y = np.random.default_rng(0).random((2, 6, 2))
MILLION, MANY = np.zeros((10**6, 2)), np.zeros((200_000, 2))
MEGAPIXEL = np.ones((1000, 1000))
solve, sample, grid = epsilot.solve, epsilot.solve_sample, epsilot.solve_grid


def warm(f, g):
    return partial(solve, M34, potentials_init=(f, g))


def option(method, **options):
    return partial(solve, M34, method=method, **options)


def measured(returns):
    return partial(sample, X, Y, metric=lambda x, points: returns)


def masked(array):
    return np.ma.masked_greater(array, 0.5)


REFUSED = {
    "potentials as columns": (warm(np.zeros((3, 1)), np.zeros((4, 1))), r"\(3, 1\).*two.*vectors"),
    "potentials swapped": (warm(np.zeros(4), np.zeros(3)), r"\(4,\) and \(3,\).*3 and 4"),
    "one potential": (partial(solve, M34, potentials_init=[np.zeros(3)]), "two vectors"),
    "an int for potentials": (partial(solve, M34, potentials_init=3), "int.*two vectors"),
    "huge potentials": (warm(np.full(3, 1e30), np.zeros(4)), r"f\[0\] is 1e\+30"),
    "NaN potentials": (warm(np.zeros(3), np.full(4, np.nan)), r"g\[0\] is nan"),
    "complex potentials": (warm(np.zeros(3) + 1j, np.zeros(4)), "complex"),
    "half an epoch": (partial(solve, M34, max_iter=1.5), "max_iter is 1.5.*whole"),
    "max_iter NaN": (partial(solve, M34, max_iter=math.nan), "max_iter is nan"),
    "max_iter in words": (partial(solve, M34, max_iter="3"), "max_iter is '3'"),
    "max_seconds NaN": (partial(solve, M34, max_seconds=math.nan), "max_seconds is nan"),
    "seed None": (partial(solve, M34, seed=None), "seed is None"),
    "seed True": (partial(solve, M34, seed=True), "seed is True"),
    "half a thread": (partial(solve, M34, n_threads=0.5), "n_threads is 0.5"),
    "eps True": (partial(solve, M34, eps=True), "eps is True"),
    "eps complex": (partial(solve, M34, eps=1j), "eps is 1j"),
    "eps an array": (partial(solve, M34, eps=np.array([0.1])), "eps is array"),
    "stop a list": (partial(solve, M34, stop=[]), r"stop is \[\]"),
    "callback an int": (partial(solve, M34, callback=3), "callback is 3"),
    "normalize a word": (partial(solve, M34, normalize="x"), "normalize is 'x'"),
    "checkpoint an int": (partial(solve, M34, checkpoint=3), "checkpoint is 3"),
    "resume an int": (partial(solve, M34, resume=3), "resume is 3"),
    "checkpoint nowhere": (partial(solve, M34, checkpoint="/none/c.npz"), "no directory /none"),
    "half a row": (option("pdasmd", batch_size=1.5), "batch_size is 1.5.*integer"),
    "batch_size 1e3": (option("pdasmd", batch_size=1e3), r"integer.*\(write 1000\)"),
    "batch_size True": (option("pdasmd", batch_size=True), "batch_size is True"),
    "average a word": (option("apdagd", average="x"), "average is 'x'; it must be True or False"),
    "average a truth": (option("pdasmd", average=True), "average is True; it must be a string"),
    "average unknown": (option("pdasmd", average="x"), "average is 'x'.*'sampled'"),
    "domain an int": (option("sinkhorn", domain=3), "domain is 3; it must be a string"),
    "relaxation NaN": (option("sinkhorn", relaxation=math.nan), "relaxation is nan.*finite"),
    "etas a word": (option("restricted_simplex", etas="abc"), "etas is 'abc'.*sequence"),
    "2**70 pivots": (option("exact", max_pivots=2**70), "max_pivots.*64 bits"),
    "Dense of text": (partial(Dense, "x"), "M is of type str"),
    "Dense of a vector": (partial(Dense, np.ones(3)), r"M has shape \(3,\)"),
    "Dense of nothing": (partial(Dense, None), r"M has shape \(\)"),
    "complex Dense": (partial(Dense, M34 + 1j), "M is of type complex"),
    "masked Dense": (partial(Dense, masked(M34)), "M has masked"),
    "Dense of NaN": (lambda: solve(Dense(np.full((2, 2), np.nan))), "row 0, column 0 is nan"),
    "spacing in words": (partial(Grid, (3, 3), spacing="x"), "spacing is of type str"),
    "spacing for too many": (partial(Grid, (3, 3), spacing=(1, 2, 3)), "spacing.*2 axes"),
    "complex spacing": (partial(Grid, (3, 3), spacing=1j), "spacing is of type complex"),
    "spacing None": (partial(Grid, (3, 3), spacing=None), "spacing is None"),
    "shape in words": (partial(Grid, "x"), "shape_a is of type str"),
    "half a cell": (partial(Grid, (2.5,)), "shape_a is .2.5,.*cell"),
    "a grid's metric a list": (partial(Grid, (3,), metric=["x"]), r"metric is \['x'\]"),
    "a grid's squares vanish": (partial(Grid, (3,), None, "sqeuclidean", 1e-170), "2e-170 apart"),
    "complex masses": (partial(grid, np.ones((3, 3)) + 1j, np.ones((3, 3))), "A is of type compl"),
    "complex points": (partial(sample, X + 1j, Y), "X_a is of type complex"),
    "masked points": (partial(sample, X, masked(Y)), "X_b has masked"),
    "a number for points": (partial(sample, 3, Y), r"X_a has shape \(\)"),
    "ragged points": (partial(sample, [[1, 2], [3]], Y), "X_a is of type list"),
    "metric an int": (partial(sample, X, Y, metric=3), "metric is 3"),
    "lazy in words": (partial(sample, X, Y, lazy="yes"), "lazy is 'yes'"),
    "multiscale in words": (partial(sample, X, Y, multiscale="no"), "multiscale is 'no'"),
    "a metric of no points": (
        partial(sample, X, Y, metric=lambda: 0),
        r"<lambda>\(\).* two points",
    ),
    "a metric too short": (measured(np.zeros(3)), r"shape \(3,\) for source 0.*6 targets"),
    "a metric as a column": (measured(np.zeros((6, 1))), r"shape \(6, 1\)"),
    "a metric of NaN": (measured(np.full(6, np.nan)), "nan for source 0 and target 0"),
    "a metric of inf": (measured(np.full(6, np.inf)), "inf for source 0"),
    "a complex metric": (measured(np.zeros(6) + 1j), "returned is of type complex"),
    "a metric of text": (measured("abcdef"), "returned is of type str"),
    "squares vanish": (partial(sample, 1e-170 * X, 1e-170 * Y), "no digits.*one factor"),
    "squares overflow": (partial(sample, 1e160 * X, 1e160 * Y), "no digits.*one factor"),
    "lazy distances vanish": (
        partial(sample, 1e-170 * X, 1e-170 * Y, metric="euclidean", lazy=True),
        "euclidean: .*no digits",
    ),
    "certify text": (partial(epsilot.certify, M34, plan="x"), "the plan is of type str"),
    "certify an int": (partial(epsilot.certify, M34, potentials=3), "two vectors"),
    "round text": (partial(epsilot.round_plan, "x", None, None), "the plan is of type str"),
}
TOO_LARGE = {
    "a million stored points": (partial(sample, MILLION, MILLION, lazy=False), "lazy=True"),
    "a callable on many points": (
        partial(sample, MANY, MANY, metric=lambda x, points: np.zeros(len(points))),
        "596.0 GiB.*has a name",
    ),
    "a lazy callable on many points": (
        partial(PointCloud, MANY, MANY, lambda x, points: np.zeros(len(points))),
        "GiB.*compiled kernels",
    ),
    "dijkstra_dfs on a megapixel": (
        partial(grid, MEGAPIXEL, MEGAPIXEL, method="dijkstra_dfs"),
        r"3,725\.3 GiB.*method='sinkhorn'",
    ),
    "an averaged plan of a megapixel": (
        partial(grid, MEGAPIXEL, MEGAPIXEL, method="apdagd", stop="paper", eps=1.0),
        r"GiB.*method='sinkhorn'",
    ),
    "a grid of 10**12 cells": (partial(solve, Grid((10**6, 10**6))), "GiB.*fewer points or cells"),
}
LONG_STEPS = {
    "a batch of 10**9": (option("pdasmd", batch_size=10**9), r"14\.9 GiB.*lower batch_size"),
    "10**12 inner loops": (option("pdasmd", inner_loops=10**12), r"14,901\.2 GiB.*inner_loops"),
    "rows of a megapixel": (partial(grid, MEGAPIXEL, MEGAPIXEL, method="pdasmd"), "rows of the"),
}


@pytest.mark.parametrize("name", REFUSED | TOO_LARGE | LONG_STEPS)
def test_refused_in_one_sentence(name, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 16 << 30)
    call, words = (REFUSED | TOO_LARGE | LONG_STEPS)[name]
    with pytest.raises(InvalidProblem, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, TooLarge) == (name in TOO_LARGE)


def test_lack_of_memory_is_a_memory_error():
    assert issubclass(TooLarge, MemoryError)


@pytest.mark.parametrize(
    "call",
    [
        partial(solve, M34, max_iter=math.inf, max_seconds=math.inf),
        option("pdasmd", batch_size=np.int64(2), step_constant=np.float32(9)),
        option("apdagd", average=np.bool_(True)),
        option("restricted_simplex", etas=[1, np.float64(0.1)]),
        option("sinkhorn", relaxation=1),
        partial(solve, M34, seed=np.uint8(3), n_threads=np.int64(1), eps=np.float32(0.1)),
        partial(sample, X, Y, metric=lambda x, points: list(abs(points - x).sum(axis=1))),
    ],
)
def test_numbers_of_any_library_are_numbers(call):
    assert call().converged


@pytest.mark.parametrize("scale", [1e-170, 1e-150, 1.0, 1e160])
@pytest.mark.parametrize(
    ("metric", "power", "lazy"),
    [("cosine", 0, False), ("cosine", 0, True), ("euclidean", 1, False), ("cityblock", 1, True)],
)
def test_costs_at_any_scale(metric, power, lazy, scale):
    usual = cloud_geometry(X, Y, metric, lazy).block(0, 6)
    C = cloud_geometry(scale * X, scale * Y, metric, lazy).block(0, 6)
    np.testing.assert_allclose(C, usual * scale**power, rtol=1e-13)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e30, 1e299])
def test_an_audit_takes_potentials_of_any_size(size, rng):
    f, g = size * rng.standard_normal(3), size * rng.standard_normal(4)
    found = epsilot.certify(M34, potentials=(f, g))
    assert found.lower <= epsilot.exact(M34).value <= found.upper


def test_a_callable_is_asked_once_for_every_source():
    asked = []
    sample(X, Y, metric=lambda x, points: asked.append(x) or np.abs(points - x).sum(axis=1))
    assert len(asked) == len(X) + 2  # after a trial with two points and one with all targets
