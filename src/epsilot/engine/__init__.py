"""Run a request: goal, method selection, start, the loop of every run, checkpoints and results."""
