"""What people look at: a live line, pictures."""
