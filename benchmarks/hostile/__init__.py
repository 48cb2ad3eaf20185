"""Hostile cases for epsilot, each drawn from a seed: see docs/campaign.md.

A part of the campaign is a function from a generator to an `Outcome`; `cases` names them all.
"""
