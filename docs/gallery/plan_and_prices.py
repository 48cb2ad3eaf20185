"""
A plan, its prices, and the bounds
==================================

Bakeries supply cafés. A *plan* says how much bread goes where, and its cost is an upper bound on
the optimum. *Prices* at which a carrier buys and sells bread prove a lower bound, if no trip earns
the carrier more than it costs.
"""

import matplotlib.pyplot as plt
import numpy as np

import epsilot

# %%
# Place bakeries and cafés in a town, and say how much bread each makes or needs.

N = 12
rng = np.random.default_rng(4)
bakeries, cafes = rng.random((6, 2)), rng.random((N, 2))
bread, need = rng.dirichlet(np.full(6, 4.0)), rng.dirichlet(np.full(N, 4.0))

exact = epsilot.solve_sample(bakeries, cafes, bread, need, metric="euclidean", rtol=1e-9)
slow = epsilot.solve_sample(
    bakeries, cafes, bread, need, metric="euclidean", rtol=1e-3, method="sinkhorn"
)

# %%
# Left: the optimal plan. The middle panel compares the earnings of each trip (the sum of two
# potentials) with its cost. No pair is above the diagonal, so the potentials prove a lower bound.
# The pairs of the plan lie on the diagonal. On the right, a slower method improves both bounds.

M = np.linalg.norm(bakeries[:, None] - cafes, axis=2)
f, g = exact.potentials
plan = exact.plan
is_used = plan > 1e-12

figure, (town, prices, bounds) = plt.subplots(1, 3, figsize=(11.5, 3.9), layout="constrained")
for i, j in zip(*np.nonzero(is_used), strict=True):
    town.plot(*np.stack([bakeries[i], cafes[j]]).T, color="#7f8c8d", lw=1 + 30 * plan[i, j])
town.scatter(*bakeries.T, s=900 * bread, color="#2c6fbb", zorder=3, label="bakeries")
town.scatter(*cafes.T, s=900 * need, color="#c0392b", zorder=3, label="cafés")
town.set(title=f"plan: costs {exact.value:.4f}", xticks=[], yticks=[], aspect="equal")
town.legend(loc="upper left", bbox_to_anchor=(0, -0.02), ncols=2, frameon=False)

prices.axline((0, 0), slope=1, color="black", lw=1)
earned = f[:, None] + g
prices.scatter(M[~is_used], earned[~is_used], color="#b0b7bd", label="not used")
prices.scatter(M[is_used], earned[is_used], color="#c0392b", label="used by the plan")
prices.set(title=f"prices: earn {exact.lower_bound:.4f}", xlabel="cost of a trip $M_{ij}$")
prices.set(ylabel="earned by the trip $f_i + g_j$")
prices.legend(frameon=False)

steps = [record.n_iter for record in slow.history]
bounds.plot(steps, [r.upper for r in slow.history], color="#c0392b", label="cost of the plan")
bounds.plot(steps, [r.lower for r in slow.history], color="#2c6fbb", label="lower bound")
bounds.axhline(exact.value, color="black", lw=1, ls=":", label="optimum")
bounds.set(title="the bounds close", xlabel="sweeps of Sinkhorn's method", ylabel="cost")
bounds.legend(frameon=False)
plt.show()
