"""Transport as a differentiable loss, for any framework: values of many problems and slopes."""
