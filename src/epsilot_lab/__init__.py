"""The laboratory: the paper's experiments, benchmarks beside peers, and what they share."""
