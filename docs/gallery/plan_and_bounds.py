"""
A plan, and the bounds that prove it
====================================

A ring of points is moved onto a star. ``result.plot()`` draws the plan, and
``result.plot_convergence()`` draws the bounds between which the least possible cost lies.
"""

import matplotlib.pyplot as plt
import numpy as np

import epsilot

N = 420
RTOL = 0.002

rng = np.random.default_rng(4)


def inside(contains):
    """Return points of a square that lie inside a shape."""
    points = rng.uniform(-1.25, 1.25, (20 * N, 2))
    return points[contains(*points.T)][:N]


ring = inside(lambda x, y: abs(np.hypot(x, y) - 1.05) < 0.13)
star = inside(lambda x, y: np.hypot(x, y) < 0.5 + 0.32 * np.cos(5 * np.arctan2(x, y)))

# %%
# The first run finds the optimum of these few points at once. Sinkhorn's method is chosen to show
# bounds that approach each other.

best = epsilot.solve_sample(ring, star, rtol=1e-9)
result = epsilot.solve_sample(ring, star, method="sinkhorn", rtol=RTOL)
print(best)

figure, (left, right) = plt.subplots(
    1, 2, figsize=(12.0, 5.4), width_ratios=(1.1, 1), layout="constrained"
)
best.plot(left)
left.set_title(f"res.plot(): every point and its partner, cost {best.value:.4f}", loc="left")
result.plot_convergence(right)
right.set_title("res.plot_convergence(): the proof", loc="left", pad=24)
plt.show()
