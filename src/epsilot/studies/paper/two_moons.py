"""The figure of the two moons: source, target, transported points, decision boundaries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..._types import Matrix
from ...files import write_atomically
from ...show.plotting import COLOURS, new_figure
from ..lab.document import (
    Block,
    Command,
    Heading,
    Paragraph,
    Picture,
    Table,
    environment_table,
    to_markdown,
    write_text,
)
from ..lab.runner import in_processes, run_tasks
from ..lab.store import Line, Store
from .moons import CENTRE, KEY, Classifier, MoonTask, Sample, classifier

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.console import Console


ANGLES = (20, 40, 50, 90)
#: Rows of the figure: an entropic plan, and one close to the unregularised optimum.
GOALS = (("reg", 0.1), ("rtol", 0.01))
METHOD = "pdasmd"
FIGURE = "two-moons.png"
#: Half the side of a panel: all of them show the same square, whatever the rotation.
REACH = 1.95
_DPI = 100


def run(out: Path, quick: bool, seeds: int | None, jobs: int, console: Console) -> None:
    """Solve what is missing, draw and summarise; one repetition is all there is to draw."""
    tasks = [MoonTask(angle, 0, METHOD, goal) for goal in GOALS for angle in ANGLES]
    store = Store(out / "solves.jsonl", KEY)
    lines = run_tasks(tasks, store, console, in_processes(jobs))
    figure = draw(tasks)
    write_atomically(out / FIGURE, lambda file: figure.savefig(file, format="png", dpi=_DPI))
    write_text(out / "summary.md", to_markdown("The two moons", _blocks(lines)))


def draw(tasks: Sequence[MoonTask]) -> Figure:
    """Return the figure, a panel a solve: solving is quick enough to be done again."""
    columns = len({task.angle for task in tasks})
    figure: Figure = new_figure(3.8 * columns, 4.1 * (len(tasks) // columns) + 0.4)
    axes = figure.subplots(len(tasks) // columns, columns, squeeze=False).ravel()
    for ax, task in zip(axes, tasks, strict=True):
        data = task.sample()
        moved = task.adapter(data).transported_
        model = classifier("default").fit(moved, data.ys)
        error = 1 - model.score(data.X_test, data.y_test)
        _panel(ax, data, moved, model)
        name, value = task.goal
        goal = f"η = {value:g}" if name == "reg" else f"gap ≤ {value:.0%}"
        ax.set_title(f"{task.angle}°, {goal}: error {error:.3f}", loc="left", fontsize=11)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


def _panel(ax: Axes, data: Sample, moved: Matrix, model: Classifier) -> None:
    """Draw one adaptation."""
    x, y = (np.linspace(centre - REACH, centre + REACH, 160) for centre in CENTRE)
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    side = model.decision_function(grid).reshape(160, 160)
    ax.contourf(x, y, side, [-np.inf, 0, np.inf], colors=COLOURS[:2], alpha=0.10)
    ax.contour(x, y, side, [0], colors="0.15", linewidths=1.4)
    ax.scatter(data.Xs[:, 0], data.Xs[:, 1], s=7, color="0.72", label="source", linewidths=0)
    ax.scatter(
        data.Xt[:, 0],
        data.Xt[:, 1],
        s=16,
        facecolors="none",
        edgecolors="0.45",
        linewidths=0.6,
        label="target (unlabelled)",
    )
    for label, name in ((0, "upper"), (1, "lower")):
        points = moved[data.ys == label]
        ax.scatter(
            points[:, 0],
            points[:, 1],
            s=11,
            color=COLOURS[label],
            linewidths=0,
            label=f"transported source, {name} moon",
        )
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])


def _blocks(lines: Sequence[Line]) -> list[Block]:
    rows = tuple(
        (
            f"{line['angle']}°",
            f"{line['goal'][0]} = {line['goal'][1]:g}",
            f"{line['errors']['default']:.4f}",
            f"{line['value_linear']:.4f}",
            f"{line['gap']:.2g}",
            f"{line['n_iter']}",
        )
        for line in lines
    )
    return [
        Paragraph(
            "Appendix H's figure: labelled source, unlabelled rotated target, the source as PDASMD "
            "transports it (colours are the source's labels), and the decision boundary of a "
            "Gaussian-kernel SVM trained on it. The error is that on 2,000 further points of the "
            "target. As the paper says, the transported points fit the target, and the labels are "
            "right for most of it up to 50°; at 90° half of each moon is carried onto the other. "
            "Above, entropic plans, whose points are means over many targets and lie on the middle "
            "of the arcs, or between them where a source point has no clear destination; below, "
            "plans within 1 % of the unregularised optimum, whose points cover the target but "
            "carry the tips of each moon onto the other. Made by"
        ),
        Command("epsilot reproduce two-moons"),
        Picture(FIGURE, "Two moons rotated by 20°, 40°, 50° and 90°."),
        Table(("rotation", "goal", "error", "transport cost", "certified gap", "epochs"), rows),
        Heading("Environment"),
        environment_table(lines),
    ]
