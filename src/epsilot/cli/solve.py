"""``epsilot solve``: one problem to a certified accuracy."""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InvalidProblem
from . import options as opt

RUN = "Method"


def solve(
    cost: opt.Cost = None,
    points: opt.Points = None,
    images: opt.Images = None,
    metric: opt.Metric = None,
    a: opt.WeightsA = None,
    b: opt.WeightsB = None,
    normalize: opt.Normalize = False,
    eps: opt.Eps = None,
    rtol: opt.Rtol = None,
    reg: opt.Reg = None,
    tol: opt.Tol = None,
    method: Annotated[
        str, typer.Option(rich_help_panel=RUN, help="A name from 'epsilot methods', or auto.")
    ] = "auto",
    stop: Annotated[
        str,
        typer.Option(rich_help_panel=RUN, help="certificate, or paper: the published procedure."),
    ] = "certificate",
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", rich_help_panel=RUN, help="Option of the method; repeatable."
        ),
    ] = None,
    max_iter: opt.MaxIter = None,
    max_seconds: opt.MaxSeconds = None,
    seed: opt.Seed = 0,
    threads: opt.Threads = None,
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save the run here as it goes.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Continue a run saved with --checkpoint.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.npz", help="Write the result here.")
    ] = None,
    plot: opt.Plot = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what auto chose, why, and what it cost.")
    ] = False,
    json: opt.Json = False,
) -> None:
    """Solve a problem to a certified accuracy.

    Ctrl-C stops the run and reports its best certified answer so far.
    """
    from ..files import check_distinct, check_own
    from ..show.plotting import check_picture, save_convergence
    from . import report
    from .inputs import load_problem

    extra = parse_options(option or ())
    check_distinct(out=out, checkpoint=checkpoint, plot=plot)
    for path, kind in ((out, "epsilot-result"), (checkpoint, "epsilot-checkpoint")):
        if path is not None:
            check_own(path, kind)
    if plot is not None:
        check_picture(plot)
    problem = load_problem(cost=cost, points=points, images=images, metric=metric, a=a, b=b)

    import epsilot

    began = time.perf_counter()
    result = epsilot.solve(
        problem.M,
        problem.a,
        problem.b,
        eps=eps,
        rtol=rtol,
        reg=reg,
        tol=tol,
        method=method,
        stop=stop,
        max_iter=max_iter,
        max_seconds=max_seconds,
        seed=seed,
        n_threads=threads,
        progress=sys.stderr.isatty(),
        on_limit="ignore",
        normalize=normalize,
        checkpoint=None if checkpoint is None else str(checkpoint),
        resume=None if resume is None else str(resume),
        **extra,
    )
    why = _explanation(result, time.perf_counter() - began) if explain else {}
    if out is not None:
        result.save(out)
    if plot is not None:
        save_convergence(result, plot)
    written = {"out": out, "plot": plot, "checkpoint": checkpoint}
    files = {name: str(path) for name, path in written.items() if path is not None}
    if json:
        report.print_json(report.result_fields(result) | why | {"files": files})
    else:
        title = "Certified" if result.converged else "Stopped before the target"
        report.print_lines(title, report.result_lines(result) | why | files, good=result.converged)
    report.finish([result])


def _explanation(result: Any, seconds: float) -> dict[str, str]:
    """Return what was chosen and why, and what it took."""
    chosen = result.choice or f"{result.method}: as asked for"
    peak = ""
    if sys.platform != "win32":
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        peak = f", {used / 2**20:.0f} MiB peak of the whole process"
    return {"chosen": chosen, "actual": f"{seconds:.2g} s{peak}"}


def parse_options(pairs: Sequence[str]) -> dict[str, Any]:
    """Turn ``key=value`` pairs into options of a method."""
    import epsilot

    reserved = inspect.signature(epsilot.solve).parameters
    found: dict[str, Any] = {}
    for pair in pairs:
        key, mark, text = pair.partition("=")
        key = key.strip().replace("-", "_")
        if not mark or not key.isidentifier():
            raise InvalidProblem(
                f"--option {pair!r} is not of the form key=value; write for example "
                "--option batch_size=4"
            )
        if key in reserved or key in found:
            why = "given twice" if key in found else f"no option of a method (use --{key})"
            raise InvalidProblem(f"--option {key} is {why}; each method option is given once")
        found[key] = _parse_value(text.strip())
    return found


def _parse_value(text: str) -> Any:
    """Read a value as a boolean, an integer, a float, or else a string."""
    constants = {"true": True, "false": False, "none": None}
    if text.lower() in constants:
        return constants[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
