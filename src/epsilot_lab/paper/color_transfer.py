"""Transfer colours between two photographs, both ways (Appendix H)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from epsilot.applications.pixels import Palette, Pixels, clustered, histogram
from epsilot.display.plotting import new_figure
from epsilot.files import write_atomically
from epsilot.version import __version__

from ..document import (
    Block,
    Claim,
    Command,
    Heading,
    Paragraph,
    Picture,
    Table,
    environment_table,
    verdict,
)
from ..environment import machine, versions
from ..judging import JudgedClaim, count, statement_table, table_of_tests
from ..report import Page, publish
from ..runner import in_processes, run_tasks
from ..store import Line, Store, refuse_interrupted
from .two_moons import scikit_learn

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

    from epsilot.applications.color_transfer import ColorTransfer


METHODS = ("pdasmd", "auto")
N_COLORS = 1000
TITLE = "Colour transfer"
FIGURE = "color-transfer.jpg"
#: The required fall of the sliced distance between the result's colours and the reference's.
FALL = 0.7
#: The fields that identify a line.
KEY = ("method", "n_colors", "smoothing", "is_small", "version")
_DPI = 110

Image = NDArray[np.uint8]


@dataclass(frozen=True)
class TransferTask:
    """A plan between the palettes of the two photographs, applied in both directions."""

    method: str
    n_colors: int = N_COLORS
    smoothing: float = 0.01
    is_small: bool = False

    @property
    def identity(self) -> Line:
        """The fields that distinguish its line from all others."""
        return {
            "method": self.method,
            "n_colors": self.n_colors,
            "smoothing": self.smoothing,
            "is_small": self.is_small,
            "version": __version__,
        }

    @property
    def label(self) -> str:
        """A few words for the progress line."""
        return f"{self.method}, {self.n_colors} colours"

    @property
    def seconds(self) -> float:
        """Expected time, pictures included."""
        return 1.0 + 0.01 * self.n_colors

    @property
    def is_timed(self) -> bool:
        """Tell that seconds are reported."""
        return True

    @property
    def variant(self) -> tuple[str, ...]:
        """The choices that decide which kernels are compiled."""
        return (self.method,)

    def warm_up(self) -> None:
        """Compile the method on few colours."""
        replace(self, n_colors=20, is_small=True).images()

    def images(self) -> tuple[ColorTransfer, Image, Image]:
        """Return the fitted model and the two results."""
        from epsilot import ColorTransfer

        first, second = photographs(self.is_small)
        model = ColorTransfer(self.n_colors, method=self.method, smoothing=self.smoothing)
        with refuse_interrupted():
            model.fit(first, second)
        return model, model.transform(first), model.inverse_transform(second)

    def line(self) -> Line:
        """Solve, recolour both photographs, and measure what became of the distance."""
        model, forth, back = self.images()
        first, second = photographs(self.is_small)
        before = sliced_distance(first, second)
        result = model.result_
        return self.identity | {
            "solver": result.method,
            "value": result.value,
            "gap": result.gap,
            "is_certified": result.converged,
            "n_iter": result.n_iter,
            "before": before,
            "after": [sliced_distance(forth, second), sliced_distance(back, first)],
            "versions": versions(),
            "machine": machine(),
            "seconds": result.seconds,
        }


@cache
def photographs(is_small: bool = False) -> tuple[Image, Image]:
    """Return scikit-learn's two sample photographs: a palace in China, and a dahlia."""
    images = scikit_learn("datasets").load_sample_images().images
    step = 8 if is_small else 1
    first, second = (np.ascontiguousarray(image[::step, ::step]) for image in images)
    return first, second


def sliced_distance(first: Image, second: Image, n_directions: int = 200, seed: int = 0) -> float:
    """Return the sliced Wasserstein distance between the colours of all pixels.

    Colours are those of the cells of a 64³ histogram, in the unit cube.
    """
    import ot

    X, Y = (histogram(Pixels.of(image, "a picture")) for image in (first, second))
    return float(
        ot.sliced_wasserstein_distance(
            X.colors, Y.colors, X.weights, Y.weights, n_projections=n_directions, seed=seed
        )
    )


def run(out: Path, quick: bool, seeds: int | None, jobs: int, console: Console) -> Page:
    """Solve what is missing, draw and summarise; quick is a tenth of the colours."""
    n_colors = N_COLORS // 10 if quick else N_COLORS
    tasks = [TransferTask(method, n_colors) for method in METHODS]
    store = Store(out / "solves.jsonl", KEY)
    lines = run_tasks(tasks, store, console, in_processes(jobs))
    return write(
        out, tasks, lines, f"epsilot reproduce color-transfer --{'quick' if quick else 'full'}"
    )


