import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from epsilot.applications.pictures import ProfiledImage, read_picture, write_picture


@pytest.fixture
def pictures(folder):
    """Write pictures of all modes into the folder."""
    rng = np.random.default_rng(0)
    rgb = rng.integers(0, 120, (12, 16, 3)).astype(np.uint8)
    warm = Image.fromarray(rng.integers(130, 255, (10, 9, 3)).astype(np.uint8))
    image = Image.fromarray(rgb)
    warm.save("warm.png")
    warm.convert("L").save("pale.png")
    image.save("RGB.png")
    image.convert("L").save("L.png")
    image.convert("LA").save("LA.png")
    image.convert("1").save("1.png")
    image.convert("P").save("P.png")
    image.convert("CMYK").save("CMYK.tif")
    clear = image.copy()
    clear.putalpha(Image.fromarray(rng.integers(0, 255, (12, 16)).astype(np.uint8)))
    clear.save("RGBA.png")
    Image.fromarray(rng.integers(0, 30000, (12, 16)).astype(np.uint16)).save("I16.png")
    (folder / "broken.png").write_bytes((folder / "RGB.png").read_bytes()[:60])
    return folder


QUICK = ("--colors", 30)


@pytest.mark.parametrize(
    ("source", "mode"),
    [
        ("RGB.png", "RGB"),
        ("RGBA.png", "RGBA"),
        ("L.png", "RGB"),
        ("LA.png", "RGBA"),
        ("1.png", "RGB"),
        ("P.png", "RGB"),
        ("CMYK.tif", "RGB"),
    ],
)
@pytest.mark.usefixtures("pictures")
def test_pictures_of_all_modes(run, source, mode):
    done = run("transfer", source, "warm.png", "-o", "out.png", "--json", *QUICK)
    assert done.code == 0, done.err
    assert done.json["converged"]
    assert done.json["files"] == {"out": "out.png"}
    with Image.open("out.png") as image:
        assert image.mode == mode
        assert image.size == (16, 12)
        assert np.asarray(image)[..., :3].mean() > 120
        if mode == "RGBA":
            kept = read_picture(source).array[..., -1]
            np.testing.assert_array_equal(np.asarray(image)[..., 3], kept)


@pytest.mark.usefixtures("pictures")
def test_sixteen_bits_are_kept(run):
    assert run("transfer", "I16.png", "pale.png", "-o", "grey.png", *QUICK).code == 0
    grey = read_picture("grey.png").array
    assert grey.dtype == np.uint16
    assert grey.mean() > 33000
    assert run("transfer", "I16.png", "warm.png", "-o", "deep.png", *QUICK).code == 0
    content = Path("deep.png").read_bytes()
    assert content[24:26] == b"\x10\x02"  # 16 bits, RGB
    color = read_picture("deep.png").array
    assert color.shape == (12, 16, 3)
    assert color.mean() > 120


@pytest.mark.usefixtures("pictures")
def test_both_directions_and_plain_lines(run):
    done = run("transfer", "RGB.png", "warm.png", "-o", "a.jpg", "--back", "b.png", *QUICK)
    assert done.code == 0
    assert done.out.startswith("Certified\n  source: RGB.png (16 × 12, RGB, 8-bit)\n")
    assert "gap: " in done.out
    assert done.err == ""
    assert read_picture("a.jpg").array.shape == (12, 16, 3)
    assert read_picture("b.png").array.mean() < 90


@pytest.mark.usefixtures("pictures")
def test_the_method_and_the_goal_are_passed_on(run):
    goal = ("--method", "pdasmd", "--eps", 0.05, "--palette", "sample", "--smoothing", 0)
    done = run("transfer", "RGB.png", "warm.png", "-o", "a.png", "--json", *goal, *QUICK)
    assert done.json["method"] == "pdasmd"
    assert done.json["target"] == 0.05


@pytest.mark.usefixtures("pictures")
def test_stopping_early_is_exit_code_1_and_still_writes(run, folder):
    limit = ("--method", "sinkhorn", "--eps", 1e-9, "--max-iter", 1)
    done = run("transfer", "RGB.png", "warm.png", "-o", "a.png", *limit, *QUICK)
    assert done.code == 1
    assert done.out.startswith("Stopped before the target\n")
    assert (folder / "a.png").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.png", "warm.png", "-o", "o.png"], "none.png does not exist"),
        (["broken.png", "warm.png", "-o", "o.png"], "broken.png cannot be read as an image"),
        (["M.npy", "warm.png", "-o", "o.png"], "M.npy cannot be read as an image"),
        (["RGB.png", ".", "-o", "o.png"], ". is a directory"),
        (["RGB.png", "warm.png", "-o", "none/o.png"], "none/o.png cannot be written"),
        (["RGB.png", "warm.png", "-o", "o.docx"], "cannot be written; choose .png"),
        (["RGBA.png", "warm.png", "-o", "o.jpg"], "cannot hold the source's transparency"),
        (["I16.png", "pale.png", "-o", "o.jpg"], "cannot hold the source's 16 bits"),
        (["I16.png", "warm.png", "-o", "o.tif"], "16 bits per colour channel"),
        (["RGB.png", "warm.png", "-o", "o.png", "--palette", "best"], "palette is 'best'"),
        (["RGB.png", "warm.png", "-o", "o.png", "--method", "exakt"], "did you mean exact"),
    ],
    ids=lambda x: " ".join(x) if isinstance(x, list) else "",
)
@pytest.mark.usefixtures("pictures")
def test_bad_input_is_one_sentence_and_exit_code_2(run, arguments, message):
    done = run("transfer", *arguments)
    assert done.code == 2
    assert done.out == ""
    assert message in done.err
    assert done.err.startswith("epsilot: ")
    assert done.err.count("\n") == 1


@pytest.mark.usefixtures("pictures")
@pytest.mark.parametrize(("package", "extra"), [("PIL", "plot"), ("sklearn", "sklearn")])
def test_a_missing_package_is_named_with_its_extra(run, monkeypatch, package, extra):
    for name in [n for n in sys.modules if n.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "epsilot.applications.color_transfer", raising=False)
    monkeypatch.setitem(sys.modules, f"{package}.base", None)
    monkeypatch.setitem(sys.modules, package, None)
    done = run("transfer", "RGB.png", "warm.png", "-o", "o.png")
    assert done.code == 2
    assert f'pip install "epsilot[{extra}]"' in done.err


def test_colours_of_sixteen_bits_survive_the_file(tmp_path, rng):
    array = rng.integers(0, 65536, (5, 7, 3)).astype(np.uint16)
    write_picture(tmp_path / "deep.png", ProfiledImage(array))
    # pillow reads such files in eight bits: the high bytes.
    np.testing.assert_array_equal(read_picture(tmp_path / "deep.png").array, array >> 8)
