"""Save results to files, read them again, and prove them again."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._types import Fields
from ..arguments import check_positive
from ..errors import InvalidProblem
from ..files import StrPath
from ..files.arrays import SavedArrays
from ..geometry import Geometry
from ..geometry.derived import UnsavedCost
from ..geometry.inputs import forms_of
from ..problems import kinds
from ..problems.duals import centred_slopes, free_slopes
from ..problems.kinds import Kind, UserProblem
from ..problems.problem import Problem
from ..problems.work import Record, Status, Work
from ..wording import first_line, named, shown
from .certificate import Certificate, certificate_of
from .storage import load, pack_plan, save, unpack_plan

if TYPE_CHECKING:
    from .result import Result

_FORMAT = "epsilot-result-2"
_REMEDY = "write one with Result.save"
#: Fields that are read as they are written, with their types.
_PLAIN: dict[str, type] = {
    "value": float,
    "value_linear": float,
    "lower_bound": float,
    "marginal_error": float,
    "converged": bool,
    "method": str,
    "reg": float,
    "seed": int,
    "options": dict,
    "version": str,
    "n_iter": int,
    "seconds": float,
    "target": float,
    "is_entropic": bool,
    "quantity": str,
    "asked": dict,
    "compile_seconds": float,
}
#: Numbers of a ``Problem`` other than its cost and weights.
_SCALES = "offset", "mass", "unit", "constant"
#: Slopes in the weights that are known by their name.
_SLOPES = {slopes.__name__: slopes for slopes in (centred_slopes, free_slopes)}


def save_result(result: Result, path: StrPath) -> None:
    """Write a result without its costs, atomically."""
    header = {name: getattr(result, name) for name in _PLAIN}
    header |= {
        "shape": result.plan_operator.shape,
        "problem_hash": result.problem_hash,
        "gap": result.gap,
        "status": result.status.name,
        "choice": result.choice,
        "mass_price": result.mass_price,
        "slopes": getattr(result.slopes, "__name__", None),
        "work": result.work.units,
        "certificate_work": result.work.certificate,
        "operations": result.work.operations,
        "history": result.history,
    }
    problem = result.problem
    arrays = pack_plan(replace(result.plan_operator, mass=1.0))
    arrays["f"], arrays["g"] = result.potentials
    arrays["p"], arrays["q"] = problem.p, problem.q
    arrays["scales"] = np.array([getattr(problem, name) for name in _SCALES])
    save(path, _FORMAT, header, arrays)


def read_result(
    path: StrPath,
    M: ArrayLike | Geometry | None,
    a: ArrayLike | None,
    b: ArrayLike | None,
    keywords: dict[str, Any],
) -> tuple[dict[str, Any], str]:
    """Return the fields of a saved ``Result`` and the hash of its problem.

    If the problem is given, it must be the one that was solved.
    """
    header, arrays = load(path, _FORMAT, _REMEDY)
    if M is None and (a is not None or b is not None or keywords):
        raise InvalidProblem(
            "weights or keywords of a problem were given without its cost; pass M too, or none."
        )
    given = None if M is None else _problem_of(header, path, M, a, b, keywords)
    try:
        fields = _fields(header, SavedArrays(arrays), given, path)
        return fields, str(header["problem_hash"])
    except (InvalidProblem, KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidProblem(
            f"{named(path)} cannot be read as a result: {first_line(error)} (files of older "
            "versions can be proved again, by epsilot certify --result)."
        ) from None


def _problem_of(
    header: Fields,
    path: StrPath,
    M: ArrayLike | Geometry,
    a: ArrayLike | None,
    b: ArrayLike | None,
    keywords: dict[str, Any],
) -> Problem:
    """Return the problem that a user describes as in a call of ``solve``, or reject another one."""
    kind, others = kinds.kind_from_keywords(keywords)
    normalize = others.pop("normalize", False)
    if others:
        raise InvalidProblem(
            f"{' and '.join(others)} were given to Result.load; of the keywords of solve, it takes "
            f"normalize, {', '.join(kinds.keywords())}."
        )
    # The costs are not shifted with stop="paper".
    for cost, can_shift in product(forms_of(M), (True, False)):
        problem = kind.problem(UserProblem(cost, a, b, bool(normalize), can_shift))
        problem = kind.objective(problem, _saved_reg(path, header)).problem
        if header.get("problem_hash") == problem.digest():
            break
    return _checked(path, header, problem)


def _saved_reg(path: StrPath, header: Fields) -> float | None:
    """Return the regularisation of a saved result, or None without an entropy.

    Objectives with an entropy may have other units than those without.
    """
    is_entropic = header.get("is_entropic")
    if not isinstance(is_entropic, bool):
        raise InvalidProblem(
            f"{named(path)} cannot be proved again: is_entropic is neither true nor false."
        )
    return check_positive(f"reg in {named(path)}", header.get("reg")) if is_entropic else None


def _fields(
    header: Fields, arrays: SavedArrays, given: Problem | None, path: StrPath
) -> dict[str, Any]:
    """Return the fields of a result from a header and arrays, which are not trusted."""
    n, m = map(int, header["shape"])
    plain = {name: _typed(name, header[name], kind) for name, kind in _PLAIN.items()}
    scales = dict(zip(_SCALES, arrays.vector("scales", (len(_SCALES),)).tolist(), strict=True))
    problem = given or Problem(
        UnsavedCost((n, m), named(path)),
        arrays.masses("p", (n,)),
        arrays.masses("q", (m,)),
        **scales,
    )
    price, units = header["mass_price"], {str(k): int(v) for k, v in header["work"].items()}
    options = plain["options"]  # JSON has no tuples
    plain["options"] = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
    return plain | {
        "plan_operator": unpack_plan(dict(arrays.arrays), problem).scaled(problem.mass),
        "potentials": (arrays.vector("f", (n,)), arrays.vector("g", (m,))),
        "status": Status[header["status"]],
        "work": Work(units, int(header["certificate_work"])),
        "history": [Record(*row) for row in header["history"]],
        "problem": problem,
        "choice": None if header["choice"] is None else str(header["choice"]),
        "slopes": _SLOPES.get(header["slopes"]),
        "mass_price": None if price is None else float(price),
    }


def _typed(name: str, value: object, kind: type) -> Any:
    """Return a value of a header, or raise TypeError."""
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"{name} is {shown(value)}")
    return value


def _checked(path: StrPath, header: Fields, problem: Problem) -> Problem:
    """Return a problem if it is the one of a saved result, or raise."""
    if header.get("problem_hash") != problem.digest():
        raise InvalidProblem(
            f"{named(path)} holds the result of another problem (of shape "
            f"{shown(header.get('shape'))}, hash {shown(header.get('problem_hash'))}); give the "
            f"cost and weights it was solved with (these have shape {list(problem.shape)}, hash "
            f"{problem.digest()!r})."
        )
    return problem


def recertify(path: StrPath, problem: Problem, kind: Kind) -> tuple[Fields, Certificate]:
    """Prove the bounds of a saved result again; return its header and the certificate."""
    header, arrays = load(path, _FORMAT, _REMEDY)
    n, _ = problem.shape
    objective = kind.objective(problem, _saved_reg(path, header))
    _checked(path, header, objective.problem)
    try:
        plan = unpack_plan(arrays, objective.problem)
        f = SavedArrays(arrays).vector("f", (n,))
    except (InvalidProblem, KeyError, TypeError, ValueError) as error:
        raise InvalidProblem(
            f"{named(path)} cannot be proved again: {first_line(error)}."
        ) from None
    return header, certificate_of(objective, plan, objective.from_user(f))
