"""
Pairs within a radius
=====================

Two frames show the same particles, some of which have left or are new. Pairs farther apart than a
radius are forbidden; a penalty for missing mass leaves particles without a partner.
"""

import matplotlib.pyplot as plt
import numpy as np

import epsilot

N = 300
RADIUS = 0.06

rng = np.random.default_rng(1)
before = rng.random((N, 2)) * [2, 1]
after = before + 0.02 * rng.normal(size=(N, 2))
new = rng.random((N // 10, 2)) * [2, 1]
after = np.concatenate([after[N // 10 :], new])

# %%
# Not all particles have a partner within the radius: with all mass to move, no plan exists, and a
# cut says by how much.

excess = 0.0
try:
    epsilot.solve_sample(before, after, max_distance=RADIUS)
except epsilot.Infeasible as error:
    excess = error.excess
    print(error)

# %%
# With a TV penalty, a pair is matched where that costs less than twice the penalty.

result = epsilot.solve_sample(
    before, after, max_distance=RADIUS, unbalanced=RADIUS**2, unbalanced_type="tv"
)
pairs = result.plan_operator.tosparse().tocoo()
print(f"{pairs.nnz} pairs, {result.lower_bound:.6f} <= optimum <= {result.value:.6f}")

figure, axes = plt.subplots(figsize=(9, 5.5), layout="constrained")
for i, j in zip(pairs.row, pairs.col, strict=True):
    axes.plot(*np.array([before[i], after[j]]).T, color="0.6", linewidth=1)
axes.scatter(*before.T, s=12, color="tab:orange", label="first frame")
axes.scatter(*after.T, s=12, color="tab:green", label="second frame")
axes.set(aspect="equal", xticks=[], yticks=[], title=f"Matches within a radius of {RADIUS}")
figure.legend(loc="outside lower center", ncols=2, frameon=False)
