"""What a batch returns: arrays of certified numbers, and a result for each problem."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self, overload

import numpy as np
from numpy.typing import NDArray

from ..._types import Fields, Index, Matrix, Vector
from ...arguments import is_integer, plain
from ...errors import InvalidProblem
from ...files.saved import Arrays, Saved
from ...version import __version__
from ...wording import shown
from .. import storage
from ..request import Request
from ..result import Result, Status
from .chunks import ManyPotentials, Plans, result_of
from .problems import ProblemSource

_FORMAT = "epsilot-batch-1"
#: Every way a problem can end; arrays hold the place in this list.
STATUSES = tuple(Status)
CODES = {status: code for code, status in enumerate(STATUSES)}


class Pairing(NamedTuple):
    """Which entries of a matrix the problems are; a symmetric one has a diagonal of zeros."""

    shape: tuple[int, int]
    pairs: Index
    is_symmetric: bool


@dataclass(frozen=True, eq=False)
class BatchResult(Sequence[Result]):
    """The certified answers to many problems.

    ``value[k] - lower_bound[k] = gap[k]`` is proved for each problem k; refused problems hold NaN
    and have a sentence in ``errors``, those that a limit left out hold NaN. ``batch[k]`` is a
    :class:`Result`, computed again from the problem, which must not have changed.

    Attributes
    ----------
    value, lower_bound, marginal_error : (k,) arrays
        As in :class:`Result`.
    errors : dict
        Number of a refused problem to the sentence that says why.
    plans : Plans, optional
        ``plans[k]`` is a sparse matrix; ``plans.tosparse()`` is all of them, block-diagonal.
    potentials : sequence of (f, g), optional
        Dual feasible, in units of the costs.
    seconds : float
        Wall time.
    is_complete : bool
        Whether every problem was looked at, before a limit or Ctrl-C.

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> batch = epsilot.solve_batch(np.stack([np.eye(2), 3.0 + np.eye(2)]))
    >>> batch.value
    array([0., 3.])
    >>> batch[1].method
    'small_simplex'
    """

    value: Vector
    lower_bound: Vector
    marginal_error: Vector
    codes: NDArray[np.int8] = field(repr=False)
    errors: dict[int, str]
    eps: float | None
    rtol: float | None
    seconds: float
    is_complete: bool = True
    plans: Plans | None = field(default=None, repr=False)
    potentials: ManyPotentials | None = field(default=None, repr=False)
    pairing: Pairing | None = field(default=None, repr=False)
    digest: str | None = field(default=None, repr=False)  # of the problems
    source: ProblemSource | None = field(default=None, repr=False)

    @property
    def gap(self) -> Vector:
        """Certified distance of each value from the optimum."""
        return self.value - self.lower_bound

    @property
    def status(self) -> NDArray[np.object_]:
        """How each problem ended: an array of :class:`Status`."""
        table = np.empty(len(STATUSES), dtype=object)
        table[:] = STATUSES
        return np.asarray(table[self.codes])

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Whether each gap is within the target."""
        return np.asarray(self.codes == CODES[Status.CERTIFIED])

    def __len__(self) -> int:
        return self.value.size

    @overload
    def __getitem__(self, k: int) -> Result: ...
    @overload
    def __getitem__(self, k: slice) -> list[Result]: ...
    def __getitem__(self, k: int | slice) -> Result | list[Result]:
        if isinstance(k, slice):
            return [self[i] for i in range(len(self))[k]]
        k = plain(k)  # type: ignore[assignment]
        if not is_integer(k):
            raise InvalidProblem(f"the index is {shown(k)}; it must be the number of a problem.")
        k = range(len(self))[int(k)]
        if k in self.errors:
            raise InvalidProblem(f"problem {k} has no result: {self.errors[k]}")
        if self.source is None:
            raise InvalidProblem(
                f"problem {k} is not at hand; a batch read from a file has only its arrays (solve "
                "the problem again for its result)."
            )
        request = Request(eps=self.eps, rtol=self.rtol, on_limit="ignore")
        result = result_of(self.source.only(k), request)
        if not np.isnan(self.value[k]) and result.value != self.value[k]:
            raise InvalidProblem(
                f"problem {k} was changed since it was solved (its value is {result.value!r}, was "
                f"{self.value[k]!r}); keep costs and weights as they are (pass copies)."
            )
        return result

    def __repr__(self) -> str:
        n, n_done = len(self), int(self.converged.sum())
        worst = f", gaps up to {np.nanmax(self.gap):.3g}" if n_done else ""
        refused = f"; {len(self.errors)} refused" if self.errors else ""
        counts = f"{n_done} of {n} certified{worst}{refused}"
        return f"<epsilot.BatchResult: {counts}, {self.seconds:.3g} s>"

    def to_matrix(self, field: str = "value") -> Matrix:
        """Return the values (or another array) of pairs as a matrix, NaN where there is no pair.

        Parameters
        ----------
        field : {"value", "lower_bound", "gap", "marginal_error"}
            What to return.

        Examples
        --------
        >>> import numpy as np, epsilot
        >>> epsilot.pairwise(np.eye(2), [[0.0, 1.0], [1.0, 0.0]]).to_matrix()
        array([[0., 1.],
               [1., 0.]])
        """
        if field not in ("value", "lower_bound", "gap", "marginal_error"):
            raise InvalidProblem(
                f"field is {shown(field)}; it must be 'value', 'lower_bound', 'gap' or "
                "'marginal_error'."
            )
        if self.pairing is None:
            raise InvalidProblem(
                "these problems are no pairs; to_matrix is for the results of epsilot.pairwise "
                f"(use the array .{field})."
            )
        shape, pairs, is_symmetric = self.pairing
        out = np.full(shape, np.nan)
        out[pairs[:, 0], pairs[:, 1]] = getattr(self, field)
        if is_symmetric:
            out[pairs[:, 1], pairs[:, 0]] = getattr(self, field)
            np.fill_diagonal(out, 0.0)
        return out

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all arrays, atomically, as ``.npz``; the problems themselves are not saved.

        Examples
        --------
        >>> import numpy as np, epsilot
        >>> epsilot.solve_batch(np.eye(2), np.eye(2)).save("answers.npz")
        >>> epsilot.BatchResult.load("answers.npz").value
        array([0.5, 0.5])
        """
        header: dict[str, object] = {
            "size": len(self),
            "eps": self.eps,
            "rtol": self.rtol,
            "seconds": self.seconds,
            "is_complete": self.is_complete,
            "errors": {str(k): text for k, text in self.errors.items()},
            "digest": self.digest,
            "statuses": [status.name for status in STATUSES],
            "version": __version__,
        }
        arrays: Arrays = {
            "value": self.value,
            "lower_bound": self.lower_bound,
            "marginal_error": self.marginal_error,
            "codes": self.codes,
        }
        if self.pairing is not None:
            shape, arrays["pairs"], is_symmetric = self.pairing
            header |= {"shape": [*shape], "is_symmetric": is_symmetric}
        for name, block in (("plans", self.plans), ("potentials", self.potentials)):
            if block is not None:
                arrays |= {f"{name}.{key}": x for key, x in block.arrays().items()}
        storage.save(path, _FORMAT, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what :meth:`save` has written."""
        header, arrays = storage.load(path, _FORMAT, "write one with BatchResult.save")
        try:
            return cls(**_unpacked(header, Saved(arrays)))
        except (InvalidProblem, KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidProblem(f"{os.fspath(path)} cannot be read: {error}") from None


def _unpacked(header: Fields, saved: Saved) -> dict[str, Any]:
    """Return the fields of a saved batch, each of the kind it must be."""
    size = int(header["size"])
    numbers = {
        name: saved.array(name, (size,), np.float64)
        for name in ("value", "lower_bound", "marginal_error")
    }
    codes = saved.array("codes", (size,), np.int8)
    table = np.array([CODES[Status[name]] for name in header["statuses"]], np.int8)
    fields: dict[str, Any] = {
        **numbers,
        "codes": table[codes],
        "seconds": float(header["seconds"]),
        "errors": {int(k): str(text) for k, text in header["errors"].items()},
        "eps": _optional(header["eps"]),
        "rtol": _optional(header["rtol"]),
        "digest": header["digest"],
        "is_complete": bool(header["is_complete"]),
    }
    if "pairs" in saved:
        n, m = (int(x) for x in header["shape"])
        pairs = saved.indices("pairs", (size, 2), max(n, m))
        if (pairs >= np.array([n, m])).any():
            raise InvalidProblem("a pair points beyond the matrix; write the file again.")
        fields["pairing"] = Pairing((n, m), pairs, bool(header["is_symmetric"]))
    if "plans.starts" in saved:
        fields["plans"] = Plans.from_arrays(saved.under("plans"), size)
    if "potentials.f" in saved:
        fields["potentials"] = ManyPotentials.from_arrays(saved.under("potentials"), size)
    return fields


def _optional(x: float | None) -> float | None:
    return None if x is None else float(x)
