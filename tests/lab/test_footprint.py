import sys

import numpy as np
import pytest

from epsilot_lab import footprint


def test_the_peak_is_not_below_what_is_held():
    held = np.ones(1 << 20)
    assert footprint.peak() > held.nbytes


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_a_peak_is_forgotten_and_seen_again():
    before = footprint.forget_peak()
    if before is None:
        pytest.skip("this system does not let a process forget its peak")
    np.ones(1 << 23)
    assert footprint.recent_peak() - before > 60 << 20
    again = footprint.forget_peak()
    assert footprint.recent_peak() - again < 30 << 20
