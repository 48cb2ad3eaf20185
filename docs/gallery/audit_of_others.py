"""
Audit POT's Sinkhorn
====================

``certify`` bounds the optimum with the plan of any solver. A plan of ``ot.sinkhorn`` costs more
than the optimum because of its regularisation, and violates its marginals because of its stopping
rule. Its audited value is its cost after rounding. OTT-JAX is audited too if it is installed.
"""

from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np
import ot
from matplotlib.ticker import PercentFormatter

import epsilot

N = 120
rng = np.random.default_rng(0)
X, Y = rng.random((N, 2)), rng.random((N, 2)) ** 2
a = b = np.full(N, 1 / N)
M = ot.dist(X, Y)
regs = np.geomspace(3e-4, 0.1, 10)


def pot(reg):
    """Return POT's plan with its default tolerance and number of iterations."""
    return ot.sinkhorn(a, b, M, reg, method="sinkhorn_log", warn=False)


def ott(reg):
    """Return OTT's plan with its defaults, where it is installed."""
    from ott import geometry, solvers

    cost = geometry.geometry.Geometry(M, epsilon=reg)
    return np.asarray(solvers.linear.solve(cost).matrix)


# %%
# ``certify`` rounds every plan onto its marginals, and compares its cost with a proved lower bound.

exact = epsilot.exact(M, a, b)
libraries = {"POT": pot, "OTT-JAX": ott} if find_spec("ott") else {"POT": pot}
figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
for (name, plan_of), color in zip(libraries.items(), ("#1f5fa8", "#d98200"), strict=False):
    plans = [plan_of(reg) for reg in regs]
    audits = [epsilot.certify(M, a, b, plan=plan, potentials=exact.potentials) for plan in plans]
    claimed = np.array([np.sum(plan * M) for plan in plans])
    upper, missed = np.array([(audit.upper, audit.marginal_error) for audit in audits]).T
    axes[0].plot(regs, claimed / exact.value - 1, "o--", color=color, label=f"{name}, as it is")
    axes[0].plot(regs, upper / exact.value - 1, "s-", color=color, label=f"{name}, marginals met")
    axes[1].plot(regs, missed, "o-", color=color)
axes[0].axhspan(-0.6, 0, color="#c0392b", alpha=0.1, lw=0)
axes[0].text(0.1, -0.12, "cheaper than any plan can be", ha="right", va="top", color="#c0392b")
axes[0].set(xscale="log", xlabel="reg", ylabel="cost above the optimum", ylim=(-0.6, 1.2))
axes[0].yaxis.set_major_formatter(PercentFormatter(1))
axes[0].legend(frameon=False, loc="upper center")
axes[1].set(xscale="log", yscale="log", xlabel="reg", ylabel="mass that is not where it should be")
plt.show()
