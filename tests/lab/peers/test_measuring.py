import pytest

import epsilot
from epsilot_lab.instances import FAMILIES
from epsilot_lab.peers.adapters import Answer
from epsilot_lab.peers.measuring import audit


def test_the_audit_rounds_in_the_peers_favour():
    M, a, b = FAMILIES["random"].build(16, 0)
    result = epsilot.exact(M, a, b)
    line = audit(M, a, b, Answer(0.9 * result.plan - 1e-18), result.potentials)
    assert line["marginal_error"] == pytest.approx(0.2)
    assert result.value < line["value"] < result.value + 0.1 * M.max()
    assert line["lower"] == pytest.approx(result.value)
