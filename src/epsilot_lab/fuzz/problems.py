"""Draw random transport problems, and record the outcome of a case."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

import epsilot

# -- outcomes ----------------------------------------------------------------------------------

#: Errors that public functions may raise for input they cannot use.
DOCUMENTED = (epsilot.InvalidProblem, epsilot.UnknownMethod, epsilot.NotConverged)
LONGEST_SENTENCE = 600
#: Warnings that are meant, and those that users do not see (NumPy's, of broken archives).
QUIET = (epsilot.ConvergenceWarning, ResourceWarning)


@dataclass
class CaseOutcome:
    """The ending of a case, in the words of the summary, and all its defects."""

    kind: str  # of problem, file or call
    method: str = "-"
    ending: str = "-"  # certified, stopped, refused ...
    label: str = ""  # the case in one line, for a reader
    defects: list[str] = field(default_factory=list)
    events: dict[str, int] = field(default_factory=dict)  # what the summary adds up: signals
    problems: int = 1  # solved or refused, each of them checked

    def blame(self, *defects: str) -> CaseOutcome:
        """Add defects."""
        self.defects.extend(defects)
        return self

    def settled(self, answer: CallRecord, is_due: bool = False) -> Any:
        """Note how a call ended, and return its result; refusing what is due is a defect."""
        self.blame(*answer.defects)
        if answer.error is None:
            status = getattr(answer.value, "status", None)
            self.ending = status.name.lower() if hasattr(status, "name") else "answered"
            return answer.value
        self.ending = "refused" if answer.is_refused else "raised"
        if answer.is_refused and is_due:
            self.blame(f"refused a valid problem: {answer.error}")
        return None


@dataclass(frozen=True)
class CallRecord:
    """The result or the error of a call, with its warnings."""

    value: Any
    error: Exception | None
    warned: list[str]
    seconds: float = 0.0

    @property
    def is_refused(self) -> bool:
        """Tell whether the call was refused as documented."""
        return self.error is not None and isinstance(self.error, (*DOCUMENTED, MemoryError))

    @property
    def defects(self) -> list[str]:
        """Defects of the ending itself, whatever the call returned."""
        found = [f"warned: {text}" for text in self.warned]
        if self.error is not None:
            found += error_defects(self.error)
        return found


def ask(call: Callable[..., Any], *args: Any, **keywords: Any) -> CallRecord:
    """Call a function of the library; every exception and warning is part of the answer."""
    value, error, began = None, None, time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = call(*args, **keywords)
        except Exception as raised:
            error = raised
    texts = {
        f"{w.category.__name__}: {w.message}" for w in caught if not issubclass(w.category, QUIET)
    }
    return CallRecord(value, error, sorted(texts), time.perf_counter() - began)


def is_free_of_clock(limit: float, *answers: CallRecord) -> bool:
    """Tell whether runs ended long before their limit in seconds: only such runs have equal bits.

    A run that the clock ended may be certified by its last look at the bounds.
    """
    return all(
        answer.seconds < limit / 3 and answer.value.status.name != "MAX_SECONDS"
        for answer in answers
        if answer.value is not None
    )


def error_defects(error: Exception) -> list[str]:
    """Say what is wrong with an exception: its type, or its text."""
    is_raw_memory = isinstance(error, MemoryError) and type(error).__module__.startswith("numpy")
    if is_raw_memory or not isinstance(error, (*DOCUMENTED, MemoryError)):
        return [f"raised {type(error).__name__}: {first_line(error)}"]
    return sentence_defects(str(error))


def sentence_defects(text: str) -> list[str]:
    """Say why a text is not one sentence with a remedy: what was received; what is required."""
    if "\n" in text or not 20 <= len(text) <= LONGEST_SENTENCE:
        return [f"not one sentence: {text[:200]!r}"]
    if not re.search(r"[;:,(]", text):
        return [f"no remedy in the sentence: {text!r}"]
    return []


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text."""
    return (str(error).splitlines() or [""])[0][:200]


# -- problems ----------------------------------------------------------------------------------

Rng = np.random.Generator
Array = np.ndarray

