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
from epsilot.errors import InvalidProblem
from epsilot.files import write_atomically

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
from ..runner import ExperimentSetup
from ..store import KeyedTask, Line, refuse_interrupted
from .numpy_pdasmd import Iterate, Settings, outer_loop
from .two_moons import one, scikit_learn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
#: The authors' script: name in the lines; η, which is also the violation that ends it.
SCRIPT = "PDASMD by the authors' script"
SCRIPT_FIGURE = "color-transfer-script.jpg"
SCRIPT_EPS = 0.01
CAPTIONS = {
    SCRIPT_FIGURE: "By the authors' script: originals and results.",
    FIGURE: "Extended: originals, results, and the palettes of all, dark to light.",
}

Image = NDArray[np.uint8]


@dataclass(frozen=True)
class TransferTask(KeyedTask):
    """A plan between the palettes of the two photographs, applied in both directions."""

    KEY = KEY
    method: str
    n_colors: int = N_COLORS
    smoothing: float = 0.01
    is_small: bool = False

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


@dataclass(frozen=True)
class ScriptTask(TransferTask):
    """PDASMD between random pixels, with the settings of the authors' script.

    The rest of the pixels takes the displacement of the nearest one that was drawn.
    """

    method: str = SCRIPT
    n_colors: int = 500
    smoothing: float = 0.0
    eps: float = SCRIPT_EPS  # η, and the violation of the marginals that is allowed
    batch_size: int = 1

    @property
    def identity(self) -> Line:
        """The fields that distinguish its line; the method names settings of a user."""
        chosen = [f"η = {self.eps:g}"] * (self.eps != SCRIPT_EPS)
        chosen += [f"B = {self.batch_size}"] * (self.batch_size != 1)
        return super().identity | {"method": ", ".join([self.method, *chosen])}

    def warm_up(self) -> None:
        """Do nothing: nothing is compiled."""

    def recoloured(self) -> tuple[Image, Image, int]:
        """Return both results and the number of outer loops."""
        from scipy.spatial import cKDTree

        draws = np.random.RandomState(42)
        pixels = [np.asarray(x).reshape(-1, 3) / 256 for x in photographs(self.is_small)]
        X, Y = (own[draws.randint(len(own), size=self.n_colors)] for own in pixels)
        C = ((X[:, None] - Y[None]) ** 2).sum(axis=2)
        uniform = np.full(self.n_colors, 1 / self.n_colors)
        problem = Settings(C, uniform, uniform, self.eps, self.eps, self.batch_size)
        at, rng = Iterate.zero(self.n_colors), np.random.default_rng(0)
        while at.n_outer == 0 or problem.violation(at) > problem.tolerance:
            outer_loop(problem, at, rng)
        plan = at.plan_sum / at.weight_sum
        results = []
        for own, (S, T, P) in zip(pixels, ((X, Y, plan), (Y, X, plan.T)), strict=True):
            moved = P @ T / P.sum(axis=1, keepdims=True)
            nearest = cKDTree(S).query(own)[1]
            found = np.clip(own + (moved - S)[nearest], 0, 1)
            results.append(np.rint(255 * found).astype(np.uint8))
        shapes = [x.shape for x in photographs(self.is_small)]
        forth, back = (x.reshape(shape) for x, shape in zip(results, shapes, strict=True))
        return forth, back, at.n_outer

    def line(self) -> Line:
        """Recolour both photographs, and measure what became of the distance."""
        forth, back, loops = self.recoloured()
        first, second = photographs(self.is_small)
        return self.identity | {
            "before": sliced_distance(first, second),
            "after": [sliced_distance(forth, second), sliced_distance(back, first)],
            "n_iter": loops,
            "versions": versions(),
            "machine": machine(),
        }


