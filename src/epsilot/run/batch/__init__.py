"""Many problems at once: sources of problems, chunks of them, the loop over chunks, the result."""
