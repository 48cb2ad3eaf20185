r"""Gromov-Wasserstein for squared Euclidean costs, as concave minimisation over a small matrix.

For clouds centred with their weights, and Z = Σ P_ij x_i y_jᵀ,

.. math:: \sum (|x_i-x_k|^2 - |y_j-y_l|^2)^2 P_{ij} P_{kl} + \langle M, P\rangle
    = K + \langle M - 4 |x|^2 |y|^2, P\rangle - 8 |Z|^2.

Since |Z|² = max_A 2<A, Z> - |A|², the optimum is K + min_A 8|A|² - V(A), where
V(A) = max_P <4|x|²|y|² - M + 16 xᵀA y, P> is convex in A: the value of a transport problem.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from .. import memory
from .._types import Index, Matrix, Vector
from ..arguments import check_positive, cost_matrix
from ..errors import InvalidProblem
from ..geometry.coordinates import as_points
from ..kernels.simd8 import WIDTH
from ..kernels.small_simplex import is_small
from ..kernels.vectors import dot
from ..problems.problem import check_totals, side_weights

#: Singular values below this share of the largest belong to axes that hold nothing.
NEGLIGIBLE_AXIS = 1e-11
#: Rotations stop when columns are orthogonal to this precision, or after so many sweeps.
ORTHOGONAL, MAX_SWEEPS = 1e-15, 60
#: Range of the clouds' sizes whose fourth powers float64 holds.
SMALLEST_CLOUD, LARGEST_CLOUD = 1e-70, 1e70
#: Most coordinates of a point, and most numbers of a cross moment.
MAX_AXES, MAX_DIMENSION = 64, 64
#: Round-off of a bound, as a share of the numbers that are added up.
ROUND_OFF = 1e-13


@dataclass(frozen=True, eq=False)
class GromovProblem:
    """Two clouds with masses, centred, in principal axes and of ordinary size.

    The internal objective has masses of total 1; the user's is ``unit * mass`` times as large.
    Empty points are left out: point i of X is the user's point ``rows[i]``.
    """

    X: Matrix  # (n, dx)
    Y: Matrix  # (m, dy)
    p: Vector
    q: Vector
    M: Matrix  # (n, padded m) linear cost, or (0, 0)
    rows: Index
    cols: Index
    shape: tuple[int, int]  # of the user's plan
    axes: tuple[Matrix, Matrix]  # principal axes of the clouds as columns
    length: float  # the user's length of an internal length of 1
    unit: float
    mass: float

    @property
    def dimension(self) -> int:
        """Numbers of a cross moment."""
        return int(self.X.shape[1] * self.Y.shape[1])

    @cached_property
    def x2(self) -> Vector:
        """|x_i|²."""
        return _squares(self.X)

    @cached_property
    def y2(self) -> Vector:
        """|y_j|²."""
        return _squares(self.Y)

    @cached_property
    def W(self) -> Matrix:
        """The columns (|y_j|², y_j), padded with zeros."""
        m, dy = self.Y.shape
        W = np.zeros((1 + dy, -(-m // WIDTH) * WIDTH))
        W[0, :m], W[1:, :m] = self.y2, self.Y.T
        return W

    @cached_property
    def constant(self) -> float:
        """K."""
        (x4, mx, Sx), (y4, my, Sy) = _moments(self.X, self.p), _moments(self.Y, self.q)
        return 2 * x4 + 2 * mx**2 + 4 * Sx + 2 * y4 + 2 * my**2 + 4 * Sy - 4 * mx * my

    @cached_property
    def scale(self) -> float:
        """Size of the numbers whose difference is the objective."""
        return self.constant + (float(np.abs(self.M).max()) if self.M.size else 0.0)

    @cached_property
    def floor(self) -> float:
        """The least value that the form of the objective allows: a square, and the least of M."""
        m = self.q.size
        return float(self.M[:, :m].min()) if self.M.size else 0.0

    @cached_property
    def deviations(self) -> tuple[Vector, Vector]:
        """Standard deviations along the axes of both clouds, the largest first."""
        return tuple(
            np.array([math.sqrt(dot(w, z * z)) for z in _columns(Z)])
            for Z, w in ((self.X, self.p), (self.Y, self.q))
        )  # type: ignore[return-value]

    @property
    def radius(self) -> float:
        """Half the diagonal of a cross-polytope around all cross moments, and well beyond.

        |Z|₁ <= √(D k) s_x s_y with k = min(dx, dy), which is at most half of it. The factor makes
        8|A|² close the outer faces, where no points are wanted.
        """
        if not self.dimension:
            return 0.0
        sx, sy = (float(s[0]) for s in self.deviations)
        return 2 * self.dimension * sx * sy

    @cached_property
    def is_matching(self) -> bool:
        """Whether all masses are equal, so that the vertices of the plans are permutations."""
        p, q = self.p, self.q
        return p.size == q.size and bool((p == p[0]).all() and (q == p[0]).all())

    @property
    def is_tree(self) -> bool:
        """Whether the compiled simplex on all arcs holds the problem."""
        return not self.is_matching and is_small(self.p.size, self.q.size)

    def digest(self) -> str:
        """Return a hash of the clouds, masses and linear cost."""
        h = hashlib.sha256(repr((self.shape, self.unit, self.mass)).encode())
        for x in (self.X, self.Y, self.p, self.q, self.M, self.rows, self.cols):
            h.update(f"{x.shape}".encode() + np.ascontiguousarray(x).tobytes())
        return h.hexdigest()[:16]

    def box(self) -> tuple[Vector, Vector]:
        """Return the least and the greatest Z_ij over all plans: both coordinates are sorted."""
        low, high = np.empty((2, self.X.shape[1], self.Y.shape[1]))
        for i, x in enumerate(_columns(self.X)):
            for j, y in enumerate(_columns(self.Y)):
                high[i, j] = _comonotone(x, y, self.p, self.q)
                low[i, j] = -_comonotone(-x, y, self.p, self.q)
        padding = 1e-9 * np.maximum(high - low, 1e-300)
        return (low - padding).ravel(), (high + padding).ravel()

    def to_user_moment(self, Z: Vector) -> Matrix:
        """Return a cross moment in the user's axes and units."""
        ax, ay = self.axes
        Z = Z.reshape(ax.shape[1], ay.shape[1])
        turned = np.zeros((ax.shape[0], ay.shape[0]))
        for i in range(Z.shape[0]):
            for j in range(Z.shape[1]):
                turned += Z[i, j] * np.multiply.outer(ax[:, i], ay[:, j])
        return self.mass * self.length**2 * turned


