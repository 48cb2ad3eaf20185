import builtins
import sys

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

import epsilot
from epsilot.display import plan_plots, plan_samples, plotting
from epsilot.errors import InvalidProblem, MissingExtra
from epsilot.files.images import grid_cost


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_convergence_shows_the_history(results):
    result = results["sinkhorn"]
    (axes,) = plotting.plot_convergence(result).axes
    upper, lower = axes.lines[:2]
    np.testing.assert_array_equal(upper.get_ydata(), [r.upper for r in result.history])
    np.testing.assert_array_equal(lower.get_ydata(), [r.lower for r in result.history])
    np.testing.assert_array_equal(upper.get_xdata(), [r.operations for r in result.history])
    assert legend(axes) == ["upper bound", "lower bound", "lower bound + target"]
    assert axes.get_xlabel() == "arithmetic operations"
    assert "units of M" in axes.get_ylabel()


def test_convergence_draws_on_given_axes(results):
    figure = Figure()
    axes = figure.add_subplot()
    assert isinstance(axes, Axes)
    assert plotting.plot_convergence(results["sinkhorn"], ax=axes) is figure
    assert len(axes.lines) == 3


def test_a_run_with_uncounted_operations_is_drawn_against_time(results):
    (axes,) = plotting.plot_convergence(results["exact"]).axes
    assert axes.get_xlabel() == "solver time (seconds)"


def test_the_entropic_objective_is_named():
    result = epsilot.solve(grid_cost((2, 2)), reg=0.5, method="sinkhorn")
    (axes,) = plotting.plot_convergence(result).axes
    assert axes.get_ylabel().startswith("entropic objective")


def test_compare_draws_each_method_in_its_own_colour(results):
    figure = plotting.plot_compare(results)
    left, right = figure.axes
    assert [line.get_label().split(":")[0] for line in right.lines] == [
        "exact",
        "sinkhorn",
        "target",
    ]
    assert len({line.get_color() for line in right.lines}) == 3
    assert [line.get_label().split(":")[0] for line in left.lines] == ["sinkhorn", "target"]
    for axes in (left, right):
        assert axes.get_xscale() == axes.get_yscale() == "log"


def test_a_run_that_made_no_step_is_drawn_without_data(tmp_path):
    result = epsilot.solve(
        grid_cost((2, 3)), eps=1e-3, max_iter=0, on_limit="ignore", method="sinkhorn"
    )
    plotting.plot_compare({"sinkhorn": result}, tmp_path / "t.png")
    plotting.save_convergence(result, tmp_path / "t.png")


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf", "PNG"])
def test_pictures_of_several_types(results, tmp_path, suffix):
    path = tmp_path / f"t.{suffix}"
    plotting.plot_compare(results, path)
    plotting.save_convergence(results["sinkhorn"], path)
    assert path.stat().st_size > 1000
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("name", ["t.doc", "t", "none/t.png"])
def test_pictures_that_cannot_be_written(results, tmp_path, name):
    with pytest.raises(InvalidProblem):
        plotting.check_picture(tmp_path / name)
    with pytest.raises(InvalidProblem):
        plotting.plot_compare(results, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_no_window_system_and_no_global_state_is_touched(results):
    plotting.plot_compare(results)
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    real = builtins.__import__

    def without_matplotlib(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.delitem(sys.modules, "epsilot.display.notebook_figure", raising=False)
    monkeypatch.setattr(builtins, "__import__", without_matplotlib)
    with pytest.raises(MissingExtra, match=r'pip install "epsilot\[plot\]"'):
        plotting.check_picture(tmp_path / "t.png")


def texts(figure):
    """Return all texts of a figure."""
    return " ".join(
        artist.get_text() for artist in figure.findobj(match=lambda a: hasattr(a, "get_text"))
    )


def test_the_demo_shows_the_certificates_of_all_results(images, results, tmp_path):
    figure = plan_plots.plot_demo(*images, results, tmp_path / "demo.png")
    written = texts(figure)
    for name, result in results.items():
        assert name in written
        assert f"{result.lower_bound:.6g} ≤ OT" in written
    with Image.open(tmp_path / "demo.png") as picture:
        assert min(picture.size) > 600


@pytest.mark.parametrize("entries", [0, 1 << 22])
def test_large_plans_are_drawn_as_distances(images, results, entries, monkeypatch):
    monkeypatch.setattr(plan_plots, "MAX_DRAWN_ENTRIES", entries)
    written = texts(plan_plots.plot_demo(*images, results))
    assert ("Mean distance travelled" in written) == (entries == 0)
    assert ("Transport plan" in written) == (entries > 0)


def test_cell_sums_preserve_the_total(rng):
    field = rng.random((35, 2))
    cells = plan_samples.cell_sums(field, (5, 7), 3)
    assert cells.shape == (6, 2)
    np.testing.assert_allclose(cells.sum(axis=0), field.sum(axis=0))