#: The largest and the least power of ten that costs and masses are multiplied by.
POWER = 300.0
#: Powers of ten that any numeric argument may have.
DECADES = -320.0, 308.0
#: Numbers at the ends of float64: subnormal, smallest normal, largest.
ENDS = (5e-324, 1e-320, 2.2250738585072014e-308, 1.7976931348623157e308)
CELLS = 64  # most cells of a grid along one axis


@dataclass(frozen=True)
class Drawn:
    """Arguments for `solve`, and the float64 cost and extended-precision weights they mean."""

    M: Any  # an array-like or a Geometry
    a: Any
    b: Any
    cost: Array
    kind: str  # what the summary counts: the geometry
    label: str  # all that was drawn, for a reader
    is_stored: bool = True  # whether `cost` is what the library sees, to the last bit
    is_at_the_edge: bool = False  # whether computing the costs may leave the range of floats
    cost_error: float = 0.0  # of the costs the library computes, relative to the largest

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        return self.cost.shape[0], self.cost.shape[1]

    @property
    def weights(self) -> tuple[Array, Array]:
        """Both weights with the total of the first, in extended precision."""
        n, m = self.shape
        a, b = (None if w is None else np.asarray(w, dtype=np.longdouble) for w in (self.a, self.b))
        mass = next((w.sum() for w in (a, b) if w is not None), np.longdouble(1))
        a = np.full(n, mass / n) if a is None else a
        b = np.full(m, mass / m) if b is None else b * (mass / b.sum())
        return a, b

    @property
    def extended(self) -> tuple[Array, Array, Array]:
        """Cost and both weights in extended precision."""
        return np.longdouble(self.cost), *self.weights

    @property
    def mass(self) -> np.longdouble:
        """Total mass."""
        return np.longdouble(self.weights[0].sum())

    @property
    def largest(self) -> np.longdouble:
        """Largest absolute cost."""
        return np.longdouble(np.abs(self.cost).max())

    @property
    def is_extreme(self) -> bool:
        """Tell whether a product of costs and masses is near the ends of the float64 range."""
        values = (self.mass, self.largest, self.mass * self.largest)
        return self.is_at_the_edge or any(v and not 1e-280 < v < 1e300 for v in values)

    def with_new(self, **changes: Any) -> Drawn:
        """Return a copy with other fields."""
        return replace(self, **changes)


def pick(rng: Rng, table: Mapping[str, float]) -> str:
    """Draw a key with the probability its value is a share of."""
    names, shares = list(table), np.array(list(table.values()))
    return names[rng.choice(len(names), p=shares / shares.sum())]


def number(rng: Rng, unit: float = 1.0) -> float:
    """Draw a positive number: near a unit, some decades from it, or anywhere in float64."""
    how = pick(rng, {"near": 5, "far": 3, "anywhere": 3, "end": 0.3})
    if how == "anywhere":
        return float(10.0 ** rng.uniform(*DECADES)) or ENDS[0]
    if how == "end":
        return float(rng.choice(ENDS))
    spread = 3.0 if how == "near" else 20.0
    drawn = float(np.longdouble(unit) * np.longdouble(10) ** rng.uniform(-spread, spread))
    return min(max(drawn, ENDS[0]), ENDS[-1])


def draw_problem(rng: Rng) -> Drawn:
    """Draw a problem on a matrix, between clouds or on grids."""
    return GEOMETRIES[pick(rng, {"dense": 6, "cloud": 3, "grid": 1.5})](rng)


# -- shapes and costs --------------------------------------------------------------------------


def draw_shape(rng: Rng) -> tuple[int, int]:
    """Draw the numbers of rows and columns."""
    size = pick(rng, {"tiny": 3, "small": 5, "thin": 2, "medium": 2, "large": 0.3})
    if size == "thin":
        shape = int(rng.integers(1, 5)), int(rng.integers(20, 300))
        return shape if rng.random() < 0.5 else shape[::-1]
    low, high = {"tiny": (1, 5), "small": (5, 30), "medium": (30, 90), "large": (150, 300)}[size]
    n, m = (int(k) for k in rng.integers(low, high, 2))
    return (n, n) if rng.random() < 0.4 else (n, m)


def distances(rng: Rng, n: int, m: int, metric: str) -> Array:
    """Return the distances of random points in the plane."""
    return np.asarray(cdist(rng.random((n, 2)), rng.random((m, 2)), metric))


