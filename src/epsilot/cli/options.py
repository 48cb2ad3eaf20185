"""The options that commands share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ..engine.kinds import PROBLEM
from ..engine.request import SAID
from ..metrics import PIXEL_METRICS, POINT_METRICS, listed

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
Seed = Annotated[int, typer.Option(min=SAID["seed"].least, help=SAID["seed"].help)]
Plot = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write a picture (.png, .svg, .pdf).")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


@dataclass(frozen=True)
class Source:
    """Where a problem comes from: the files that the options name."""

    cost: Cost = None
    points: Points = None
    images: Images = None
    metric: Metric = None
    a: WeightsA = None
    b: WeightsB = None
    normalize: Normalize = False
