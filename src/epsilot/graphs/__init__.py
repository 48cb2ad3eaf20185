"""Minimum-cost flows on graphs.

``problem`` reads a graph; ``simplex`` pivots on the engine's driver; ``objective`` proves flows and
potentials, and raises ``Infeasible`` with a cut if there is no flow.
"""
