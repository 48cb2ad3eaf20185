"""Wrong arguments, by what they stand for."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from .problems import Rng

N, M_ = 4, 5  # rows and columns of every problem that is abused
COST = np.random.default_rng(0).random((N, M_))
POINTS = np.random.default_rng(1).random((N, 2)), np.random.default_rng(2).random((M_, 2))


class Odd:
    """An object that is nothing a function could want."""

    def __repr__(self) -> str:
        return "<odd>"


def put(x: Any, value: Any, dtype: Any = float) -> Any:
    """Return an array with its first entry replaced."""
    out = np.array(x, dtype=dtype)
    out.flat[0] = value
    return out


def masked(x: Any) -> Any:
    """Return an array whose first entry is masked."""
    return np.ma.masked_array(x, mask=put(np.zeros(np.shape(x)), 1, bool))


ANYTHING: tuple[Any, ...] = (
    Odd(), "x", "", b"x", {}, {1: 2}, {3}, [], (), lambda: None, object, 1j, True, -1, 0, 5, 2.5,
    float("nan"), float("inf"), -float("inf"), 10**400, -(10**30), 1e-320, 1e308, None,
    decimal.Decimal("0.5"), np.float32(0.5), np.array([1.0, 2.0]), np.array(["a"]),
    np.datetime64("2020-01-01"), "5", "nan", [1], [[1]], range(3), slice(2), ...,
)  # fmt: skip


def spoilt_array(x: Any) -> tuple[Any, ...]:
    """Return arrays of the wrong shape, type or content."""
    x = np.asarray(x, dtype=float)
    return (
        put(x, np.nan),
        put(x, np.inf),
        put(x, -np.inf),
        put(x, 1j, complex),
        put(x, None, object),
        put(x, "x", object),
        masked(x),
        x[..., None],
        x[:0],
        x[:-1],
        np.concatenate([x, x]),
        x.T,
        x.ravel(),
        x.astype(str),
        x.astype("datetime64[s]"),
        x.astype(complex),
        sparse.csr_array(x.reshape(len(x), -1)),
        [*x.tolist()[:-1], [1.0]],
        -x,
        0 * x,
        1e308 * put(x, 9.0),
        1e-320 * x,
        np.array(x.tolist(), dtype=object),
        memoryview(np.ascontiguousarray(x)),
        np.rec.fromarrays([x.ravel()], names="v"),
        [None] * len(x),
        put(x, -1e308) * 1.5,
    )


def wrong_metrics(x: Any) -> tuple[Any, ...]:
    """Return metrics that do not return one finite cost for each target."""
    return (
        "euclid",
        "",
        5,
        None,
        Odd(),
        [],
        lambda x, Y: 0.0,
        lambda x, Y: [1.0],
        lambda x, Y: np.ones(len(Y) + 1),
        lambda x, Y: np.ones((len(Y), 2)),
        lambda x, Y: None,
        lambda x, Y: np.full(len(Y), np.nan),
        lambda x, Y: ["a"] * len(Y),
        lambda x, Y: np.full(len(Y), 1j),
        lambda x, Y: iter(Y),
        lambda x, Y: masked(Y[:, 0]),
    )


def wrong_pairs(x: Any) -> tuple[Any, ...]:
    """Return potentials that are not two finite vectors."""
    f, g = np.zeros(N), np.zeros(M_)
    return (
        (f,),
        (f, g, g),
        (g, f),
        (f[:, None], g[:, None]),
        (f, None),
        (1.0, 2.0),
        "fg",
        f,
        (put(f, np.nan), g),
        (put(f, 1e308), put(g, -1e308)),
        (1e30 * (f + 1), g),
        (f, g + 1j),
        ("a", "b"),
        [f.tolist(), g.tolist()],
        {0: f, 1: g},
        (f, g[:-1]),
        (masked(f), g),
        iter((f, g)),
    )


#: What an argument stands for -> wrong values, given a right one.
WRONG: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "array": lambda x: (*spoilt_array(x), *ANYTHING),
    "number": lambda x: ANYTHING,
    "integer": lambda x: (*ANYTHING, 10**12, np.int64(3), np.uint8(200), 1e3),
    "choice": lambda x: (*ANYTHING, str(x).upper(), f"{x} ", f"{x}s"),
    "metric": wrong_metrics,
    "pair": lambda x: (*wrong_pairs(x), *ANYTHING),
    "path": lambda x: ("none/x.npz", ".", "\0", "x" * 300, b"x.npz", 5, Odd(), [], True, "", None),
    "callable": lambda x: (5, "x", Odd(), [], {}, True),
    "flag": lambda x: ANYTHING,
    "shape": lambda x: (*ANYTHING, (0,), (2, 3, 4, 5), (-1, 2), (1.5, 2), ("a",), (10**9, 10**9)),
    "anything": lambda x: ANYTHING,
}


def wrong_value(rng: Rng, kind: str, right: Any) -> Any:
    """Draw a wrong value for an argument."""
    values = WRONG[kind](right)
    return values[rng.integers(len(values))]