def write(out: Path, tasks: Sequence[TransferTask], lines: Sequence[Line], command: str) -> Page:
    """Draw the pictures and write the summary."""
    figure = draw({task.method: task for task in tasks})
    quality = {"quality": 88}
    write_atomically(
        out / FIGURE,
        lambda file: figure.savefig(file, format="jpg", dpi=_DPI, pil_kwargs=quality),
    )
    found = statements(lines)
    blocks = _blocks(lines, found, command)
    publish(out, TITLE, blocks)
    return Page(TITLE, tuple(blocks), tuple(found))


def draw(tasks: Mapping[str, TransferTask]) -> Figure:
    """Return the figure: originals, results of each method, and the palettes of all."""
    is_small = any(task.is_small for task in tasks.values())
    pictures: list[list[tuple[str, Image]]] = [
        [(f"original {name}", image)]
        for name, image in zip("AB", photographs(is_small), strict=True)
    ]
    for method, task in tasks.items():
        model, *results = task.images()
        name = "PDASMD" if method == "pdasmd" else f"default ({model.result_.method})"
        for row, result in enumerate(results):
            text = f"{'AB'[row]} in the colours of {'BA'[row]}: {name}"
            pictures[row].append((text, result))
    figure: Figure = new_figure(4.6 * len(pictures[0]), 7.6)
    axes = figure.subplots(4, len(pictures[0]), height_ratios=(8, 1, 8, 1))
    for row in range(2):
        for column, (title, image) in enumerate(pictures[row]):
            top, foot = axes[2 * row : 2 * row + 2, column]
            top.imshow(image, interpolation="nearest")
            top.set_title(title, loc="left", fontsize=11)
            foot.imshow(_strip(image), aspect="auto", interpolation="nearest")
            for ax in (top, foot):
                ax.set_axis_off()
    return figure


def _strip(image: Image, n_colors: int = 60, width: int = 600) -> NDArray[np.float64]:
    """Return a palette as a strip, dark to light, each colour as wide as its share."""
    pixels = Pixels.of(image, "a picture")
    palette: Palette = clustered(pixels, n_colors, np.random.default_rng(0))
    order = np.argsort(palette.colors @ [0.299, 0.587, 0.114])
    edges = np.cumsum(palette.weights[order])
    index = np.searchsorted(edges, (np.arange(width) + 0.5) / width * edges[-1])
    return np.asarray(palette.colors[order][index][None, :, :])


def statements(lines: Sequence[Line]) -> list[JudgedClaim]:
    """Return the paper's claim on the figure, with a number for what it lets the eye judge."""
    text = "the colours of one picture are transferred to the other"
    tests = []
    for line in lines:
        for direction, after in zip(("A → B", "B → A"), line["after"], strict=True):
            if line["method"] == "pdasmd":
                fall = 1 - after / line["before"]
                measured = f"the distance falls by {fall:.1%}"
                tests.append(Claim(text, f"PDASMD, {direction}", measured, verdict(fall >= FALL)))
    return [JudgedClaim(text, "Appendix H", tuple(tests))]


def _blocks(lines: Sequence[Line], found: Sequence[JudgedClaim], command: str) -> list[Block]:
    rows = tuple(
        (
            line["solver"],
            direction,
            f"{line['before']:.4f}",
            f"{after:.4f}",
            f"{1 - after / line['before']:.1%}",
            f"{line['value']:.5f}",
            f"{line['gap']:.2g}",
            f"{line['seconds']:.2f}",
        )
        for line in lines
        for direction, after in zip(("A → B", "B → A"), line["after"], strict=True)
    )
    columns = (
        "method",
        "direction",
        "distance before",
        "after",
        "fall",
        "transport cost",
        "certified gap",
        "seconds of solving",
    )
    return [
        Paragraph(
            "scikit-learn's two sample photographs, each in the colours of the other: palettes of "
            f"{lines[0]['n_colors']:,} cluster means, one certified plan for both directions, its "
            "barycentric maps, smoothed along the pictures' edges. Made by"
        ),
        Command(command),
        Picture(FIGURE, "Originals, results, and the palettes of all, dark to light."),
        Heading("What became of the distance"),
        Paragraph(
            "Sliced Wasserstein distance (200 directions, unit cube) between the colours of all "
            "pixels of the picture and of its reference, before and after."
        ),
        Table(columns, rows),
        Heading("Claims of the paper"),
        Paragraph(count(found)),
        statement_table(found),
        table_of_tests(found, f"A transfer is a fall of the distance by {FALL:.0%} at least."),
        Heading("Environment"),
        environment_table(lines),
    ]