def run(
    setup: ExperimentSetup,
    protocol: str = "authors",
    eps: Sequence[float] = (),
    sizes: Sequence[int] = (),
    batches: Sequence[int] = (),
) -> Page:
    """Solve what is missing, draw and summarise; quick is a tenth of the colours.

    ``sizes`` is the number of colours; ``eps`` and ``batches`` are of the authors' script.
    """
    is_extended = protocol == "extended"
    if is_extended and (eps or batches):
        option = "--eps" if eps else "--batches"
        raise InvalidProblem(
            f"{option} was given with --protocol extended, which certifies its plan to 1 %; it "
            "goes with --protocol authors (leave it out)"
        )
    own_size, script_size = (N_COLORS // 10, 100) if setup.quick else (N_COLORS, 500)
    own = [
        TransferTask(m, one(sizes, "--sizes", own_size) if is_extended else own_size)
        for m in METHODS
    ]
    script = ScriptTask(
        n_colors=script_size if is_extended else one(sizes, "--sizes", script_size),
        is_small=setup.quick,
        eps=one(eps, "--eps", SCRIPT_EPS),
        batch_size=one(batches, "--batches", 1),
    )
    store = setup.store(KEY)
    tasks = own if is_extended else [script]
    setup.solve(tasks, store)
    if script in store:
        _save(draw_script(script), setup.out / SCRIPT_FIGURE)
    if own[0] in store:
        _save(draw({task.method: task for task in own}), setup.out / FIGURE)
    arguments = f"--protocol {protocol} {setup.scale}"
    given = (("eps", eps), ("sizes", sizes), ("batches", batches))
    arguments += "".join(f" --{name} {x[0]:g}" for name, x in given if x)
    lines = store.lines([script, *own])
    return write(setup.out, lines, f"epsilot reproduce color-transfer {arguments}")


def draw_script(task: ScriptTask) -> Figure:
    """Return originals and results by the authors' script."""
    forth, back, _ = task.recoloured()
    first, second = photographs(task.is_small)
    figure: Figure = new_figure(15.0, 3.0)
    titles = ("source A", "target B", "A in the colours of B", "B in the colours of A")
    for ax, image, title in zip(
        figure.subplots(1, 4), (first, second, forth, back), titles, strict=True
    ):
        ax.imshow(image, interpolation="nearest")
        ax.set_title(title, loc="left", fontsize=11)
        ax.set_axis_off()
    return figure


def _save(figure: Figure, path: Path) -> None:
    quality = {"quality": 88}
    write_atomically(
        path, lambda file: figure.savefig(file, format="jpg", dpi=_DPI, pil_kwargs=quality)
    )


def write(out: Path, lines: Sequence[Line], command: str) -> Page:
    """Write the summary from the lines, with the pictures that are there."""
    found = statements(lines)
    blocks = _blocks(lines, found, command, out)
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
            if line["method"] == "pdasmd" or line["method"].startswith(SCRIPT):
                fall = 1 - after / line["before"]
                measured = f"the distance falls by {fall:.1%}"
                name = "PDASMD" if line["method"] == "pdasmd" else line["method"]
                where = f"{name}, {direction}"
                tests.append(Claim(text, where, measured, verdict(fall >= FALL)))
    return [JudgedClaim(text, "Appendix H", tuple(tests))]


def _blocks(
    lines: Sequence[Line], found: Sequence[JudgedClaim], command: str, out: Path
) -> list[Block]:
    rows = tuple(
        (
            str(line.get("solver", line["method"])),
            direction,
            f"{line['before']:.4f}",
            f"{after:.4f}",
            f"{1 - after / line['before']:.1%}",
            f"{line['value']:.5f}" if "value" in line else "–",
            f"{line['gap']:.2g}" if "gap" in line else "–",
            f"{line['seconds']:.2f}" if "seconds" in line else "–",
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
            "scikit-learn's two sample photographs, each in the colours of the other. By the "
            "authors' script: 500 random pixels of each, squared Euclidean cost, η = 0.01, "
            "marginal violation at most 0.01, l = 500, L̄ = 1/η; other pixels move with the nearest "
            "one that was drawn. Their photographs (a chicken and a turtle) are not bundled. "
            "Extended: palettes of cluster means, one certified plan for both directions, its "
            "barycentric maps, smoothed along the pictures' edges. Made by"
        ),
        Command(command),
        *(Picture(file, text) for file, text in CAPTIONS.items() if (out / file).exists()),
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
