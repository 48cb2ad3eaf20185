# ruff: noqa: F821  (ot is imported by the test)
"""A script of a user of POT: distances, matching, adaptation and a loop of gradient steps."""

import numpy as np
import torch

rng = np.random.default_rng(0)
source = rng.normal(size=(40, 2))
labels = (source[:, 0] > 0).astype(int)
target = source @ np.array([[0.8, -0.6], [0.6, 0.8]]) + [3.0, 1.0]

# Distances between weighted clouds
a, b = ot.unif(40), rng.random(40)
b /= b.sum()
M = ot.dist(source, target)
exact = ot.emd2(a, b, M)
plan, log = ot.emd(a, b, M, log=True)
entropic = ot.sinkhorn2(a, b, M / M.max(), reg=0.2)
smooth = ot.sinkhorn(a, b, M / M.max(), 0.2)
line = ot.wasserstein_1d(source[:, 0], target[:, 0])
free = ot.unbalanced.sinkhorn_unbalanced(a, b, M / M.max(), 0.2, 1.0)

# Domain adaptation
adapted = ot.da.SinkhornTransport(reg_e=2.0).fit_transform(Xs=source, ys=labels, Xt=target)
mapped = ot.da.EMDTransport().fit(Xs=source, ys=labels, Xt=target).transform(Xs=source)

# Fit points by gradient steps
points = torch.tensor(source, requires_grad=True)
weights = torch.full((40,), 1 / 40, dtype=torch.float64)
losses = []
for _ in range(5):
    loss = ot.emd2(weights, weights, ot.dist(points, torch.tensor(target)))
    (gradient,) = torch.autograd.grad(loss, points)
    points = (points - 10 * gradient).detach().requires_grad_(True)
    losses.append(float(loss.detach()))
matched = ot.gromov.gromov_wasserstein(ot.dist(source), ot.dist(target))
