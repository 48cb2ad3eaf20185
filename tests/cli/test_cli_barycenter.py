import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import epsilot
from epsilot.barycenters.execute import METHODS
from epsilot.cli import app


@pytest.fixture
def images(folder):
    """Write three images of one shape, and some that are not."""
    for k, (i, j) in enumerate([(1, 1), (6, 2), (3, 8)]):
        array = np.zeros((10, 12), dtype=np.uint8)
        array[i : i + 3, j : j + 3] = 200
        Image.fromarray(array).save(f"{k}.png")
    Image.fromarray(np.zeros((10, 12), dtype=np.uint8)).save("black.png")
    Image.fromarray(np.ones((10, 11), dtype=np.uint8)).save("narrow.png")
    return folder


THREE = ("barycenter", "0.png", "1.png", "2.png")


@pytest.mark.parametrize("name", ["out.png", "out.npy", "out.csv", "out.jpg"])
@pytest.mark.usefixtures("images")
def test_writes_what_the_name_asks_for(run, name):
    squared = "--metric", "sqeuclidean"
    found = run(*THREE, "-o", name, "--weights", "2,1,1", *squared, "--json")
    assert found.code == 0
    assert found.json["converged"]
    assert found.json["gap"] <= found.json["target"]
    assert found.json["weights"] == [0.5, 0.25, 0.25]
    match name[-3:]:
        case "npy":
            b = np.load(name)
        case "csv":
            b = np.loadtxt(name, delimiter=",")
        case _:
            b = np.asarray(Image.open(name)).astype(float)
            assert b.max() > 240
            b /= b.sum()
    assert b.shape == (10, 12)
    assert b.sum() == pytest.approx(1.0)
    i = (b.sum(axis=1) * np.arange(10)).sum()
    assert i == pytest.approx(0.5 * 2 + 0.25 * 7 + 0.25 * 4, abs=0.5)


@pytest.mark.usefixtures("images")
def test_units_and_metric_are_those_of_the_library(run):
    found = run(*THREE, "-o", "out.npy", "--json").json
    images = [np.asarray(Image.open(f"{k}.png"), dtype=float) for k in range(3)]
    expected = epsilot.barycenter_grid([image / image.sum() for image in images])
    assert found["value"] == expected.value


@pytest.mark.usefixtures("images")
def test_lines_for_people(run):
    found = run(*THREE, "-o", "out.png", "--metric", "cityblock")
    assert found.code == 0
    assert "3 images of 10 × 12" in found.out
    assert "Certified" in found.out


@pytest.mark.usefixtures("images")
def test_a_run_is_saved_and_resumed(run):
    call = *THREE, "-o", "out.npy", "--method", "anderson", "--rtol", "1e-3"
    whole = run(*call, "--json").json
    b = np.load("out.npy")
    assert run(*call, "--max-iter", "3", "--checkpoint", "run.npz").code == 1
    assert run(*call, "--resume", "run.npz", "--json").json["value"] == whole["value"]
    np.testing.assert_array_equal(np.load("out.npy"), b)


REFUSED = [
    (("0.png", "narrow.png", "-o", "out.png"), "all images must have the same shape"),
    (("0.png", "black.png", "-o", "out.png"), "completely black"),
    (("0.png", "none.png", "-o", "out.png"), "none.png"),
    (("0.png", "-o", "out.xyz"), "file type"),
    (("0.png", "-o", "no/where/out.png"), "no/where"),
    (("0.png", "1.png", "-o", "out.png", "--weights", "1,a"), "no list of numbers"),
    (("0.png", "1.png", "-o", "out.png", "--weights", "1"), "weights has shape"),
    (("0.png", "-o", "out.png", "--method", "sinkhorn"), "does not find barycentres"),
    (("0.png", "-o", "out.png", "--metric", "euclidean"), "a grid serves"),
    (("0.png", "-o", "out.png", "--eps", "-1"), "eps"),
]


@pytest.mark.parametrize(("args", "sentence"), REFUSED)
def test_bad_input_is_one_sentence_and_writes_nothing(run, images, args, sentence):
    found = run("barycenter", *args)
    assert found.code == 2
    assert sentence in found.err
    assert not list(images.glob("out*"))


@pytest.mark.usefixtures("images")
def test_a_limit_is_exit_code_1(run, images):
    found = run(*THREE, "-o", "out.png", "--method", "ibp", "--max-iter", "1")
    assert found.code == 1
    assert (images / "out.png").exists()


def test_help_names_the_methods():
    help_ = CliRunner().invoke(app, ["barycenter", "--help"], env={"COLUMNS": "200"}).output
    for name in METHODS:
        assert name in help_
