"""The version, said here alone, and that of measurements."""

__version__ = "0.2.0"
#: What lines of measurements carry as their version: one that computes other numbers raises it, and
#: then all is measured anew.
NUMERICS = "0.1.0"
