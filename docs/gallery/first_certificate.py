"""
A first certificate
===================

Two densities on a line are matched at least cost. The plan (dots) is an upper bound on the optimum.
The potentials :math:`f, g` are a lower bound, because their slack :math:`M_{ij} - f_i - g_j`
(colours) is nowhere negative. Mass lies where the slack is zero, so the bounds are equal.
"""

import matplotlib.pyplot as plt
import numpy as np

import epsilot

# %%
# One call solves the problem. ``eps`` is in units of the cost.

x = np.linspace(0, 1, 90)
a = np.exp(-(((x - 0.22) / 0.09) ** 2)) + 0.7 * np.exp(-(((x - 0.55) / 0.06) ** 2)) + 0.02
b = np.exp(-(((x - 0.72) / 0.16) ** 2)) + 0.02
a, b = a / a.sum(), b / b.sum()
M = (x[:, None] - x) ** 2

res = epsilot.solve(M, a, b, eps=1e-4)
print(res)

# %%
# Draw the plan over the slack of the potentials.

f, g = res.potentials
slack = M - f[:, None] - g
rows, columns = np.nonzero(res.plan > 1e-5)

figure = plt.figure(figsize=(8.6, 6.4), layout="constrained")
axes = figure.subplot_mosaic(
    [[".", "b"], ["a", "slack"]], width_ratios=[1, 4], height_ratios=[1, 4]
)
shown = axes["slack"].imshow(
    np.sqrt(np.maximum(slack, 0)), extent=(0, 1, 1, 0), cmap="Blues", aspect="auto"
)
mass = res.plan[rows, columns]
axes["slack"].scatter(x[columns], x[rows], s=4 + 900 * mass, color="#c0392b", lw=0)
axes["slack"].set(xlabel="target", yticks=[])
axes["b"].fill_between(x, b, color="#c0392b", alpha=0.8, lw=0)
axes["b"].set(xticks=[], yticks=[], xlim=(0, 1), title="targets b", ylim=(0, None))
axes["a"].fill_betweenx(x, a, color="#c0392b", alpha=0.8, lw=0)
axes["a"].set(xticks=[], ylim=(1, 0), ylabel="source", title="sources a")
axes["a"].invert_xaxis()
figure.colorbar(shown, ax=axes["slack"], label=r"$\sqrt{M_{ij} - f_i - g_j}$: never below zero")
figure.suptitle(
    f"lower bound {res.lower_bound:.6f}   ≤   optimum   ≤   {res.value:.6f} cost of the plan"
)
plt.show()
