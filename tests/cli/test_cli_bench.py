import pytest


def test_a_toy_run_prints_what_it_wrote(run, folder):
    wish = "--sizes 16 --problems random --solvers emd2 --rtol 0.01 --seeds 1"
    done = run("bench", "--out", "here", *wish.split())
    assert done.code == 0, done.err
    made = sorted(path.name for path in (folder / "here").iterdir())
    assert "summary.md" in made
    assert done.out.splitlines() == [f"here/{name}" for name in made]
    text = (folder / "here" / "summary.md").read_text()
    assert f"epsilot bench {wish}" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--solvers", "sinkhorm"), "solver 'sinkhorm' is unknown"),
        (("--problems", "pictures"), "problem 'pictures' is unknown"),
        (("--sizes", "large"), "--sizes is 'large'; it must be a list separated by commas"),
        (("--sizes", ","), "--sizes is ','"),
        (("--sizes", "1"), "the size is 1; it must be between 4 and 20000"),
        (("--rtol", "2"), "the rtol is 2"),
        (("--time-limit", "0"), "the time limit is 0"),
        (("--seeds", "0"), "--seeds"),
        (
            ("--images", "--sizes", "2"),
            "the size is 2; with --images it is the pixels along a side",
        ),
        (("--images", "--rtol", "0.1"), "--rtol was given with --images"),
        (("--dotmark", "nowhere"), "--dotmark is 'nowhere', which is no folder"),
    ],
)
def test_bad_values_are_refused_in_one_sentence(run, folder, arguments, message):
    done = run("bench", "--out", "here", *arguments)
    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert not (folder / "here").exists()