def with_outliers(rng: Rng, n: int, m: int) -> Array:
    """Return uniform costs, a few of them many orders of magnitude larger."""
    C = rng.random((n, m))
    far = rng.random((n, m)) < 3 / (n + m)
    return np.where(far, C * 10 ** rng.uniform(1, 12), C)


#: family -> costs of size about one
COSTS: dict[str, Callable[[Rng, int, int], Array]] = {
    "uniform": lambda rng, n, m: rng.random((n, m)),
    "squared": lambda rng, n, m: distances(rng, n, m, "sqeuclidean"),
    "distance": lambda rng, n, m: distances(rng, n, m, "cityblock"),
    "ties": lambda rng, n, m: rng.integers(0, 4, (n, m)).astype(float),
    "zeros and ones": lambda rng, n, m: (rng.random((n, m)) < rng.random()).astype(float),
    "constant": lambda rng, n, m: np.full((n, m), rng.choice([0.0, 1.0, 3.7])),
    "separable": lambda rng, n, m: np.add.outer(rng.random(n), rng.random(m)),
    "nearly tied": lambda rng, n, m: 1 + 1e-14 * rng.random((n, m)),
    "outliers": with_outliers,
    "lognormal": lambda rng, n, m: np.exp(rng.uniform(1, 12) * rng.normal(size=(n, m))),
    "index distance": lambda rng, n, m: np.abs(np.subtract.outer(np.arange(n), np.arange(m))) * 1.0,
}
DTYPES = {
    "float64": 12,
    "float32": 2,
    "float16": 1,
    "longdouble": 0.5,
    "int64": 1,
    "int8": 1,
    "uint16": 1,
    "bool": 1,
}
LAYOUTS: dict[str, Callable[[Array], Any]] = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "strided": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "reversed": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "big-endian": lambda x: x.astype(x.dtype.newbyteorder(">")) if x.dtype.itemsize < 9 else x,
    "list": lambda x: x.tolist(),
    "read-only": lambda x: frozen(x),
    "misaligned": lambda x: misaligned(x),
}


def frozen(x: Array) -> Array:
    """Return a copy that cannot be written."""
    x = x.copy()
    x.setflags(write=False)
    return x


def misaligned(x: Array) -> Array:
    """Return a copy that starts one byte off."""
    raw = np.empty(x.nbytes + 1, dtype=np.uint8)[1:]
    out = raw.view(x.dtype).reshape(x.shape)
    out[...] = x
    return out


def layout(rng: Rng, x: Array) -> tuple[Any, str]:
    """Return an array in a random layout, and its name."""
    name = pick(rng, {"C": 6, **dict.fromkeys(list(LAYOUTS)[1:], 1.0)})
    return LAYOUTS[name](x), name


def cast(C: Array, dtype: str) -> Array:
    """Return costs of size about one in another type, losing digits but no finiteness."""
    if dtype in ("float64", "float32", "float16", "longdouble"):
        top = min(6e4, float(np.finfo(dtype).max)) if dtype == "float16" else 1e30
        return np.clip(C, -top, top).astype(dtype)
    if dtype == "bool":
        return np.median(C) < C
    info = np.iinfo(dtype)
    return np.clip(np.rint(50 * C), max(info.min, -(2**50)), min(info.max, 2**50)).astype(dtype)


def scaled(rng: Rng, C: Array) -> tuple[Array, str]:
    """Return costs with other signs, scale or offset, and what was done."""
    how = pick(
        rng, {"": 6, "negative": 1, "both signs": 1.5, "scale": 3, "denormal": 0.3, "offset": 1}
    )
    largest = float(np.abs(C).max()) or 1.0
    if how == "negative":
        C = -C
    elif how == "both signs":
        C = C - largest * rng.random()
    elif how == "scale":
        power = rng.uniform(-POWER, POWER - np.log10(max(largest, 1.0)))
        return C * 10**power, f"times 1e{power:.0f}"
    elif how == "denormal":
        return C / largest * 1e-315, "denormal"
    elif how == "offset":
        C = C + largest * rng.choice([-1, 1]) * 10 ** rng.uniform(1, 8)
    return C, how


