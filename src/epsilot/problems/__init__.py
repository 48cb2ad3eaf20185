"""The mathematics: problems, plans, objectives with their brackets, rounding, counted work."""
