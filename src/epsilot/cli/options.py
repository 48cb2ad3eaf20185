"""The options that commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..metrics import PIXEL_METRICS, POINT_METRICS, listed

PROBLEM = "Problem"
TARGET = "What to reach"

Cost = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=PROBLEM,
        help="Cost matrix, n by m: .npy, .npz, .npz:name, .csv or .txt.",
    ),
]
Points = Annotated[
    tuple[str, str] | None,
    typer.Option(
        metavar="X Y", rich_help_panel=PROBLEM, help="Two tables of points, one point a line."
    ),
]
Images = Annotated[
    tuple[str, str] | None,
    typer.Option(
        metavar="A B",
        rich_help_panel=PROBLEM,
        help="Two images. Each is scaled to total mass 1, and the cost is the "
        "distance between pixels divided by the largest.",
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=PROBLEM,
        help=f"Points: {listed(POINT_METRICS)}. Images: {listed(PIXEL_METRICS)}.",
    ),
]
WeightsA = Annotated[
    str | None,
    typer.Option(
        "--a", metavar="FILE", rich_help_panel=PROBLEM, help="Row weights (default: uniform)."
    ),
]
WeightsB = Annotated[
    str | None,
    typer.Option(
        "--b", metavar="FILE", rich_help_panel=PROBLEM, help="Column weights (default: uniform)."
    ),
]
Normalize = Annotated[
    bool,
    typer.Option("--normalize", rich_help_panel=PROBLEM, help="Rescale both weights to total 1."),
]
Eps = Annotated[
    float | None,
    typer.Option(rich_help_panel=TARGET, help="Certified gap, in units of the cost."),
]
Rtol = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=TARGET, help="Certified gap relative to the lower bound (default: 0.01)."
    ),
]
Reg = Annotated[
    float | None,
    typer.Option(rich_help_panel=TARGET, help="Solve the entropic problem with this η instead."),
]
Tol = Annotated[
    float | None,
    typer.Option(rich_help_panel=TARGET, help="With --reg: certified entropic gap."),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all random choices.")]
Threads = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Threads to use (default: one for each core)."),
]
MaxIter = Annotated[int | None, typer.Option(metavar="N", help="Stop after so many epochs.")]
MaxSeconds = Annotated[float | None, typer.Option(metavar="S", help="Stop after so many seconds.")]
Plot = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write a picture (.png, .svg, .pdf).")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