def dense(rng: Rng) -> Drawn:
    """Draw a cost matrix of any kind, type and layout."""
    n, m = draw_shape(rng)
    family = str(rng.choice(list(COSTS)))
    C = COSTS[family](rng, n, m)
    dtype = pick(rng, DTYPES)
    how = ""
    if dtype == "float64":
        C, how = scaled(rng, C)
    C = cast(C, dtype) if dtype != "float64" else C
    M, order = layout(rng, C)
    cost = np.asarray(M, dtype=np.float64)
    a, b, masses = draw_weights(rng, n, m)
    if rng.random() < 0.1:
        M, order = epsilot.Dense(cost), "Dense"
    label = f"{n} x {m} {family} {how}, {dtype} {order}, {masses}"
    return Drawn(M, a, b, cost, "dense", " ".join(label.split()))


# -- weights -----------------------------------------------------------------------------------


def draw_weights(rng: Rng, n: int, m: int) -> tuple[Any, Any, str]:
    """Draw weights of equal totals for n sources and m targets; None stands for equal ones."""
    form = pick(rng, {"random": 6, "given": 4, "one side": 1.5, "integers": 1, "float32": 1})
    if form == "given":
        return None, None, "no weights"
    if form == "integers":
        a, b = (rng.integers(1, 9, k) for k in (n, m))
        a, b = a * b.sum(), b * a.sum()
        return a, b, "integer weights"
    a, how = draw_side(rng, n)
    b, other = draw_side(rng, m)
    if form == "float32":
        return a.astype(np.float32), b.astype(np.float32), f"float32 weights, {how} to {other}"
    power = pick(rng, {"": 6, "moderate": 2, "any": 1.5})
    factor = {"": 1.0, "moderate": 10 ** rng.uniform(-3, 3), "any": 10 ** rng.uniform(-300, 300)}
    mass = factor[power]
    words = f"{how} to {other} weights" + (f" of mass {mass:.0e}" if power else "")
    if form == "one side":
        side = (mass * a, None) if rng.random() < 0.5 else (None, mass * b)
        return *side, words + " on one side"
    return layout(rng, mass * a)[0], layout(rng, mass * b)[0], words


def draw_side(rng: Rng, n: int) -> tuple[Array, str]:
    """Draw n weights of total one."""
    how = pick(rng, {"even": 4, "uneven": 2, "zeros": 2, "single": 0.5, "tiny": 1.5})
    w = rng.dirichlet(np.full(n, 0.05 if how == "uneven" else 3.0)) if n > 1 else np.ones(1)
    if how == "zeros":
        w = np.where(rng.random(n) < rng.uniform(0.1, 0.9), 0.0, w)
    elif how == "single":
        w = np.zeros(n)
    elif how == "tiny":
        w = np.where(rng.random(n) < 0.4, 10 ** rng.uniform(-318, -10, n), w)
    if not w.sum() > 0.1:
        w[rng.integers(n)] = 1.0
    return w / w.sum(), how


# -- clouds and grids --------------------------------------------------------------------------


def walk(x: Array, Y: Array) -> Array:
    """Return the cube roots of the distances of one point to all others: a metric in Python."""
    return np.cbrt(np.abs(Y - x).sum(axis=1))


METRICS: dict[str, Callable[[Array, Array], Array]] = {
    "sqeuclidean": lambda X, Y: ((X[:, None] - Y[None]) ** 2).sum(axis=2),
    "euclidean": lambda X, Y: np.sqrt(((X[:, None] - Y[None]) ** 2).sum(axis=2)),
    "cityblock": lambda X, Y: np.abs(X[:, None] - Y[None]).sum(axis=2),
    "cosine": lambda X, Y: METRICS["sqeuclidean"](directions(X), directions(Y)) / 2,
    "callable": lambda X, Y: np.array([walk(x, Y) for x in X]),
}


def directions(X: Array) -> Array:
    """Return points divided by their lengths."""
    X = X / np.abs(X).max(axis=1, keepdims=True)
    return X / np.sqrt((X**2).sum(axis=1, keepdims=True))


