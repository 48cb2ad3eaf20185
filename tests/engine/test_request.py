"""A request is checked when it is made, and says once what `solve`'s keywords are."""

import dataclasses
import inspect
import math

import pytest

import epsilot
from epsilot import InvalidProblem, UnknownMethod
from epsilot.engine import goal, kinds
from epsilot.engine.request import KEYWORDS, OF_PROBLEM, SAID, Request
from epsilot.problems.problem import make_problem
from sample_problems import M34

DEFAULTS = {f.name: f.default for f in dataclasses.fields(Request)}
SOLVE = inspect.signature(epsilot.solve).parameters


def test_solve_has_the_keywords_of_a_request_and_their_defaults():
    found = {name: p.default for name, p in SOLVE.items() if name not in {*OF_PROBLEM, "options"}}
    of_kinds = {name: word.default for name, word in kinds.keywords().items()}
    assert found == {name: DEFAULTS[name] for name in KEYWORDS} | of_kinds


def test_what_else_solve_has_describes_the_problem():
    assert tuple(inspect.signature(make_problem).parameters) == OF_PROBLEM
    assert SOLVE.keys() - set(KEYWORDS) == {*OF_PROBLEM, *kinds.keywords(), "options"}


def test_solve_has_the_types_of_a_request():
    for name in KEYWORDS:
        kind = Request.__annotations__[name]
        shown = kind if isinstance(kind, str) else str(kind).replace("<class '", "").rstrip("'>")
        assert SOLVE[name].annotation == shown, name


def test_each_keyword_reaches_the_request(monkeypatch, tmp_path):
    given = {
        "eps": None,
        "rtol": None,
        "reg": 0.5,
        "tol": 0.25,
        "method": "sinkhorn",
        "stop": "paper",
        "max_iter": 3,
        "max_seconds": 4.0,
        "potentials_init": ((), ()),
        "seed": 5,
        "n_threads": 6,
        "callback": print,
        "progress": True,
        "on_limit": "raise",
        "checkpoint": str(tmp_path / "c"),
        "resume": "r",
        "multiscale": False,
    }
    asked = []
    monkeypatch.setattr(
        "epsilot.api.solve.execute", lambda problem, request, clock: asked.append(request)
    )
    for changes in (
        {},
        {"eps": 1.0, "reg": None, "tol": None},
        {"rtol": 1.0, "reg": None, "tol": None},
    ):
        keywords = given | changes
        epsilot.solve(M34, **keywords, domain="log")
        found = {name: getattr(asked[-1], name) for name in KEYWORDS}
        assert found == keywords
        assert asked[-1].options == {"domain": "log"}


def test_each_field_has_a_sentence_and_a_place_in_the_documentation():
    for name, said in SAID.items():
        assert said.help.endswith("."), name
        assert name == "kind" or name in epsilot.solve.__doc__, name


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"eps": 0.1, "rtol": 0.1}, "eps and rtol were given"),
        ({"tol": 0.1}, "tol=0.1 was given without reg"),
        ({"eps": math.inf}, "eps is inf; it must be a positive finite"),
        ({"rtol": 1e-14}, "rtol is 1e-14; float64 arithmetic can certify about 1e-12"),
        ({"reg": 1.0, "tol": -1.0}, "tol is -1.0"),
        ({"stop": "never"}, "stop is 'never'"),
        ({"on_limit": None}, "on_limit is None"),
        ({"max_iter": 0.5}, "max_iter is 0.5"),
        ({"max_seconds": -1}, "max_seconds is -1"),
        ({"seed": -1}, "seed is -1"),
        ({"n_threads": 0}, "n_threads is 0"),
        ({"callback": 1}, "callback is 1"),
        ({"progress": 1}, "progress is 1"),
        ({"multiscale": 1}, "multiscale is 1"),
        ({"checkpoint": 1}, "checkpoint is 1"),
        ({"checkpoint": "/none/c.npz"}, "no directory /none"),
        ({"resume": 1}, "resume is 1"),
        ({"options": 1}, "options is 1"),
    ],
)
def test_a_request_that_makes_no_sense_is_never_made(changes, words):
    with pytest.raises(InvalidProblem, match=words) as caught:
        Request(**changes)
    assert "\n" not in str(caught.value)


def test_a_method_is_a_name():
    with pytest.raises(UnknownMethod, match="method is 3"):
        Request(method=3)


def test_a_request_does_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Request().eps = 1.0


def test_keywords_that_are_no_field_are_options():
    request = Request.of({"rtol": 0.1, "domain": "log"})
    assert (request.rtol, request.options) == (0.1, {"domain": "log"})


@pytest.mark.parametrize(
    "call",
    [
        lambda **k: epsilot.solve([[0.0, 1.0], [1.0, 0.0]], **k),
        lambda **k: epsilot.solve_sample([0.0, 1.0, 3.0], [0.5, 2.0], **k),
        lambda **k: epsilot.solve_grid([1.0, 2.0, 1.0], [2.0, 1.0, 1.0], **k),
    ],
    ids=["solve", "solve_sample", "solve_grid"],
)
def test_a_warning_names_the_line_of_the_caller(call):
    with pytest.warns(epsilot.ConvergenceWarning) as caught:
        call(method="sinkhorn", eps=1e-9, max_iter=0)
    assert caught[0].filename == __file__


def test_what_is_not_asked_for_is_one_per_cent():
    assert goal.RTOL == 0.01
    assert "0.01" in SAID["rtol"].help
