"""Fuzz epsilot with hostile inputs, each drawn from a seed (docs/campaign.md).

A part of the campaign is a function from a random generator to a ``CaseOutcome``.
``campaign.PARTS`` lists them all.
"""
