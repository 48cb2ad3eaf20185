from PIL import Image


def test_demo_writes_a_picture_and_two_certificates(run, folder):
    done = run("demo", "--side", 6, "--json")
    assert done.code == 0
    assert len(done.json["results"]) == 2
    for result in done.json["results"]:
        assert result["converged"]
        assert result["gap"] <= 0.02
    assert done.json["picture"] == "demo/epsilot-demo.png"
    with Image.open(folder / "demo" / "epsilot-demo.png") as picture:
        assert min(picture.size) > 600


def test_demo_prints_plain_lines(run, folder):
    done = run("demo", "--side", 5, "--eps", 0.1, "--seed", 4, "--out", "d.svg")
    assert done.code == 0
    assert done.err == ""
    assert done.out.count("certified\n") == 2
    assert done.out.endswith("picture: d.svg\n")
    assert (folder / "d.svg").exists()
