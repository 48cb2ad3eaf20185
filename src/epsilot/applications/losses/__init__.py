"""Transport as a loss, for any framework: values of many problems, and their slopes."""
