"""What measurements say they were made with."""

import epsilot
from epsilot_lab.environment import numerics, versions


def test_versions_are_known_also_where_nothing_is_installed():
    found = versions("surely-no-package")
    assert found["epsilot"] == epsilot.__version__
    assert found["surely-no-package"] == "not installed"
    assert found["numpy"] != "not installed"


def test_the_fingerprint_ignores_comments_and_docstrings(tmp_path, monkeypatch):
    def fingerprint(source):
        (tmp_path / "metrics.py").write_text(source)
        return numerics.__wrapped__()

    monkeypatch.setattr("epsilot.__file__", str(tmp_path / "__init__.py"))
    first = fingerprint('"""Old."""\n\n\ndef f(x):\n    """Old."""\n    return x + 1\n')
    same = fingerprint("# new\ndef f(x):\n    return x + 1  # one more\n")
    other = fingerprint("def f(x):\n    return 1 + x\n")
    assert first != other
    assert len({first, same}) == 1
