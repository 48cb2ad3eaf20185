"""The front door: what users call, and what is refused before anything runs."""
