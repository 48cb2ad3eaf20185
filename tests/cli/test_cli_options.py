"""Commands take a request and the source of a problem as options, field by field."""

import inspect

import pytest
import typer
from typer.testing import CliRunner

from epsilot.cli import app
from epsilot.cli.options import (
    LIMITS,
    RUN_OPTIONS,
    STYLES,
    TARGETS,
    OptionStyle,
    Source,
    request_options,
)
from epsilot.engine.request import DECLARED, Request
from epsilot.problems import kinds

SOURCE = "cost points images metric power max_distance k_neighbors a b normalize files"
REACH = "eps rtol reg tol max_iter max_seconds seed"
DECLARED_WITH_HELP = [name for name, word in DECLARED.items() if word.help is not None]
RUN = " ".join(STYLES.get(name, OptionStyle()).flag or name for name in DECLARED_WITH_HELP)
KIND = " ".join(kinds.keywords())
OPTIONS = {
    "solve": f"{SOURCE} {KIND} {RUN} out plot page explain json",
    "compare": f"methods demo {SOURCE} {REACH} threads plot json",
    "transfer": f"source reference out back colors palette smoothing method {REACH} json",
    "certify": f"{SOURCE} {KIND} plan potentials result json",
}


@pytest.mark.parametrize("name", OPTIONS)
def test_the_options_of_a_command(name):
    (command,) = (c for c in app.registered_commands if c.callback.__name__ == name)
    assert set(inspect.signature(command.callback).parameters) == set(OPTIONS[name].split())


def test_groups_of_fields():
    assert TARGETS == ("eps", "rtol", "reg", "tol")
    assert set(LIMITS) < set(RUN_OPTIONS)
    assert STYLES.keys() <= {*RUN_OPTIONS, *kinds.keywords()}
    assert {"potentials_init", "callback", "progress", "on_limit"}.isdisjoint(RUN_OPTIONS)


@pytest.fixture
def toy():
    """Return a command's application, and what it was given."""
    given = []

    @request_options(*RUN_OPTIONS, max_seconds=9.0)
    def command(*, word: str = "x", source: Source, request: Request, last: int = 1) -> None:
        given.append((word, source, request, last))

    application = typer.Typer()
    application.command()(command)
    return application, given


def test_what_is_not_given_has_the_fields_default(toy):
    application, given = toy
    assert CliRunner().invoke(application, []).exit_code == 0
    ((word, source, request, last),) = given
    assert (word, source, last) == ("x", Source(), 1)
    assert request.max_seconds == 9.0
    assert request.on_limit == "ignore"
    assert request.options == {}
    for name in set(RUN_OPTIONS) - {"max_seconds", "options", "kind"}:
        assert getattr(request, name) == getattr(Request(), name), name


def test_what_is_given_reaches_the_field(toy, tmp_path):
    application, given = toy
    place = str(tmp_path / "c.npz")
    arguments = f"--cost M.npy --normalize --rtol 0.5 --threads 2 --checkpoint {place} "
    arguments += "--method exact --option max_pivots=3 --word y --last 4"
    done = CliRunner().invoke(application, arguments.split())
    assert done.exit_code == 0, done.output
    ((word, source, request, last),) = given
    assert (word, last) == ("y", 4)
    assert source == Source(cost="M.npy", normalize=True)
    assert (request.rtol, request.n_threads, request.checkpoint) == (0.5, 2, place)
    assert (request.method, request.options) == ("exact", {"max_pivots": 3})
