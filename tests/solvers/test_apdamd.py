"""APDAMD is the textbook's mirror descent with δ = n."""

import accelerated_listings as listings
import numpy as np
from accelerated_listings import small, states


def test_apdamd_is_the_textbook_form_with_delta_n():
    problem = small()
    ours = states(problem, "apdamd", 40, average=True)
    for (_, _, state), (e, X) in zip(ours, listings.mirror_descent(problem, 40), strict=True):
        np.testing.assert_allclose(state.e, e, rtol=0, atol=1e-9)
        np.testing.assert_allclose(state.X, X, rtol=0, atol=1e-9)
