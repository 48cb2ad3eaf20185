"""One run: its goal, the method and start that are chosen, the only loop, and what it leaves."""
