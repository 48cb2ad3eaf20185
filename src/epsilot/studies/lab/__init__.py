"""What all studies share: solves as lines of a file, fits, documents."""
