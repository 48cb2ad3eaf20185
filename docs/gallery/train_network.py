"""
Train a network with a transport loss
=====================================

A small network maps noise to two moons. The loss is the exact optimal transport cost between 256
generated points and 256 data points, without regularisation or discriminator.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import make_moons

import epsilot.torch

STEPS = 400
BATCH = 256
torch.manual_seed(0)
torch.set_num_threads(1)  # threads of so small a network wait for each other
network = torch.nn.Sequential(
    torch.nn.Linear(2, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU(),
    torch.nn.Linear(64, 2),
)  # fmt: skip
optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
test = torch.randn(1500, 2)

# %%
# Train, and keep the images of the same noise at several steps.

shown = np.unique(np.geomspace(1, STEPS, 5).astype(int))
values, frames, began = [], [], time.process_time()
for step in range(1, STEPS + 1):
    data = torch.tensor(make_moons(BATCH, noise=0.05, random_state=step)[0]).float()
    noise = torch.randn(BATCH, 2)
    value, info = epsilot.torch.transport_cost(network(noise), data, return_info=True)
    optimizer.zero_grad()
    value.backward()
    optimizer.step()
    values.append(value.item())
    if step in shown:
        frames.append(network(test).detach().numpy())
        gap = max(info.gap.item(), 0.0)
        print(f"step {step:3d}: cost {value.item():.4f}, certified to {gap:.1e}")
print(f"{time.process_time() - began:.1f} s of processor time")

# %%
# Draw the generated points at these steps, and the certified cost of every step.

figure, axes = plt.subplots(2, 3, figsize=(11, 5), layout="constrained")
for ax, step, frame in zip(axes.flat, shown, frames, strict=False):
    ax.scatter(*data.numpy().T, s=3, color="0.8", lw=0)
    ax.scatter(*frame.T, s=2, color="#1f5fa8", lw=0, alpha=0.7)
    ax.set(xlim=(-1.6, 2.6), ylim=(-1.1, 1.6), aspect="equal", xticks=[], yticks=[])
    ax.set_title(f"step {step}", fontsize=10)
axes[1, 2].semilogy(values, color="#c0392b", lw=1)
axes[1, 2].set(xlabel="step", title="certified transport cost")
plt.show()
