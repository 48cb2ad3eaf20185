"""What people look at: text, a live line, pictures, reports."""
