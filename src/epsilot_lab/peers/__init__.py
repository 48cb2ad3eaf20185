"""Compare time and memory to a verified accuracy with other libraries."""
