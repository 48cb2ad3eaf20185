"""A store loses no line it was given and empties no file of somebody else's."""

import pytest

from epsilot import InvalidProblem
from epsilot.studies.lab.store import Store

LINE = b'{"key": "a", "value": 1}'


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
        with pytest.raises(InvalidProblem):
            Store(path, ["key"])
        assert path.read_bytes() == content
        return
    assert len(Store(path, ["key"])) == kept
    assert path.read_bytes() == after
