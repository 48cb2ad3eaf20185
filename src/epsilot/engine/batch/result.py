"""The answers to a batch: arrays of certified numbers, and a full result for each problem."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from ..._types import Array, Fields, Index, Matrix, Potentials, Vector
from ...arguments import is_integer, plain
from ...display.text import compile_note
from ...errors import CertificateError, InvalidProblem
from ...files.arrays import Arrays, SavedArrays
from ...problems.objective import Objective
from ...problems.plan import Arcs, Plan
from ...problems.work import Record, Status, Work
from ...version import __version__
from ...wording import shown
from .. import storage
from ..goal import make_goal
from ..request import Request
from ..result import Result
from .problems import ProblemSource, places

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FORMAT = "epsilot-batch-1"
#: Every status a problem can have; arrays hold the place in this list.
STATUSES = tuple(Status)
CODES = {status: code for code, status in enumerate(STATUSES)}
#: Largest index that a saved array may hold.
MAX_SAVED_INDEX = 2**62


def _joined(parts: Iterable[Array], dtype: DTypeLike) -> Array:
    return np.concatenate([np.zeros(0, dtype), *parts])


@dataclass(frozen=True)
class Plans(Sequence[sparse.csr_array]):
    """The plans of a batch as sparse matrices: ``plans[k]`` is a SciPy CSR array.

    Plan k has the entries ``flow`` at (``i``, ``j``) from ``starts[k]`` to ``starts[k + 1]``.
    """

    shapes: Index
    starts: Index
    i: Index
    j: Index
    flow: Vector

    def __len__(self) -> int:
        return len(self.shapes)

    @overload
    def __getitem__(self, k: int) -> sparse.csr_array: ...
    @overload
    def __getitem__(self, k: slice) -> list[sparse.csr_array]: ...
    def __getitem__(self, k: int | slice) -> sparse.csr_array | list[sparse.csr_array]:
        if isinstance(k, slice):
            return [self[i] for i in range(len(self))[k]]
        arcs = self.arcs(range(len(self))[k])
        return sparse.csr_array((arcs.flow, (arcs.i, arcs.j)), shape=arcs.shape)

    def arcs(self, k: int) -> Arcs:
        """Return plan k as a list of arcs."""
        own = slice(self.starts[k], self.starts[k + 1])
        n, m = map(int, self.shapes[k])
        return Arcs((n, m), self.i[own], self.j[own], self.flow[own])

    def tosparse(self) -> sparse.csr_array:
        """Return all plans as the blocks of one block-diagonal CSR array."""
        at = [np.repeat(places(self.shapes[:, c])[:-1], np.diff(self.starts)) for c in (0, 1)]
        shape = tuple(map(int, self.shapes.sum(axis=0)))
        return sparse.csr_array((self.flow, (self.i + at[0], self.j + at[1])), shape=shape)

    @classmethod
    def of(cls, plan: Plan) -> Self:
        """Return a batch of one plan."""
        found = sparse.coo_array(plan.tosparse())
        i, j = (np.asarray(x, np.int64) for x in found.coords)
        return cls(np.array([found.shape], np.int64), places(np.array([i.size])), i, j, found.data)

    @classmethod
    def empty(cls, size: int) -> Self:
        """Return plans without entries, for problems that have no answer."""
        starts = np.zeros(size + 1, np.int64)
        return cls(np.zeros((size, 2), np.int64), starts, starts[:0], starts[:0], np.zeros(0))

    def between(self, start: int, stop: int) -> Plans:
        """Return the plans ``start`` to ``stop``."""
        starts = self.starts[start : stop + 1]
        own = slice(starts[0], starts[-1])
        shapes = self.shapes[start:stop]
        return Plans(shapes, starts - starts[0], self.i[own], self.j[own], self.flow[own])

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the plans of several batches, one after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([np.zeros((0, 2), np.int64), *(x.shapes for x in parts)]),
            places(_joined((np.diff(x.starts) for x in parts), np.int64)),
            _joined((x.i for x in parts), np.int64),
            _joined((x.j for x in parts), np.int64),
            _joined((x.flow for x in parts), np.float64),
        )

    def arrays(self) -> Arrays:
        """Return the arrays that a file stores."""
        return {
            "shapes": self.shapes,
            "starts": self.starts,
            "i": self.i,
            "j": self.j,
            "flow": self.flow,
        }

    @classmethod
    def from_arrays(cls, saved: SavedArrays, size: int) -> Self:
        """Read the plans of ``size`` problems from an untrusted file."""
        shapes = saved.indices("shapes", (size, 2), MAX_SAVED_INDEX)
        starts = _saved_starts(saved, "starts", size)
        n = (int(starts[-1]),)
        i, j = (saved.indices(name, n, MAX_SAVED_INDEX) for name in ("i", "j"))
        ends = np.repeat(shapes, np.diff(starts), axis=0)
        if (i >= ends[:, 0]).any() or (j >= ends[:, 1]).any():
            raise InvalidProblem("a saved plan points beyond its matrix; write the file again.")
        return cls(shapes, starts, i, j, saved.masses("flow", n))


@dataclass(frozen=True)
class ManyPotentials(Sequence[Potentials]):
    """The potentials of a batch: ``potentials[k]`` is the pair (f, g) of problem k."""

    f_starts: Index
    f: Vector
    g_starts: Index
    g: Vector

    def __len__(self) -> int:
        return self.f_starts.size - 1

    @overload
    def __getitem__(self, k: int) -> Potentials: ...
    @overload
    def __getitem__(self, k: slice) -> list[Potentials]: ...
    def __getitem__(self, k: int | slice) -> Potentials | list[Potentials]:
        if isinstance(k, slice):
            return [self[i] for i in range(len(self))[k]]
        k = range(len(self))[k]
        f = self.f[self.f_starts[k] : self.f_starts[k + 1]]
        return f, self.g[self.g_starts[k] : self.g_starts[k + 1]]

    @classmethod
    def of(cls, potentials: Potentials) -> Self:
        """Return a batch of one pair of potentials."""
        f, g = potentials
        return cls(places(np.array([f.size])), f, places(np.array([g.size])), g)

    @classmethod
    def empty(cls, size: int) -> Self:
        """Return empty potentials, for problems that have no answer."""
        starts = np.zeros(size + 1, np.int64)
        return cls(starts, np.zeros(0), starts, np.zeros(0))

    def between(self, start: int, stop: int) -> ManyPotentials:
        """Return the potentials of problems ``start`` to ``stop``."""
        f_starts, g_starts = self.f_starts[start : stop + 1], self.g_starts[start : stop + 1]
        f, g = self.f[f_starts[0] : f_starts[-1]], self.g[g_starts[0] : g_starts[-1]]
        return ManyPotentials(f_starts - f_starts[0], f, g_starts - g_starts[0], g)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the potentials of several batches, one after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            places(_joined((np.diff(x.f_starts) for x in parts), np.int64)),
            _joined((x.f for x in parts), np.float64),
            places(_joined((np.diff(x.g_starts) for x in parts), np.int64)),
            _joined((x.g for x in parts), np.float64),
        )

    def arrays(self) -> Arrays:
        """Return the arrays that a file stores."""
        return {"f_starts": self.f_starts, "f": self.f, "g_starts": self.g_starts, "g": self.g}

    @classmethod
    def from_arrays(cls, saved: SavedArrays, size: int) -> Self:
        """Read the potentials of ``size`` problems from an untrusted file."""
        f_starts, g_starts = (_saved_starts(saved, name, size) for name in ("f_starts", "g_starts"))
        f, g = (
            saved.array(name, (int(starts[-1]),), np.dtype(np.float64))
            for name, starts in (("f", f_starts), ("g", g_starts))
        )
        return cls(f_starts, f, g_starts, g)


def _saved_starts(saved: SavedArrays, name: str, size: int) -> Index:
    """Read where the entries of each problem begin, from an untrusted file."""
    starts = saved.indices(name, (size + 1,), MAX_SAVED_INDEX)
    if starts[0] != 0 or (np.diff(starts) < 0).any():
        raise InvalidProblem(f"the saved array {name} does not ascend from 0; write it again.")
    return starts


#: The fields of a result other than its arrays and its problem, as a batch keeps them.
RunFields = dict[str, Any]


def run_fields(result: Result) -> RunFields:
    """Return the fields of a result that a batch keeps in no array."""
    stored = ("plan_operator", "potentials", "problem")
    return {f.name: getattr(result, f.name) for f in fields(result) if f.name not in stored}


def _compiled_fields(
    objective: Objective, request: Request, value: float, lower: float, error: float, seconds: float
) -> RunFields:
    """Return the same fields for a problem that the compiled solver took."""
    problem = objective.problem
    user_unit, (n, m) = problem.mass * problem.unit, problem.shape
    work = Work.of(pivot=n * m)
    record = Record(
        n_iter=1,
        operations=work.operations,
        seconds=seconds,
        upper=value,
        lower=lower,
        gap=value - lower,
        marginal_error=error,
        reg=0.0,
    )
    return {
        "value": value,
        "value_linear": value,
        "lower_bound": lower,
        "marginal_error": error,
        "converged": True,
        "status": Status.CERTIFIED,
        "method": "small_simplex",
        "reg": 0.0,
        "seed": request.seed,
        "options": {},
        "version": __version__,
        "n_iter": 1,
        "work": work,
        "seconds": seconds,
        "history": [record],
        "target": user_unit
        * make_goal(objective, request).allowed(lower / user_unit - objective.shift),
        "is_entropic": False,
        "choice": "small_simplex: one of many small problems",
        "quantity": objective.quantity,
        "slopes": objective.slopes,
        "asked": request.written(),
    }


def asked_of(request: Request) -> dict[str, str]:
    """Return the keywords that an answer depends on, as they are written in Python."""
    return {name: text for name, text in request.written().items() if name != "max_seconds"}


#: The plan, the potentials and the other fields of the result of one problem.
Answer: TypeAlias = tuple[Arcs, Potentials, RunFields | None]


class Pairing(NamedTuple):
    """The entries of a matrix that the problems are.

    A symmetric matrix has each problem twice. With ``has_zero_diagonal`` its diagonal is zero.
    """

    shape: tuple[int, int]
    pairs: Index
    is_symmetric: bool
    has_zero_diagonal: bool


@dataclass(frozen=True, eq=False)
class BatchResult(Sequence[Result]):
    """The certified answers to many problems.

    ``value[k] - lower_bound[k] = gap[k]`` is proved for each problem k. Refused problems hold NaN
    and have a sentence in ``errors``. Problems that a limit left out hold NaN.

    ``batch[k]`` is the :class:`Result` of problem k. With ``plans=True, potentials=True`` it is
    made from the arrays of the batch. Otherwise problem k is solved again for its plan and
    potentials, to the same bits.

    Attributes
    ----------
    value, lower_bound, gap, marginal_error : (k,) arrays
        As in :class:`Result`.
    converged, status : (k,) arrays
        Whether each gap is at most its target; a :class:`Status` each.
    eps, rtol : float or None
        The accuracy that was asked for.
    errors : dict
        For each refused problem, a sentence that says why.
    plans : Plans, optional
        ``plans[k]`` is a sparse matrix; ``plans.tosparse()`` is all of them, block-diagonal.
    potentials : sequence of (f, g), optional
        The dual potentials, in units of the costs.
    seconds, compile_seconds : float
        Wall time; time to compile kernels during the call, which is not part of it.
    keywords : dict
        The keywords of the call, as they are written in Python.
    is_complete : bool
        Whether every problem was treated before a limit or Ctrl-C.

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> M = np.stack([np.eye(2), 3.0 + np.eye(2)])
    >>> batch = epsilot.solve_batch(M, plans=True, potentials=True)
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
    compile_seconds: float = 0.0  # of kernels, during the call; not part of ``seconds``
    plans: Plans | None = field(default=None, repr=False)
    potentials: ManyPotentials | None = field(default=None, repr=False)
    pairing: Pairing | None = field(default=None, repr=False)
    digest: str | None = field(default=None, repr=False)  # of the problems
    saved_keywords: dict[str, str] = field(default_factory=dict, repr=False)  # of a file
    #: The rest is known only in the process that solved the batch.
    source: ProblemSource | None = field(default=None, repr=False)
    request: Request | None = field(default=None, repr=False)
    first_solved: int = field(default=0, repr=False)  # problems before it came from a file
    runs: Mapping[int, RunFields] = field(default_factory=dict, repr=False)
    #: Solves a problem again, for an answer that was not kept.
    solve_again: Callable[[int], Answer] | None = field(default=None, repr=False)

    @property
    def gap(self) -> Vector:
        """Certified distance of each value from the optimum."""
        return self.value - self.lower_bound

    @property
    def status(self) -> NDArray[np.object_]:
        """The :class:`Status` of each problem, as an array."""
        table = np.empty(len(STATUSES), dtype=object)
        table[:] = STATUSES
        return np.asarray(table[self.codes])

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Whether each gap is within the target."""
        return np.asarray(self.codes == CODES[Status.CERTIFIED])

    @property
    def keywords(self) -> dict[str, str]:
        """The keywords that the answers depend on, as they are written in Python."""
        return self.saved_keywords if self.request is None else asked_of(self.request)

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
        if np.isnan(self.value[k]):
            raise InvalidProblem(
                f"problem {k} has no result, since the batch stopped before it ({self.status[k]})."
            )
        return self._stored(k)

    def _stored(self, k: int) -> Result:
        """Make the result of problem k, and check that it fits the problem."""
        if self.source is None or self.request is None or self.solve_again is None:
            raise InvalidProblem(
                f"the answer to problem {k} was read from a file, which holds arrays only; use "
                f".plans[{k}] and .potentials[{k}], or solve this problem alone."
            )
        chunk, request = self.source.only(k), self.request
        if self.plans is None or self.potentials is None or k < self.first_solved:
            stored, potentials, run = self.solve_again(k)
        else:
            stored, potentials, run = self.plans.arcs(k), self.potentials[k], self.runs.get(k)
        given = request.problem(*chunk.given(0), normalize=chunk.normalize)
        objective = request.kind.objective(given, request.reg)
        value, lower, error = (
            float(x[k]) for x in (self.value, self.lower_bound, self.marginal_error)
        )
        if not _has_value(objective, stored, value):
            raise InvalidProblem(
                f"problem {k} was changed after it was solved: the stored plan does not have the "
                f"value {value!r} any more; keep costs and weights as they are (pass copies)."
            )
        about = run or _compiled_fields(
            objective, request, value, lower, error, self.seconds / len(self)
        )
        return Result(
            plan_operator=Plan(stored),
            potentials=potentials,
            problem=objective.problem,
            **about,
        )

    def __repr__(self) -> str:
        n, n_done = len(self), int(self.converged.sum())
        worst = f", gaps up to {np.nanmax(self.gap):.3g}" if n_done else ""
        refused = f"; {len(self.errors)} refused" if self.errors else ""
        counts = f"{n_done} of {n} certified{worst}{refused}"
        note = compile_note(self.compile_seconds)
        return f"<epsilot.BatchResult: {counts}, {self.seconds:.3g} s{note}>"

    def _repr_html_(self) -> str:
        """Return counts, the largest gap and a picture of the values for a notebook."""
        from ...display.notebook import batch_card

        seconds = f"{self.seconds:.3g} s{compile_note(self.compile_seconds)}"
        matrix = None if self.pairing is None else self.to_matrix()
        return batch_card(self.value, self.gap, self.converged, len(self.errors), seconds, matrix)

    def plot(self) -> Figure:
        """Draw the values of pairs as a matrix, or histograms of values and gaps.

        Examples
        --------
        >>> import numpy as np, epsilot
        >>> figure = epsilot.solve_batch(np.random.default_rng(0).random((20, 5, 5))).plot()
        """
        from ...display.plotting import plot_matrix, plot_values

        if self.pairing is None:
            return plot_values(self.value, self.gap)
        return plot_matrix(self.to_matrix())

    def to_matrix(self, field: str = "value") -> Matrix:
        """Return the values (or another array) of pairs as a matrix, NaN for pairs not solved.

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
        shape, pairs, is_symmetric, has_zero_diagonal = self.pairing
        out = np.full(shape, np.nan)
        out[pairs[:, 0], pairs[:, 1]] = getattr(self, field)
        if is_symmetric:
            out[pairs[:, 1], pairs[:, 0]] = getattr(self, field)
        if has_zero_diagonal:
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
            "asked": self.keywords,
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
            shape, arrays["pairs"], is_symmetric, has_zeros = self.pairing
            header |= {"shape": [*shape], "is_symmetric": is_symmetric}
            header["has_zero_diagonal"] = has_zeros
        for name, block in (("plans", self.plans), ("potentials", self.potentials)):
            if block is not None:
                arrays |= {f"{name}.{key}": x for key, x in block.arrays().items()}
        storage.save(path, _FORMAT, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what :meth:`save` has written."""
        header, arrays = storage.load(path, _FORMAT, "write one with BatchResult.save")
        try:
            return cls(**_unpacked(header, SavedArrays(arrays)))
        except (InvalidProblem, KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidProblem(f"{os.fspath(path)} cannot be read: {error}") from None


def _has_value(objective: Objective, stored: Arcs, value: float) -> bool:
    """Tell whether a stored plan is feasible for a problem and has the stored value."""
    problem = objective.problem
    if stored.shape != problem.shape:
        return False
    try:
        upper, _ = objective.prove_plan(Plan(replace(stored, flow=stored.flow / problem.mass)))
    except CertificateError:
        return False
    size = max(abs(value), problem.mass * problem.unit * objective.optimum_scale)
    return abs(objective.to_user(upper) - value) <= 1e-9 * size  # round-off


def _unpacked(header: Fields, saved: SavedArrays) -> dict[str, Any]:
    """Return the fields of a saved batch, each checked."""
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
        "saved_keywords": _keywords(header),
        "is_complete": bool(header["is_complete"]),
    }
    if "pairs" in saved:
        n, m = (int(x) for x in header["shape"])
        pairs = saved.indices("pairs", (size, 2), max(n, m))
        if (pairs >= np.array([n, m])).any():
            raise InvalidProblem("a pair points beyond the matrix; write the file again.")
        is_symmetric = bool(header["is_symmetric"])
        has_zeros = bool(header.get("has_zero_diagonal", is_symmetric))  # absent before 0.2
        fields["pairing"] = Pairing((n, m), pairs, is_symmetric, has_zeros)
    if "plans.starts" in saved:
        fields["plans"] = Plans.from_arrays(saved.under("plans"), size)
    if "potentials.f" in saved:
        fields["potentials"] = ManyPotentials.from_arrays(saved.under("potentials"), size)
    return fields


def _keywords(header: Fields) -> dict[str, str]:
    """Return the keywords of a saved batch; old files name eps and rtol only."""
    accuracy = {name: repr(header[name]) for name in ("eps", "rtol") if header[name] is not None}
    return {str(name): str(text) for name, text in header.get("asked", accuracy).items()}


def _optional(x: float | None) -> float | None:
    return None if x is None else float(x)
