"""Measure epsilot: the paper's experiments, benchmarks beside peers, studies and fuzzing."""
