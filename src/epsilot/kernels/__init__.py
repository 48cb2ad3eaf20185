"""Compiled array functions; every number of a result is computed here."""
