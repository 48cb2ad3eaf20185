"""``epsilot barycenter``: the barycentre of images."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..engine.request import Request
from ..metrics import GRID_METRICS
from ..wording import named, shown
from . import options as opt
from .options import LIMITS, METHOD, PROBLEM, TARGETS, request_options

if TYPE_CHECKING:
    from .._types import Matrix
    from ..barycenters.result import BarycenterResult

#: File types of masses; all others are pictures.
TABLES = (".npy", ".csv")


@request_options(*TARGETS, *LIMITS, "seed", "n_threads", "checkpoint", "resume", "options")
def barycenter(
    *,
    images: Annotated[
        list[str],
        typer.Argument(help="Images of one shape; each is scaled to total mass 1."),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Output: a picture, or masses as .npy or .csv."
        ),
    ],
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="W,W,...",
            rich_help_panel=PROBLEM,
            help="Weights of the images (default: equal).",
        ),
    ] = None,
    metric: Annotated[
        str,
        typer.Option(
            rich_help_panel=PROBLEM,
            help=f"{' or '.join(GRID_METRICS)}, in pixels; the second gives smoother pictures.",
        ),
    ] = GRID_METRICS[0],
    method: Annotated[
        str,
        typer.Option(rich_help_panel=METHOD, help="anderson, ibp, lbfgs, pdasmd, exact, or auto."),
    ] = "auto",
    request: Request,
    json: opt.Json = False,
) -> None:
    """Find the barycentre of images to a certified accuracy, and write it.

    Distances are in pixels, as in epsilot.barycenter_grid. Ctrl-C stops the run and writes its
    best certified answer.
    """
    from ..barycenters.execute import execute
    from ..barycenters.family import make_family
    from ..display import report
    from ..geometry import Grid

    _check_path(out)
    masses = _read(images)
    shape = masses[0].shape
    family = make_family(
        [mass.ravel() / mass.sum() for mass in masses],
        Grid(shape, shape, metric),
        _numbers(weights),
        reg=request.reg,
    )
    result = execute(family, replace(request, method=method))
    if json:
        fields = report.certified_fields(result)
        fields |= {"values": result.values.tolist(), "weights": result.weights.tolist()}
        fields |= {"reg": result.reg, "options": result.options, "shape": list(shape)}
        report.print_json(fields | {"files": {"out": str(out)}})
    else:
        lines = _lines(result, len(masses), shape) | {"out": str(out)}
        report.print_lines(report.verdict(result), lines, good=result.converged)
    _write(out, result.barycenter.reshape(shape))
    raise typer.Exit(int(not result.converged))


def _read(images: list[str]) -> list[Matrix]:
    """Return the masses of images, or reject images of different shapes."""
    from ..errors import InvalidProblem
    from .inputs import read_mass

    fields = [read_mass(name) for name in images]
    shape = fields[0].shape
    for name, field in zip(images, fields, strict=True):
        if field.shape != shape:
            raise InvalidProblem(
                f"{named(images[0])} has shape {shape} and {named(name)} {field.shape}; all images "
                "must have the same shape (resize them)"
            )
    return fields


def _numbers(text: str | None) -> list[float] | None:
    """Return the numbers of a list with commas."""
    from ..errors import InvalidProblem

    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidProblem(
            f"--weights {shown(text)} is no list of numbers; write for example --weights "
            "0.5,0.3,0.2"
        ) from None


def _check_path(out: Path) -> None:
    """Reject a path that cannot be written to, or has an unknown type."""
    import numpy as np

    from ..applications.pictures import ProfiledImage, check_picture_path
    from ..files import check_writable

    check_writable(out)
    if out.suffix.lower() not in TABLES:
        check_picture_path(out, ProfiledImage(np.zeros((1, 1), np.uint8), {}), is_grey=True)


def _write(out: Path, b: Matrix) -> None:
    """Write masses atomically, or a picture in which the largest mass is white."""
    import numpy as np

    from ..applications.pictures import ProfiledImage, write_picture
    from ..files import write_atomically

    match out.suffix.lower():
        case ".npy":
            write_atomically(out, lambda file: np.save(file, b))
        case ".csv":
            write_atomically(out, lambda file: np.savetxt(file, b, delimiter=",", fmt="%.17g"))
        case _:
            write_picture(out, ProfiledImage(np.rint(255 * (b / b.max())).astype(np.uint8), {}))


def _lines(result: BarycenterResult, k: int, shape: tuple[int, ...]) -> dict[str, str]:
    """Return the lines of the printed summary."""
    from ..display.text import clock, operations_text

    return {
        "problem": f"{k} images of {' × '.join(map(str, shape))}",
        "value": f"{result.value:.10g}",
        "lower bound": f"{result.lower_bound:.10g}",
        "gap": f"{result.gap:.3g} (target {result.target:.3g})",
        "method": result.method + (f", η = {result.reg:.3g}" if result.reg else ""),
        "work": f"{result.n_iter:,} steps, {operations_text(result.work)}, {clock(result.seconds)}",
        "status": str(result.status),
    }
