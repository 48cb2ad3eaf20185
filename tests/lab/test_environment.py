"""What measurements say they were made with."""

import epsilot
from epsilot_lab.environment import versions


def test_versions_are_known_also_where_nothing_is_installed():
    found = versions("surely-no-package")
    assert found["epsilot"] == epsilot.__version__
    assert found["surely-no-package"] == "not installed"
    assert found["numpy"] != "not installed"
