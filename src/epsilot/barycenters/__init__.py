"""Barycentres: one histogram near several, with the plans and potentials that prove how near.

``family`` is the objective: the histograms, validated once, and the bounds that prove a barycentre.
``execute`` names the solvers, which run on the engine's driver in the stages of ``stages``.
"""