def make_gromov_problem(
    X: ArrayLike,
    Y: ArrayLike,
    a: ArrayLike | None,
    b: ArrayLike | None,
    M: ArrayLike | None,
    alpha: float | None,
) -> GromovProblem:
    """Validate clouds, weights and the linear cost, or raise InvalidProblem."""
    X, Y = as_points(X, "X"), as_points(Y, "Y")
    n, m = len(X), len(Y)
    for name, Z in (("X", X), ("Y", Y)):
        if Z.shape[1] > MAX_AXES:
            raise InvalidProblem(
                f"{name} has {Z.shape[1]} coordinates per point; the bounds are searched for in "
                f"few dimensions, at most {MAX_AXES} (project the cloud to its principal axes, or "
                "use gromov_bounds)."
            )
    (p, total), (q, other) = side_weights(a, "a", n, m), side_weights(b, "b", m, n)
    check_totals(a, b, total, other, "divide each by its sum")
    mass = other if a is None else total
    share = 1.0 if alpha is None else check_positive("alpha", alpha)
    if share > 1:
        raise InvalidProblem(
            f"alpha is {alpha}; it must be a number in (0, 1], the weight of Gromov-Wasserstein."
        )
    if alpha is not None and M is None and share < 1:
        raise InvalidProblem(
            f"alpha is {alpha} and M is missing; alpha weighs Gromov-Wasserstein against the "
            "linear cost M (pass M, or leave alpha out)."
        )
    rows, cols = np.flatnonzero(p > 0), np.flatnonzero(q > 0)
    p, q = p[rows] / p.sum(), q[cols] / q.sum()
    (X, ax), (Y, ay) = principal(centred(X[rows], p), p), principal(centred(Y[cols], q), q)
    size = math.sqrt(max(dot(p, _squares(X)), dot(q, _squares(Y))))
    if size > 0 and not SMALLEST_CLOUD < size < LARGEST_CLOUD:
        raise InvalidProblem(
            f"the clouds have a radius of {size:.3g}; its fourth power must fit float64 (rescale "
            f"the points to between {SMALLEST_CLOUD:g} and {LARGEST_CLOUD:g})."
        )
    length = math.ldexp(1.0, math.frexp(size)[1]) if size > 0 else 1.0
    unit = share * mass * length**4
    linear = np.zeros((0, 0))
    if M is not None:
        factor = 1.0 if alpha is None else 1 - share
        linear = _linear_cost(M, (n, m), rows, cols) * (factor / unit)
        if not np.isfinite(linear).all():
            raise InvalidProblem(
                "M is too large beside the clouds for float64; divide it by its largest entry, or "
                "leave it out."
            )
    problem = GromovProblem(
        X=X / length,
        Y=Y / length,
        p=p,
        q=q,
        M=linear,
        rows=rows,
        cols=cols,
        shape=(n, m),
        axes=(ax, ay),
        length=length,
        unit=unit,
        mass=mass,
    )
    if problem.dimension > MAX_DIMENSION:
        dx, dy = problem.X.shape[1], problem.Y.shape[1]
        raise InvalidProblem(
            f"X and Y span {dx} and {dy} dimensions, a search in {dx * dy}; copies of a cloud "
            "close up to 3 x 3 dimensions, and unrelated clouds take minutes there (project both "
            "to their principal axes, or use gromov_bounds)."
        )
    return problem


