"""Problems, plans, objectives with their bounds, rounding, and counted work."""
