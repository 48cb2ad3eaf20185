"""Barycentres: one histogram near several, with the plans and potentials that prove how near.

``family`` holds the histograms, validated once; ``bounds`` proves, and trusts no method; each
method is a file that proposes, step by step; ``drive`` is the loop, and ``result`` what it returns.
"""