def cloud(rng: Rng) -> Drawn:
    """Draw two clouds, stored, lazy or lazy with sweeps in float32."""
    n, m = draw_shape(rng)
    d = int(rng.choice([1, 2, 3, 10]))
    metric = pick(
        rng, {"sqeuclidean": 3, "euclidean": 2, "cityblock": 2, "cosine": 1, "callable": 1}
    )
    X, Y = rng.normal(size=(n, d)), rng.normal(size=(m, d)) + rng.choice([0.0, 1.0, 5.0])
    how = pick(rng, {"": 5, "shifted": 2, "scaled": 1.5, "lattice": 1})
    if how == "shifted":
        move = 10 ** rng.uniform(1, 7)
        X, Y, how = X + move, Y + move, f"shifted by {move:.0e}"
    elif how == "scaled":
        power = rng.uniform(-175, 175)
        X, Y, how = X * 10**power, Y * 10**power, f"times 1e{power:.0f}"
    elif how == "lattice":
        X, Y = np.rint(2 * X) + 9, np.rint(2 * Y) + 9
    a, b, masses = draw_weights(rng, n, m)
    kept = pick(rng, {"stored": 2, "lazy": 3, "lazy float32": 3})
    M: Any = epsilot.PointCloud(
        X, Y, walk if metric == "callable" else metric, single=kept == "lazy float32"
    )
    cost = M.block(0, n)
    label = f"{kept} {metric} {n} x {m} in {d}-d {how}, {masses}"
    return Drawn(
        epsilot.Dense(cost) if kept == "stored" else M,
        a,
        b,
        cost,
        f"{kept} cloud",
        " ".join(label.split()),
        is_stored=kept == "stored",
        is_at_the_edge="times" in how,
        cost_error=cost_error(cost, X, Y, metric),
    )


def cost_error(cost: Array, X: Array, Y: Array, metric: str) -> float:
    """Return how far costs are from those in extended precision, relative to the largest.

    Cosines are relative to one: they are what remains of it.
    """
    exact = METRICS[metric](np.longdouble(1) * X, np.longdouble(1) * Y)
    unit = np.longdouble(1) if metric == "cosine" else np.abs(exact).max()
    return float(np.abs(cost - exact).max() / unit) if unit > 0 else 0.0


def grid(rng: Rng) -> Drawn:
    """Draw masses on grids of one to three axes."""
    d = int(rng.integers(1, 4))
    most = {1: 60, 2: 10, 3: 5}[d]
    shapes = [tuple(int(k) for k in rng.integers(1, most, d)) for _ in range(2)]
    metric = str(rng.choice(["cityblock", "sqeuclidean"]))
    power = rng.uniform(-100, 100) if rng.random() < 0.15 else rng.uniform(-2, 2)
    spacing = [float(h) for h in 10**power * rng.uniform(0.5, 2, d)]
    centres = [np.indices(s).reshape(d, -1).T * np.longdouble(1) * spacing for s in shapes]
    cost = np.asarray(METRICS[metric](*centres), dtype=np.float64)
    a, b, masses = draw_weights(rng, *cost.shape)
    label = f"{metric} grid {shapes[0]} to {shapes[1]}, spacing 1e{power:.0f}, {masses}"
    M = epsilot.Grid(*shapes, metric, spacing)
    return Drawn(M, a, b, cost, "grid", label, is_stored=False)


def ordinary(rng: Rng) -> Drawn:
    """Draw a small problem without any malice: costs at most about one, mass one."""
    n, m = (int(k) for k in rng.integers(3, 25, 2))
    kind = pick(rng, {"dense": 6, "lazy cloud": 2, "grid": 1})
    M: Any
    if kind == "dense":
        family = str(rng.choice(["uniform", "squared", "distance"]))
        M = cost = COSTS[family](rng, n, m)
    elif kind == "lazy cloud":
        M = epsilot.PointCloud(rng.random((n, 2)), rng.random((m, 2)), "sqeuclidean")
        cost, family = M.block(0, n), "sqeuclidean"
    else:
        M, family = epsilot.Grid((n,), (m,), "cityblock", 1 / 25), "cityblock"
        cost = METRICS["cityblock"](
            M.spacing * np.arange(n)[:, None], M.spacing * np.arange(m)[:, None]
        )
    a, b = (rng.dirichlet(np.full(k, 3.0)) for k in (n, m))
    return Drawn(M, a, b, cost, kind, f"{kind} {family} {n} x {m}", is_stored=kind == "dense")


GEOMETRIES: dict[str, Callable[[Rng], Drawn]] = {"dense": dense, "cloud": cloud, "grid": grid}
