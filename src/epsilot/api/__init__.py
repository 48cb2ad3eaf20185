"""The public functions: they check their arguments and run requests."""
