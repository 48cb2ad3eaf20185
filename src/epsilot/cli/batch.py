"""``epsilot batch`` and ``epsilot pairwise``: many problems, all of them certified."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..display.text import clock
from ..engine.request import Request
from . import options as opt
from .request_options import asking

if TYPE_CHECKING:
    from distributed import Client

    from ..engine.batch.result import BatchResult

#: Sentences of refused problems that are printed.
MOST_ERRORS = 20
ASKED = ("eps", "rtol", "max_seconds", "n_threads")

Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FILE.npz", help="Write the results here, as they come."),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue what an earlier run has left in --out.")
]
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


@asking(*ASKED)
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

    Ctrl-C stops between two chunks; --resume does the rest.
    """
    from .batch_inputs import read_histograms
    from .inputs import read

    def solve(**keywords: Any) -> BatchResult:
        from ..api.pairwise import pairwise

        H2 = None if second is None else read_histograms(second)
        return pairwise(read_histograms(histograms), read(cost), H2, **keywords)

    def draw(result: BatchResult, path: Path) -> None:
        from ..display.plotting import plot_matrix

        plot_matrix(result.to_matrix(), path)

    _command(solve, draw, request, normalize, out, resume, scheduler, plot, json)


@asking(*ASKED)
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

    Weights are uniform where there are none. Ctrl-C stops between two chunks; --resume does the
    rest.
    """
    from .batch_inputs import read_problems

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
    from ..errors import ConvergenceWarning, InvalidProblem, UnsavedWarning
    from ..files import check_distinct, check_own

    check_distinct(out=out, plot=plot)
    if out is not None:
        check_own(out, "epsilot-batch")
    if plot is not None:
        check_picture(plot)
    if resume and out is None:
        raise InvalidProblem("--resume was given without --out; name the file to continue")
    asked = {name: getattr(request, name) for name in (*ASKED, "progress")}
    known = out if resume and out is not None and out.exists() else None
    with warnings.catch_warnings(record=True) as caught, _client(scheduler) as client:
        warnings.simplefilter("ignore", ConvergenceWarning)  # the report says it
        warnings.simplefilter("always", UnsavedWarning)
        result = solve(
            **asked,
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
    """Return what a script wants to know of a batch."""
    gap = result.gap[result.converged]
    return {
        "problems": len(result),
        "certified": int(result.converged.sum()),
        "refused": len(result.errors),
        "is_complete": result.is_complete,
        "largest_gap": float(gap.max()) if gap.size else None,
        "errors": {str(k): text for k, text in list(result.errors.items())[:MOST_ERRORS]},
        "seconds": result.seconds,
    }


def _lines(result: BatchResult) -> dict[str, str]:
    """Return what a person wants to know of a batch."""
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
        lines["status"] = "stopped early; --resume does the rest of what --out holds"
    return lines
