"""Measurements: a laboratory, the paper's figures and tables, and the contest with the peers."""
