"""A kind of problem is a file in `problems` and one row of `KINDS`; every door then has it."""

import inspect
import sys
from dataclasses import dataclass, replace
from types import ModuleType
from typing import ClassVar

import numpy as np
import pytest

import epsilot
from epsilot import InvalidProblem, solve
from epsilot.cli.options import request_options
from epsilot.engine.request import Request
from epsilot.errors import UnknownMethod
from epsilot.problems import kinds
from epsilot.problems.balanced import Balanced, Transport
from epsilot.problems.kinds import KindEntry, KindKeyword
from epsilot.problems.problem import make_problem
from epsilot.solvers import register, unregister
from epsilot.solvers.method_info import MethodInfo
from epsilot.solvers.small_simplex import SmallSimplex

M = np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 1.0]])


@dataclass(frozen=True)
class Stretched:
    """Stand in for a kind: transport with costs times a factor."""

    factor: float
    power: int

    def __post_init__(self):
        if self.factor <= 0:
            raise InvalidProblem(f"factor is {self.factor}; it must be positive.")

    def problem(self, given):
        M, a, b, normalize, _ = given
        C = M.block(0, M.shape[0]) if isinstance(M, epsilot.Dense) else np.asarray(M)
        return make_problem(self.factor**self.power * C, a, b, normalize=normalize)

    def objective(self, problem, reg):
        return Transport(problem)

    @property
    def keywords(self):
        return {"factor": self.factor, "power": self.power}


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    """Add two kinds: what a new one adds to the front door is one entry."""
    module = ModuleType("epsilot.problems.toy")
    module.Stretched = Stretched
    monkeypatch.setitem(sys.modules, module.__name__, module)
    factor, power = KindKeyword("Factor of the costs."), KindKeyword("Its power.", int, 1)
    entry = KindEntry("toy:Stretched", {"factor": factor, "power": power})
    other = KindEntry("toy:Other", {"other": KindKeyword("Another.")})
    monkeypatch.setattr(kinds, "KINDS", (entry, other))
    monkeypatch.setattr(kinds, "REGULARISATION", kinds.REGULARISATION._replace(keywords={}))


def test_no_keyword_means_balanced():
    assert Request().kind == Request.of({"domain": "log"}).kind == Balanced()


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"factor": 2.0}, Stretched(2.0, 1)),
        ({"factor": 2.0, "power": 3}, Stretched(2.0, 3)),
    ],
)
def test_keywords_make_the_kind(given, kind):
    request = Request.of({"eps": 1.0, "domain": "log", **given})
    assert (request.kind, request.eps, request.options) == (kind, 1.0, {"domain": "log"})


@pytest.mark.parametrize(
    "call",
    [
        lambda **k: solve(M, **k),
        lambda **k: epsilot.solve_sample([0.0, 1.0], [0.0, 1.0, 2.0], lazy=False, **k),
    ],
)
def test_every_door_takes_the_keywords_of_a_kind(call):
    usual = call(rtol=1e-9, method="exact")
    assert call(rtol=1e-9, method="exact", factor=2.0, power=3).value == 8 * usual.value


def test_a_kind_refuses_values_that_make_no_sense():
    with pytest.raises(InvalidProblem, match="factor is -1"):
        solve(M, factor=-1.0)


def test_a_problem_is_of_one_kind():
    with pytest.raises(InvalidProblem, match=r"factor and other were given; .* one kind only"):
        solve(M, factor=1.0, other=1.0)


def test_an_audit_takes_the_keywords_of_a_kind():
    plan = epsilot.exact(M).plan
    found = epsilot.certify(M, plan=plan, factor=3.0)
    assert found.upper == pytest.approx(3 * epsilot.certify(M, plan=plan).upper)
    assert found.gap <= 1e-4 * found.upper


def test_help_shows_the_keywords():
    names = list(kinds.with_keywords(inspect.signature(solve)).parameters)
    assert names[-4:] == ["factor", "power", "other", "options"]


def test_a_misspelt_keyword_is_found():
    with pytest.raises(UnknownMethod, match=r"did you mean factor\?"):
        solve(M, facter=1.0, method="sinkhorn")


def test_a_command_has_the_options():
    asked = []

    @request_options("eps", "kind")
    def command(*, request: Request) -> None:
        asked.append(request)

    assert list(inspect.signature(command).parameters) == ["eps", "factor", "power", "other"]
    command(eps=1.0, factor=2.0, power=1, other=None)
    assert asked[0].kind == Stretched(2.0, 1)


@dataclass(frozen=True)
class ToyTransport(Transport):
    """An objective that only methods for its own form serve."""

    form: ClassVar[str] = "toy"
    method_refusal: ClassVar[str] = "does not solve toys."


class ToySimplex(SmallSimplex):
    """A method for that form, and for no other."""

    about: ClassVar[MethodInfo] = replace(SmallSimplex.about, form="toy")


def test_a_form_of_its_own_is_one_word_of_the_kind_and_of_its_methods(monkeypatch):
    monkeypatch.setattr(Stretched, "objective", lambda self, problem, reg: ToyTransport(problem))
    register("toy_simplex", ToySimplex)
    try:
        assert (
            solve(M, factor=2.0, method="toy_simplex").value == 2 * solve(M, method="exact").value
        )
        with pytest.raises(InvalidProblem, match="sinkhorn does not solve toys"):
            solve(M, factor=2.0, method="sinkhorn")
        with pytest.raises(InvalidProblem, match="toy_simplex solves other problems"):
            solve(M, method="toy_simplex")
    finally:
        unregister("toy_simplex")
