"""Convert arguments of POT's functions to NumPy, and results back."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from ot.backend import get_backend
from ot.utils import check_number_threads, list_to_array

from .._types import Array, Matrix, Potentials, Vector
from ._modules import leave_if
from ._tuning import TUNING


@dataclass(slots=True)
class Arguments:
    """The arguments of one problem: the caller's arrays, and weights as float64 of NumPy.

    ``b`` is scaled to the total of ``a``, as POT does.
    """

    nx: Any  # POT's backend
    like: Any  # the array whose type and device results have
    given: tuple[Any, Any, Any]  # a, b and M of the caller; uniform weights are made
    a: Vector
    b: Array  # (m,) or (m, k)
    is_sparse: bool
    shape: tuple[int, int]

    @property
    def is_numpy(self) -> bool:
        """Whether the caller's arrays are those of NumPy, which have no gradients."""
        return bool(self.nx.__name__ == "numpy")

    @property
    def M(self) -> Matrix:
        """The dense cost as float64 of NumPy."""
        return np.ascontiguousarray(self.nx.to_numpy(self.given[2]), np.float64)

    def back(self, x: Any) -> Any:
        """Return an array, or a number, in the caller's type."""
        return self.nx.from_numpy(x, type_as=self.like)

    def number(self, x: float) -> Any:
        """Return a sum in the caller's type and precision, which ``back`` of a float is not."""
        return self.back(np.asarray(x))[()]

    def warn_of_integers(self) -> None:
        """Warn, as POT does, where plans are cast to integers."""
        if not self.nx.is_floating_point(self.like):
            warnings.warn(
                "the weights are integers; the plan is cast to integers as POT does, and loses "
                "precision (pass weights of floating point).",
                stacklevel=4,
            )


def as_arrays(*values: Any) -> list[Any]:
    """Convert lists to arrays of the others' type; None stays."""
    given = [x for x in values if x is not None]
    made = iter(list_to_array(*given, given[0]))  # POT returns a list for two or more
    return [None if x is None else next(made) for x in values]


def read(
    a: Any,
    b: Any,
    M: Any,
    *,
    check_marginals: bool = True,
    like_cost: bool = False,
    rescale: bool = True,
) -> Arguments:
    """Return the arguments of a problem; empty weights, or None, are uniform.

    Results have the type of the weights, or with ``like_cost`` that of M. ``rescale`` scales b to
    the total of a.
    """
    a, b, M = as_arrays(a, b, M)
    nx = get_backend(a, b, M)
    n, m = M.shape
    like = M if a is None or like_cost else a
    given = _arguments(nx, a, b, M, like, (n, m), check_marginals=check_marginals)
    if like_cost:
        given.like = M
    if not rescale:
        given.b = np.asarray(nx.to_numpy(given.given[1]), np.float64)
    return given


def has_gradients(given: Arguments) -> bool:
    """Tell whether the caller differentiates through an argument."""
    if given.is_numpy:
        return False
    if given.nx.__name__ == "jax":
        from jax.core import Tracer

        return any(isinstance(x, Tracer) for x in given.given)
    return any(getattr(x, "requires_grad", False) for x in given.given)


def is_differentiated(x: Any) -> bool:
    """Tell whether the caller differentiates through a number or an array."""
    return bool(getattr(x, "requires_grad", False))


def leave_gradients(given: Arguments, *others: Any) -> None:
    """Leave to POT what the caller differentiates through POT's own operations."""
    is_asked = has_gradients(given) or any(map(is_differentiated, others))
    leave_if(is_asked, "gradients are those of POT's own operations")


def leave_iterations(max_iter: float, tolerance: float) -> None:
    """Leave to POT a number of its iterations; small numbers of them are no solution."""
    is_asked = max_iter < TUNING.few_iterations or tolerance <= 0
    leave_if(
        is_asked, f"fewer than {TUNING.few_iterations} iterations, or a tolerance of 0, were asked"
    )


def leave_non_entropic(
    given: Arguments, reg: Any, max_iter: float, tolerance: float, *others: Any
) -> None:
    """Leave to POT entropic calls that ask for more than the solution of a dense problem."""
    leave_gradients(given, reg, *others)
    leave_iterations(max_iter, tolerance)
    leave_if(given.is_sparse, "the costs are sparse")
    leave_if(not float(reg) > 0, "reg is not positive")


def read_points(
    a: Any, b: Any, X_a: Any, X_b: Any, *, check_marginals: bool = True
) -> tuple[Arguments, Matrix, Matrix]:
    """Return the arguments of a problem between points, and the points."""
    a, b, X_a, X_b = as_arrays(a, b, X_a, X_b)
    nx = get_backend(a, b, X_a, X_b)
    x, y = (np.asarray(nx.to_numpy(X), np.float64) for X in (X_a, X_b))
    shape = x.shape[0], y.shape[0]
    given = _arguments(nx, a, b, None, X_a, shape, check_marginals=check_marginals)
    return given, x, y


def _arguments(
    nx: Any, a: Any, b: Any, M: Any, like: Any, shape: tuple[int, int], *, check_marginals: bool
) -> Arguments:
    """Return arguments with weights of equal totals; ``like`` is what uniform weights are like."""
    n, m = shape
    has_a, has_b = (w is not None and w.ndim > 0 and len(w) != 0 for w in (a, b))
    like = a if has_a else b if has_b else like
    a = a if has_a else nx.ones((n,), type_as=like) / n
    b = b if has_b else nx.ones((m,), type_as=like) / m
    p, q = (np.asarray(nx.to_numpy(w), np.float64) for w in (a, b))
    assert p.shape[0] == n and q.shape[0] == m, (  # noqa: PT018
        f"a, b and M have shapes {p.shape}, {q.shape} and {shape}; M needs a row for each entry "
        "of a and a column for each entry of b."
    )
    total, totals = p.sum(), q.sum(0)
    if check_marginals and not (abs(total - totals) < TUNING.max_totals_difference).all():
        np.testing.assert_almost_equal(
            np.broadcast_to(total, totals.shape),
            totals,
            err_msg="a and b vector must have the same sum",
            decimal=6,
        )
    is_sparse = M is not None and bool(nx.issparse(M))
    return Arguments(nx, like, (a, b, M), p, q * (total / totals), is_sparse, shape)


def warn_of_threads(n_threads: Any) -> None:
    """Check POT's argument ``numThreads``, and warn that it has no effect."""
    if type(n_threads) is int and n_threads == 1:
        return
    if check_number_threads(n_threads) != 1:
        warnings.warn(
            "numThreads is deprecated and ignored, as in POT; results do not depend on threads.",
            DeprecationWarning,
            stacklevel=4,
        )


def centred(u: Vector, v: Vector, a: Vector, b: Vector) -> Potentials:
    """Return potentials with equal means under the weights, which is how POT centres them."""
    shift = (np.vdot(b, v) - np.vdot(a, u)) / (a.sum() + b.sum())
    return u + shift, v - shift