def _linear_cost(M: ArrayLike, shape: tuple[int, int], rows: Index, cols: Index) -> Matrix:
    """Return the linear cost of points with mass, padded with zeros."""
    C = cost_matrix(M)
    if C.shape != shape:
        raise InvalidProblem(f"M has shape {C.shape}; it must be {shape}, X's points by Y's.")
    if not np.isfinite(C).all():
        i, j = np.argwhere(~np.isfinite(C))[0]
        raise InvalidProblem(
            f"M[{i}, {j}] is {C[i, j]}; the linear cost must be finite (use a large number)."
        )
    m = -(-cols.size // WIDTH) * WIDTH
    memory.ask(8 * rows.size * m, f"a linear cost of {rows.size:,} x {m:,}", "use fewer points")
    padded = np.zeros((rows.size, m))
    padded[:, : cols.size] = C[np.ix_(rows, cols)]
    return padded


# -- clouds ----------------------------------------------------------------------------------------


def _columns(X: Matrix) -> list[Vector]:
    """Return the columns as contiguous vectors."""
    return [np.ascontiguousarray(x) for x in X.T]


def _squares(X: Matrix) -> Vector:
    """Return |x_i|², added in the order of the axes."""
    total = np.zeros(len(X))
    for x in _columns(X):
        total += x * x
    return total


def _moments(X: Matrix, p: Vector) -> tuple[float, float, float]:
    """Return E|x|⁴, E|x|² and |E x xᵀ|²."""
    x2, columns = _squares(X), _columns(X)
    square = sum(dot(p, x * z) ** 2 for x in columns for z in columns)
    return dot(p, x2 * x2), dot(p, x2), float(square)


def centred(X: Matrix, p: Vector) -> Matrix:
    """Return points with the mean 0; the second pass removes the rounding of the first."""
    for _ in range(2):
        X = X - np.array([dot(p, x) for x in _columns(X)])
    return X


def principal(X: Matrix, p: Vector) -> tuple[Matrix, Matrix]:
    """Return centred points in principal axes that hold something, and these axes as columns.

    One-sided Jacobi rotations find small axes as accurately as large ones.
    """
    d = X.shape[1]
    largest = float(np.abs(X).max())
    if largest == 0:
        return np.zeros((len(X), 0)), np.zeros((d, 0))
    root = np.sqrt(p) / largest
    columns, axes = [x * root for x in _columns(X)], list(np.eye(d))
    for _ in range(MAX_SWEEPS):
        has_turned = False
        for i in range(d):
            for j in range(i + 1, d):
                x, z = columns[i], columns[j]
                xx, zz, xz = dot(x, x), dot(z, z), dot(x, z)
                if abs(xz) <= ORTHOGONAL * math.sqrt(xx * zz) or xz * xz == 0:
                    continue
                has_turned = True
                slope = (zz - xx) / (2 * xz)
                t = math.copysign(1.0, slope) / (abs(slope) + math.sqrt(1 + slope * slope))
                c = 1 / math.sqrt(1 + t * t)
                s = c * t
                columns[i], columns[j] = c * x - s * z, s * x + c * z
                axes[i], axes[j] = c * axes[i] - s * axes[j], s * axes[i] + c * axes[j]
        if not has_turned:
            break
    sizes = np.array([math.sqrt(dot(x, x)) for x in columns])
    order = np.argsort(-sizes, kind="stable")
    kept = order[sizes[order] > NEGLIGIBLE_AXIS * sizes[order[0]]]
    V = np.stack([axes[k] for k in kept], axis=1)
    turned = np.zeros((len(X), kept.size))
    for k in range(kept.size):
        for axis, x in enumerate(_columns(X)):
            turned[:, k] += V[axis, k] * x
    return turned, V


def _comonotone(x: Vector, y: Vector, p: Vector, q: Vector) -> float:
    """Return the greatest Σ P_ij x_i y_j over plans, whose masses are sorted alike."""
    i, j = np.argsort(x, kind="stable"), np.argsort(y, kind="stable")
    ends_x, ends_y = np.cumsum(p[i]), np.cumsum(q[j])
    ends = np.unique(np.concatenate([ends_x[:-1], ends_y[:-1], [1.0]]))
    starts = np.concatenate([[0.0], ends[:-1]])
    middle = (starts + ends) / 2
    at_x = np.minimum(np.searchsorted(ends_x, middle), p.size - 1)
    at_y = np.minimum(np.searchsorted(ends_y, middle), q.size - 1)
    return dot(ends - starts, x[i][at_x] * y[j][at_y])
