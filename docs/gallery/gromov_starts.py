"""
Ten starts of POT against the proved optimum
============================================

POT's conditional gradient ends in a local optimum that depends on its start, and cannot tell how
good it is. The bound of ``solve_gromov`` holds for all couplings.
"""

import matplotlib.pyplot as plt
import numpy as np
import ot

import epsilot

N = 60
STARTS = 10

rng = np.random.default_rng(2)
s = np.pi * rng.random(N)
banana = np.column_stack([2 * np.cos(s), np.sin(s)]) + 0.1 * rng.normal(size=(N, 2))
clusters = np.array([[0, 0], [3, 0], [1, 2]])[rng.integers(0, 3, N)]
noisy = rng.permutation(banana) @ [[0, 1], [-1, 0]] + 0.1 * rng.normal(size=(N, 2))
clouds = {
    "banana and three clusters": (banana, clusters + 0.3 * rng.normal(size=(N, 2))),
    "two squares": (rng.random((N, 2)), rng.random((N, 2))),
    "noisy copy": (banana, noisy),
}
p = np.full(N, 1 / N)

results, ends = {}, {}
for name, (X, Y) in clouds.items():
    C, D = (ot.dist(Z, Z) for Z in (X, Y))
    results[name] = epsilot.solve_gromov(X, Y, rtol=1e-3)
    starts = [None, *(np.eye(N)[rng.permutation(N)] / N for _ in range(STARTS))]
    ends[name] = [ot.gromov.gromov_wasserstein2(C, D, p, p, G0=start) for start in starts]
    n_bad = sum(end > 1.01 * results[name].value for end in ends[name])
    print(f"{name}: {n_bad} of {1 + STARTS} starts end more than 1 % too high")

# %%
# Each row shows one pair of clouds. Starts that reach the optimum lie on the line at 1.

figure, axis = plt.subplots(figsize=(7, 2.8), layout="constrained")
axis.axvline(1, color="C0", label="proved optimum")
for row, (name, result) in enumerate(results.items()):
    share = np.array(ends[name]) / result.value
    random, default = axis.plot(share[1:], np.full(STARTS, row), "C1o", share[0], row, "C3D")
    random.set_alpha(0.6)
random.set_label("random starts of POT")
default.set_label("its default start")
axis.legend(loc="lower right", frameon=False)
axis.set(yticks=range(len(results)), yticklabels=results, xscale="log", ylim=(-0.4, 2.4))
axis.set_xticks([1, 1.5, 2, 3, 5])
axis.xaxis.set_major_formatter("{x:g}")
axis.minorticks_off()
axis.set_xlabel("value / proved optimum")
plt.show()
