"""A store loses no line it was given and empties no file of somebody else's."""

import json
from types import SimpleNamespace

import pytest
from serving import Counted

from epsilot import InvalidProblem
from epsilot.version import NUMERICS, __version__
from epsilot_lab.paper.image_tasks import ImageTask
from epsilot_lab.store import Store

FIELDS = ["number"]
LINE = b'{"key": "a", "value": 1}'


@pytest.fixture
def path(tmp_path):
    store = Store(tmp_path / "solves.jsonl", FIELDS)
    for number in (0, 1, 2):
        store.append({"number": number, "value": f"ε = {number}"})
    return store.path


def numbers(path):
    return [json.loads(line)["number"] for line in path.read_text(encoding="utf-8").splitlines()]


def test_lines_are_found_by_what_identifies_them(path):
    store = Store(path, FIELDS)
    assert len(store) == 3
    assert Counted(2) in store
    assert Counted(3) not in store
    found = store.lines([Counted(2), Counted(7), Counted(0)])
    assert [line["value"] for line in found] == ["ε = 2", "ε = 0"]


def test_the_order_of_fields_in_a_value_does_not_matter(tmp_path):
    store = Store(tmp_path / "solves.jsonl", ["given"])
    store.append({"given": {"a": 1, "b": 2}})
    store.append({"given": {"b": 2, "a": 1}})
    assert len(store) == 1


def test_lines_are_put_in_the_order_of_the_tasks_and_others_behind(path):
    Store(path, FIELDS).arrange([Counted(2), Counted(9), Counted(1)])
    assert numbers(path) == [2, 1, 0]


def test_the_later_of_two_lines_of_one_solve_counts(path):
    text = path.read_text(encoding="utf-8")
    path.write_text(text + '{"number": 1, "value": "later"}\n', encoding="utf-8")
    assert Store(path, FIELDS).lines([Counted(1)])[0]["value"] == "later"


def test_what_is_not_a_number_is_not_written(path):
    before = path.read_bytes()
    with pytest.raises(ValueError, match="JSON compliant"):
        Store(path, FIELDS).append({"number": 5, "value": float("nan")})
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "kept", "after"),
    [
        (b"", 0, b""),
        (LINE + b"\n", 1, LINE + b"\n"),
        (LINE, 1, LINE + b"\n"),
        (LINE + b"\n" + LINE[:10], 1, LINE + b"\n"),
        (LINE[:10], 0, b""),
        (LINE[:1], 0, b""),
        (b"my notes, on one line", None, None),
        (b"my notes\non two lines", None, None),
        (b"\x89PNG\r\n\x1a\n\0\0", None, None),
        (b"[1, 2, 3]", None, None),
        (b"42", None, None),
        (b'{"other": 1}', None, None),
    ],
)
def test_the_store_loses_no_line_and_empties_no_file(content, kept, after, tmp_path):
    path = tmp_path / "solves.jsonl"
    path.write_bytes(content)
    if kept is None:
        with pytest.raises(InvalidProblem, match="of this experiment"):
            Store(path, ["key"])
        assert path.read_bytes() == content
        return
    assert len(Store(path, ["key"])) == kept
    assert path.read_bytes() == after


@pytest.mark.parametrize(
    ("stored", "is_found"), [(NUMERICS, True), (__version__, True), ("0.0.9", False)]
)
def test_lines_of_versions_with_the_same_numerics_count_as_solved(stored, is_found, tmp_path):
    path = tmp_path / "solves.jsonl"
    path.write_text(json.dumps({"seed": 0, "version": stored}) + "\n")
    task = SimpleNamespace(identity={"seed": 0, "version": __version__})
    assert (task in Store(path, ("seed", "version"))) is is_found


def test_a_new_line_carries_the_version_that_measured_it():
    assert ImageTask("synthetic", 3, 0, "sinkhorn", "paper", 0.5).identity["version"] == __version__
