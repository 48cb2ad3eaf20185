"""``epsilot transfer``: give a picture the colours of another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..engine.request import Request
from . import options as opt
from .options import LIMITS, TARGET, TARGETS, request_options

if TYPE_CHECKING:
    from ..applications.color_transfer import ColorTransfer
    from ..applications.pictures import ProfiledImage

MAP = "Colours"


@request_options("method", *TARGETS, *LIMITS, "seed", panel=TARGET)
def transfer(
    *,
    source: Annotated[str, typer.Argument(help="ProfiledImage to recolour.")],
    reference: Annotated[str, typer.Argument(help="ProfiledImage that supplies the colours.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Write the result to this file.")
    ],
    back: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the reference in the colours of the source."),
    ] = None,
    colors: Annotated[
        int, typer.Option(min=1, rich_help_panel=MAP, help="Colours in each palette.")
    ] = 1000,
    palette: Annotated[
        str,
        typer.Option(rich_help_panel=MAP, help="cluster: cluster means; sample: random pixels."),
    ] = "cluster",
    smoothing: Annotated[
        float,
        typer.Option(
            min=0.0, rich_help_panel=MAP, help="Radius as a fraction of the diagonal; 0: none."
        ),
    ] = 0.01,
    request: Request,
    json: opt.Json = False,
) -> None:
    """Give a picture the colours of another.

    Size, opacity and bit depth of the picture are kept. The transport plan between the palettes is
    certified. Its cost is the squared distance of colours in the unit cube.
    """
    from ..applications import pictures
    from ..applications.color_transfer import ColorTransfer
    from ..applications.estimators import parameters_of
    from ..display import report
    from ..files import check_distinct

    check_distinct(out=out, back=back)
    first, second = pictures.read_picture(source), pictures.read_picture(reference)
    is_grey = first.array.ndim == second.array.ndim == 2
    pictures.check_picture_path(out, first, is_grey)
    if back is not None:
        pictures.check_picture_path(back, second, is_grey)
    shared = parameters_of(request, ColorTransfer)
    model = ColorTransfer(colors, palette=palette, smoothing=smoothing, **shared)
    model.fit(first.array, second.array)
    _write(model, first, second, out, back)
    result = model.result_
    files = {k: str(v) for k, v in {"out": out, "back": back}.items() if v is not None}
    if json:
        report.print_json(report.result_fields(result) | {"files": files})
    else:
        lines = {
            "source": f"{source} ({first.size_text})",
            "reference": f"{reference} ({second.size_text})",
            "palettes": f"{len(model.source_palette_):,} and {len(model.reference_palette_):,}",
        }
        lines |= report.result_lines(result) | files
        report.print_lines(report.verdict(result), lines, good=result.converged)
    raise typer.Exit(int(not result.converged))


def _write(
    model: ColorTransfer, first: ProfiledImage, second: ProfiledImage, out: Path, back: Path | None
) -> None:
    """Write the source in the colours of the reference, and the reverse if wanted."""
    from ..applications.pictures import ProfiledImage, write_picture

    with _status("recolouring"):
        moved = model.transform(first.array)
    with _status(f"writing {out}"):
        write_picture(out, ProfiledImage(moved, first.profile))
    if back is not None:
        with _status(f"writing {back}"):
            moved = model.inverse_transform(second.array)
            write_picture(back, ProfiledImage(moved, second.profile))


@contextmanager
def _status(text: str) -> Iterator[None]:
    """Show the current step on a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(text):
        yield
