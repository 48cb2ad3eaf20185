"""Show results: printed reports, progress lines, figures and web pages."""
