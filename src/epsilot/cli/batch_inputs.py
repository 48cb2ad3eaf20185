"""From files to many problems: stacked, shared or numbered arrays, dense or sparse histograms."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ..errors import InvalidProblem
from ..files import read_archive
from ..wording import first_line, named, shown
from .inputs import read

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from .._types import Array

#: The arrays of an archive that SciPy's save_npz writes of a CSR matrix.
CSR = {"format", "shape", "data", "indices", "indptr"}
COSTS, CLOUDS, WEIGHTS = ("M",), ("X_a", "X_b"), ("a", "b")


def read_histograms(name: str) -> Array | csr_array:
    """Read histograms as rows; an archive may hold a sparse matrix."""
    if not name.lower().endswith(".npz"):
        return read(name)
    arrays = read_archive(name)
    if not arrays.keys() >= CSR:
        return read(name)
    from scipy import sparse

    kind = arrays["format"].item()
    if kind not in (b"csr", "csr"):
        raise InvalidProblem(
            f"{named(name)} holds a sparse matrix of the form {shown(kind)}; rows of histograms "
            "must be in the form csr (save matrix.tocsr())"
        )
    parts = arrays["data"], arrays["indices"], arrays["indptr"]
    try:
        return sparse.csr_array(parts, shape=tuple(arrays["shape"].tolist()))
    except (TypeError, ValueError) as error:
        raise InvalidProblem(
            f"{named(name)} holds a sparse matrix that is damaged ({first_line(error)}); write it "
            "again"
        ) from None


def read_problems(name: str, metric: str | None) -> dict[str, Any]:
    """Read the costs (or clouds) and weights of many problems, by the names of their arrays."""
    if not name.lower().endswith(".npz"):
        raise InvalidProblem(
            f"{named(name)} is no .npz archive; the problems must be arrays of one (save them with "
            "numpy.savez(file, M=..., a=..., b=...))"
        )
    given = _gathered(name, read_archive(name))
    is_cost, is_cloud = "M" in given, "X_a" in given and "X_b" in given
    if is_cost == is_cloud or (is_cost and given.keys() & set(CLOUDS)):
        raise InvalidProblem(
            f"{named(name)} holds {', '.join(given) or 'nothing known'}; it must hold costs M, or "
            "clouds X_a and X_b, and perhaps weights a and b"
        )
    if is_cost and metric is not None:
        raise InvalidProblem(
            f"--metric {named(metric)} was given with costs M, which hold the distances (leave it "
            "out)"
        )
    return given if metric is None else given | {"metric": metric}


def _gathered(name: str, arrays: dict[str, Array]) -> dict[str, Any]:
    """Return the arrays that are known; numbered ones (M_0, M_1, ...) are a list."""
    found: dict[str, Any] = {}
    for key in (*COSTS, *CLOUDS, *WEIGHTS):
        numbered = {
            int(match[1]): array
            for other, array in arrays.items()
            if (match := re.fullmatch(rf"{key}_(\d+)", other))
        }
        if numbered and (key in arrays or sorted(numbered) != list(range(len(numbered)))):
            raise InvalidProblem(
                f"{named(name)} holds {len(numbered)} arrays {key}_0, {key}_1 and so on with one "
                f"missing, or {key} besides; numbers must count from 0, without {key}"
            )
        if numbered:
            found[key] = [numbered[k] for k in range(len(numbered))]
        elif key in arrays:
            found[key] = arrays[key]
    return found
