"""``epsilot batch`` and ``epsilot pairwise``: solve many problems, each with a certificate."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..display.text import clock
from ..engine.request import Request
from ..errors import InvalidProblem
from ..wording import first_line, named, shown
from . import options as opt
from .options import request_options

if TYPE_CHECKING:
    from distributed import Client
    from scipy.sparse import csr_array

    from .._types import Array
    from ..engine.batch.result import BatchResult

#: The options of a request that both commands take; "kind" stands for those of all kinds.
REQUEST_OPTIONS = ("eps", "rtol", "reg", "tol", "max_seconds", "n_threads", "kind")
#: The arrays of an archive that SciPy's save_npz writes for a CSR matrix.
CSR_ARRAYS = {"format", "shape", "data", "indices", "indptr"}
#: The arrays of an archive of problems.
COSTS, CLOUDS, WEIGHTS = ("M",), ("X_a", "X_b"), ("a", "b")

Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FILE.npz", help="Write the results here, as they come."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the run that wrote --out.")]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="Solve on the workers of this Dask scheduler (tcp://...)."
    ),
]
Picture = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Draw a heat map of the costs (batch: their distribution)."),
]


@request_options(*REQUEST_OPTIONS)
def pairwise(
    *,
    histograms: Annotated[
        str, typer.Argument(help="Histograms as rows: .npy, .npz (also SciPy's CSR), .csv or .txt.")
    ],
    cost: Annotated[str, typer.Option(metavar="FILE", help="The cost between their places.")],
    second: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Other histograms, for every pair of both files."),
    ] = None,
    request: Request,
    normalize: opt.Normalize = False,
    out: Out = None,
    resume: Resume = False,
    scheduler: Scheduler = None,
    plot: Picture = None,
    json: opt.Json = False,
) -> None:
    """Solve transport between all pairs of histograms.

    Ctrl-C stops between two chunks of problems. --resume solves the rest.
    """
    from .inputs import read

    def solve(**keywords: Any) -> BatchResult:
        from ..api.pairwise import pairwise

        H2 = None if second is None else read_histograms(second)
        return pairwise(read_histograms(histograms), read(cost), H2, **keywords)

    def draw(result: BatchResult, path: Path) -> None:
        from ..display.plotting import plot_matrix

        plot_matrix(result.to_matrix(), path)

    _command(solve, draw, request, normalize, out, resume, scheduler, plot, json)


@request_options(*REQUEST_OPTIONS)
def batch(
    *,
    problems: Annotated[
        str,
        typer.Argument(
            help="An .npz archive: M, a, b (or X_a, X_b, a, b), stacked or shared; or M_0, M_1, ..."
        ),
    ],
    metric: opt.Metric = None,
    request: Request,
    normalize: opt.Normalize = False,
    out: Out = None,
    resume: Resume = False,
    scheduler: Scheduler = None,
    plot: Picture = None,
    json: opt.Json = False,
) -> None:
    """Solve all problems of an archive.

    Missing weights are uniform. Ctrl-C stops between two chunks of problems. --resume solves the
    rest.
    """

    def solve(**keywords: Any) -> BatchResult:
        from ..api.batch import solve_batch, solve_sample_batch

        given = read_problems(problems, metric)
        return (solve_batch if "M" in given else solve_sample_batch)(**given, **keywords)

    def draw(result: BatchResult, path: Path) -> None:
        from ..display.plotting import plot_values

        plot_values(result.value, result.gap, path)

    _command(solve, draw, request, normalize, out, resume, scheduler, plot, json)


def _command(
    solve: Callable[..., BatchResult],
    draw: Callable[[BatchResult, Path], None],
    request: Request,
    normalize: bool,
    out: Path | None,
    resume: bool,
    scheduler: str | None,
    plot: Path | None,
    json: bool,
) -> None:
    """Solve, write, draw and report; the exit code tells whether all problems are certified."""
    from ..display import report
    from ..display.plotting import check_picture
    from ..errors import ConvergenceWarning, UnsavedWarning
    from ..files import check_distinct, check_own

    check_distinct(out=out, plot=plot)
    if out is not None:
        check_own(out, "epsilot-batch")
    if plot is not None:
        check_picture(plot)
    if resume and out is None:
        raise InvalidProblem("--resume was given without --out; name the file to continue")
    names = (*REQUEST_OPTIONS, "progress")
    asked = {name: getattr(request, name) for name in names if name != "kind"}
    known = out if resume and out is not None and out.exists() else None
    with warnings.catch_warnings(record=True) as caught, _client(scheduler) as client:
        warnings.simplefilter("ignore", ConvergenceWarning)  # the report says it
        warnings.simplefilter("always", UnsavedWarning)
        result = solve(
            **asked,
            **request.kind.keywords,
            client=client,
            normalize=normalize,
            on_error="collect",
            checkpoint=out,
            resume=known,
        )
    is_saved = True
    for found in caught:
        if issubclass(found.category, UnsavedWarning):
            is_saved = False
        else:
            warnings.warn_explicit(found.message, found.category, found.filename, found.lineno)
    files = {name: str(path) for name, path in (("out", out), ("plot", plot)) if path is not None}
    is_good = result.is_complete and bool(result.converged.all())
    if json:
        report.print_json(_fields(result) | {"files": files})
    else:
        title = "Certified" if is_good else "Not all certified"
        report.print_lines(title, _lines(result) | files, good=is_good)
    if out is not None and not is_saved:
        result.save(out)  # once more: there may be room now, or a sentence says what is wrong
    if plot is not None:
        draw(result, plot)
    if not is_good:
        raise typer.Exit(1)


@contextmanager
def _client(scheduler: str | None) -> Iterator[Client | None]:
    """Connect to a scheduler, if one is named."""
    if scheduler is None:
        yield None
        return
    from ..distributed.cluster import connected

    with connected(scheduler) as client:
        yield client


def _fields(result: BatchResult) -> dict[str, object]:
    """Return the fields that --json prints."""
    gap = result.gap[result.converged]
    return {
        "problems": len(result),
        "certified": int(result.converged.sum()),
        "refused": len(result.errors),
        "is_complete": result.is_complete,
        "largest_gap": float(gap.max()) if gap.size else None,
        "errors": {str(k): text for k, text in list(result.errors.items())[:20]},  # at most 20
        "seconds": result.seconds,
    }


def _lines(result: BatchResult) -> dict[str, str]:
    """Return the lines that the terminal shows."""
    fields = _fields(result)
    lines = {
        "problems": f"{fields['problems']:,}",
        "certified": f"{fields['certified']:,}",
        "largest gap": "none" if fields["largest_gap"] is None else f"{fields['largest_gap']:.3g}",
        "time": clock(result.seconds),
    }
    if result.errors:
        k = min(result.errors)
        lines["refused"] = f"{len(result.errors):,}, first problem {k}: {result.errors[k]}"
    if not result.is_complete:
        lines["status"] = "stopped early; --resume solves the rest"
    return lines


# -- files ---------------------------------------------------------------------------------------


def read_histograms(name: str) -> Array | csr_array:
    """Read histograms as rows; an archive may hold a sparse matrix."""
    from ..files import read_archive
    from .inputs import read

    if not name.lower().endswith(".npz"):
        return read(name)
    arrays = read_archive(name)
    if not arrays.keys() >= CSR_ARRAYS:
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
    from ..files import read_archive

    if not name.lower().endswith(".npz"):
        raise InvalidProblem(
            f"{named(name)} is not an .npz archive; the problems must be arrays of one (save "
            "them with numpy.savez(file, M=..., a=..., b=...))"
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
    """Return the arrays with known names; numbered ones (M_0, M_1, ...) become a list."""
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
