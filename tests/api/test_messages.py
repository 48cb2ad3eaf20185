"""What messages are, whatever was wrong: one sentence, short, in the user's words and sizes."""

import re

import numpy as np
import pytest
from broken_calls import CALLS, ON_FEW, X, Y

import epsilot
from epsilot import files, wording

#: Characters of the longest message.
LONGEST = 300
#: What no message has: private names, places in memory, drafts of files, types as Python says them.
UNSEEMLY = re.compile(
    r"(?<![A-Za-z0-9])_[A-Za-z]|0x[0-9a-f]{4}|\.tmp|<class|Traceback|bug in epsilot"
)


def check_message(text):
    assert "\n" not in text
    assert len(text) <= LONGEST, text
    assert not UNSEEMLY.search(text), text
    assert text.endswith((".", ")")), text


@pytest.mark.parametrize("name", CALLS)
def test_broken_calls_are_refused_in_one_short_sentence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    n_refused = 0
    for call in CALLS[name]:
        try:
            call()
        except (epsilot.InvalidProblem, epsilot.UnknownMethod) as error:
            check_message(str(error))
            n_refused += 1
    assert n_refused > 0.9 * len(CALLS[name])


@pytest.mark.parametrize("name", ON_FEW)
def test_messages_have_the_sizes_that_were_given(name):
    with pytest.raises(epsilot.InvalidProblem) as caught:
        ON_FEW[name]()
    text = str(caught.value)
    check_message(text)
    assert "PointCloud(" not in text
    if " x " in text.replace("n x m", ""):
        assert "31 x 19" in text


@pytest.mark.parametrize(
    ("keywords", "is_suggested"),
    [
        ({"method": "auto"}, False),
        ({"method": "auto", "reg": 1e-3, "tol": 1e-6}, False),
        ({"method": "greenkhorn"}, True),
    ],
)
def test_auto_is_suggested_only_to_those_who_have_not_asked_for_it(keywords, is_suggested):
    M = np.abs(np.subtract.outer(np.arange(300.0), np.arange(300.0) ** 1.1))
    with pytest.warns(epsilot.ConvergenceWarning) as said:
        result = epsilot.solve(M, max_iter=0, **keywords)
    text = str(said[0].message)
    assert len(text) <= LONGEST
    assert not UNSEEMLY.search(text)
    assert ("auto" in text) == is_suggested
    assert "auto" not in str(result.status)


def test_a_barycentre_under_auto_does_not_suggest_auto():
    H = np.random.default_rng(0).dirichlet(np.ones(4), 3)
    with pytest.warns(epsilot.ConvergenceWarning) as said:
        epsilot.barycenter(H, 1 - np.eye(4), reg=0.1, tol=1e-12, max_iter=1)
    assert "auto" not in str(said[0].message)


def test_a_refused_batch_says_one_sentence():
    with pytest.raises(epsilot.InvalidProblem) as caught:
        epsilot.solve_sample_batch([X, 1e200 * X], [Y, Y])
    check_message(str(caught.value))
    assert "1 of 2 problems were refused, first problem 1: " in str(caught.value)


def test_values_and_paths_are_shown_short_and_on_one_line():
    assert wording.shown("a\n" * 500).count("\n") == 0
    assert len(wording.shown("x" * 10**6)) < 70
    assert wording.shown(object()) == "<object object>"
    assert wording.named("/a/b\nc.csv") == "/a/b c.csv"
    assert wording.named("x/" * 500 + "end.csv").endswith("/x/end.csv")
    assert len(wording.named("x" * 5000)) < 110
    assert wording.first_line(ValueError("one.\ntwo")) == "one"
    assert wording.first_line(OSError(28, "No space left", "/x.tmp")) == "No space left"
    assert wording.first_line(ValueError()) == "ValueError"


def test_a_failed_write_names_the_file_and_not_its_draft(tmp_path):
    def full(file):
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left") as caught:
        files.write_atomically(tmp_path / "out.npz", full)
    assert caught.value.filename == str(tmp_path / "out.npz")
    assert list(tmp_path.iterdir()) == []
