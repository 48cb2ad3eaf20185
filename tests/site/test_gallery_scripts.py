"""Every script of docs/gallery runs, some of them at smaller size, and leaves a picture."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("sklearn")

DOCS = Path(__file__).parents[2] / "docs"
SCRIPTS = sorted((DOCS / "gallery").glob("*.py"))
#: What is smaller here: constants of a script, by their names.
SIZES: dict[str, dict[str, object]] = {
    "audit_of_others": {"N": 30},
    "barycenters_of_digits": {"DIGITS": [3], "EACH": 3, "ZOOM": 1},
    "color_transfer": {"COLORS": 60},
    "digits_nearest": {"N": 40},
    "gradient_flow": {"N": 40, "STEPS": [0, 1, 2, 3, 5]},
    "gromov_copy": {"N": 40},
    "gromov_starts": {"N": 20, "STARTS": 4},
    "image_warping": {"SIDE": 32},
    "is_pot_right": {"TRIALS": 2, "STEPS": [10, 30]},
    "large_clouds": {"N": 3000},
    "megapixel": {"SIDE": 64},
    "metrics_and_orders": {"N": 12},
    "methods_racing": {"SIDE": 6, "SECONDS": 0.2},
    "partial_matching": {"N": 30, "STRAYS": 10, "SHARES": [0.5, 0.75, 1.0]},
    "persistence_diagrams": {"NOISE": 20},
    "pdasmd_theory": {"SIDE": 4, "SEEDS": 2, "EPS": [0.4, 0.2], "BATCHES": [1, 4]},
    "shape_morph": {"SIDE": 12, "STEPS": 3, "RTOL": 0.1},
    "train_network": {"STEPS": 25, "BATCH": 64},
    "unbalanced_growth": {"N": 40},
}
#: What must be true of its variables afterwards.
FACTS = {
    # of the last library: OTT-JAX, or POT without it
    "audit_of_others": lambda x: all(x["upper"] >= x["exact"].value) and max(x["missed"]) > 1e-3,
    "barycenters_of_digits": lambda x: all(r.converged for r in x["results"].values()),
    "digits_nearest": lambda x: x["batch"].converged.all(),
    "flow_on_a_graph": lambda x: x["result"].converged and x["flows"].data.max() < 1,
    "near_pairs": lambda x: x["excess"] > 0 and x["result"].converged,
    "first_certificate": lambda x: x["slack"].min() > -1e-12 and x["res"].gap <= 1e-4,
    "gromov_copy": lambda x: x["result"].converged and x["right"] > 0.5,
    "gromov_starts": lambda x: all(
        min(x["ends"][name]) >= result.lower_bound for name, result in x["results"].items()
    ),
    "is_pot_right": lambda x: (
        max(x["theirs"]) > 1.5 * x["lower"][-1] and min(x["upper"]) > x["best"]["lower_bound"]
    ),
    "large_clouds": lambda x: x["res"].converged,
    "megapixel": lambda x: x["res"].converged,
    "metrics_and_orders": lambda x: all(d.gap < 1e-9 for d in x["distances"].values()),
    "methods_racing": lambda x: sum(run.converged for run in x["runs"].values()) > 5,
    "partial_matching": lambda x: (
        all(run.converged for run in x["runs"].values())
        and not x["runs"][x["share"]].plan[x["N"] :].any()
    ),
    "persistence_diagrams": lambda x: x["found"].gap < 1e-9 and len(x["pairs"]) >= x["NOISE"],
    "pdasmd_theory": lambda x: (x["taken"] < x["proved"][:, None]).all(),
    "shape_morph": lambda x: all(r.converged for r in x["results"].values()),
    "train_network": lambda x: x["values"][-1] < x["values"][0] / 2,
    "two_moons": lambda x: x["is_wrong"].mean() < 0.05,
    "unbalanced_growth": lambda x: (
        [run.plan.sum() < 0.9 for run in x["runs"].values()] == [False, True, True]
    ),
    "what_eps_buys": lambda x: all(run.gap <= eps for eps, run in x["runs"].items()),
}


def module(name: str, path: Path):
    spec = importlib.util.spec_from_file_location(name, path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


draw = module("docs_draw", DOCS / "draw.py")
pictures = module("docs_pictures", DOCS / "_ext" / "pictures.py")


@pytest.mark.filterwarnings("ignore")  # of drawing and of other libraries
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_ends_in_a_picture(script):
    if missing := pictures.missing(script):
        pytest.skip(f"{', '.join(missing)} is not installed")
    figure, names = draw.run(script, SIZES.get(script.stem))
    figure.set_dpi(40)
    figure.canvas.draw()
    shades = np.asarray(figure.canvas.buffer_rgba())[..., :3]
    assert np.unique(shades.reshape(-1, 3), axis=0).shape[0] > 20
    draw.plt.close("all")
    assert FACTS.get(script.stem, bool)(names)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_is_short_and_has_a_title(script):
    lines = script.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 60
    title, line = lines[1:3]
    assert line == "=" * len(title)


def test_scripts_that_cannot_run_are_left_out_by_name_and_by_path(monkeypatch):
    monkeypatch.setattr(pictures, "find_spec", lambda name: None)
    pattern = re.compile(pictures.missing_scripts(DOCS / "gallery"))
    for name in ("train_network.py", "gallery/train_network.py"):
        assert pattern.search(name)
    assert not pattern.search("two_moons.py")


def test_a_size_that_no_script_has_is_refused():
    with pytest.raises(KeyError, match="NO_SUCH"):
        draw.run(DOCS / "gallery" / "first_certificate.py", {"NO_SUCH": 1})
