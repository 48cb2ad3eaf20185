"""Gromov-Wasserstein between point clouds, with bounds on the global optimum.

``problem`` writes it as the minimum of 8|A|² - V(A) over small matrices A, where V(A) is the value
of one transport problem. ``oracle`` solves these; ``triangulation`` and ``boxes`` choose the next
matrix on the engine's driver; ``verify`` proves the answer again, in plain NumPy.
"""
