"""Each keyword of `solve` is declared once, as a field of `Request`; the rest follows from it."""

import dataclasses
import inspect
import math
import re

import pytest

import epsilot
from epsilot import InvalidProblem, UnknownMethod, UnknownOption
from epsilot.engine import goal
from epsilot.engine.request import DECLARED, KEYWORDS, OF_PROBLEM, Request, meant_keywords
from epsilot.problems import kinds
from epsilot.problems.problem import make_problem
from sample_problems import M34

DEFAULTS = {f.name: f.default for f in dataclasses.fields(Request)}
SOLVE = inspect.signature(epsilot.solve).parameters


def test_solve_has_the_declared_keywords_and_defaults():
    found = {name: p.default for name, p in SOLVE.items() if name not in {*OF_PROBLEM, "options"}}
    of_kinds = {name: word.default for name, word in kinds.keywords().items()}
    assert found == {name: DEFAULTS[name] for name in KEYWORDS} | of_kinds


def test_the_other_arguments_of_solve_describe_the_problem():
    assert tuple(inspect.signature(make_problem).parameters) == (*OF_PROBLEM, "can_shift")
    assert SOLVE.keys() - set(KEYWORDS) == {*OF_PROBLEM, *kinds.keywords(), "options"}


def test_solve_has_the_declared_types():
    for name in KEYWORDS:
        kind = Request.__annotations__[name]
        shown = kind if isinstance(kind, str) else str(kind).replace("<class '", "").rstrip("'>")
        assert SOLVE[name].annotation == shown, name


def test_solve_documents_each_argument_once():
    parameters = epsilot.solve.__doc__.split("Parameters\n")[1].split("Returns\n")[0]
    lines = re.findall(r"^    ((?:\w+, )*\w+) :", parameters, flags=re.MULTILINE)
    documented = [name for line in lines for name in line.split(", ")]
    assert sorted(documented) == sorted(SOLVE.keys() - {"options"})
    assert "**options" in parameters


@pytest.mark.parametrize("name", KEYWORDS)
def test_each_keyword_of_solve_reaches_the_request(name, monkeypatch):
    asked, value = [], object()
    monkeypatch.setattr("epsilot.engine.request._CHECKED", [])
    monkeypatch.setattr(
        "epsilot.api.solve.run_request", lambda request, *_, **__: asked.append(request)
    )
    monkeypatch.setattr(Request, "_check_target", lambda self: None)
    epsilot.solve(M34, **{name: value}, domain="log")
    assert getattr(asked[0], name) is value
    assert asked[0].options == {"domain": "log"}
    others = {other: getattr(asked[0], other) for other in KEYWORDS if other != name}
    assert others == {other: DEFAULTS[other] for other in others}


def test_help_is_one_sentence():
    for name, declared in (DECLARED | kinds.keywords()).items():
        assert declared.help is None or declared.help.endswith("."), name


def test_names_of_other_libraries_mean_one_keyword():
    aliases = [alias for word in (DECLARED | kinds.keywords()).values() for alias in word.aliases]
    assert len(set(aliases)) == len(aliases)
    assert not set(aliases) & SOLVE.keys()
    assert {meant_keywords()[name] for name in SOLVE if name != "options"} == {*SOLVE} - {"options"}


@pytest.mark.parametrize(
    ("name", "meant"),
    [("verbose", "progress"), ("n_job", "n_threads"), ("max_iters", "max_iter"), ("mas", "mass")],
)
@pytest.mark.parametrize("expected", [UnknownOption, InvalidProblem, UnknownMethod, TypeError])
def test_an_unknown_keyword_is_a_type_error_that_suggests_the_nearest(name, meant, expected):
    sentence = rf"^solve\(\) has no argument '{name}'; did you mean {meant}\?$"
    with pytest.raises(expected, match=sentence):
        epsilot.solve(M34, **{name: 1})


@pytest.mark.parametrize(
    "call",
    [
        lambda **k: epsilot.solve_sample([0.0, 1.0], [0.0, 2.0], **k),
        lambda **k: epsilot.solve_grid([1.0, 2.0], [2.0, 1.0], **k),
        lambda **k: epsilot.solve_batch([M34], **k),
        lambda **k: epsilot.solve_sample_batch([[0.0, 1.0]], [[0.0, 2.0]], **k),
        lambda **k: epsilot.pairwise([[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]], **k),
    ],
)
@pytest.mark.parametrize("method", ["auto", "sinkhorn"])
def test_every_call_rejects_an_unknown_keyword_before_it_solves(call, method):
    with pytest.raises(UnknownOption, match="'verbose'; did you mean progress"):
        call(verbose=True, method=method)


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"zzz": 1}, r"^solve\(\) has no argument 'zzz'; leave it out"),
        (
            {"method": "sinkhorn", "domian": 1},
            "^sinkhorn has no option 'domian'; did you mean domain",
        ),
        (
            {"method": "exact", "batch_size": 3},
            r"^exact has no option 'batch_size', which \w+ and .* method='\w+'\)",
        ),
    ],
)
def test_an_unknown_option_gets_a_sentence_with_a_remedy(keywords, sentence):
    with pytest.raises(UnknownOption, match=sentence):
        epsilot.solve(M34, **keywords)


@pytest.mark.parametrize(
    ("keywords", "identity"),
    [
        ({}, {"stop": "certificate", "seed": 0}),
        (
            {"eps": 0.5, "max_iter": 3, "progress": True, "mass": 2.0, "domain": "log"},
            {"eps": 0.5, "stop": "certificate", "seed": 0, "mass": 2.0},
        ),
    ],
)
def test_a_resumed_run_repeats_target_stop_seed_and_kind(keywords, identity):
    found = Request.of(keywords).identity()
    assert identity.items() <= found.items()
    assert found.keys().isdisjoint({"max_iter", "progress", "domain"})


def test_a_report_writes_the_keywords_that_determine_the_result():
    keywords = {"rtol": 0.1, "n_threads": 2, "progress": True, "domain": "log"}
    request = Request.of(keywords | {"unbalanced": (1.0, math.inf)})
    assert request.written() == {
        "rtol": "0.1",
        "unbalanced": "(1.0, math.inf)",
        "unbalanced_type": "'kl'",
        "domain": "'log'",
    }


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
    assert "0.01" in DECLARED["rtol"].help
