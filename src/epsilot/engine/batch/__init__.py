"""Solve many problems at once: ``problems``, compiled ``chunks``, an ``engine``, a ``result``."""
