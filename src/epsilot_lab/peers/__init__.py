"""Time and memory to a verified accuracy, beside the peers that are installed."""
