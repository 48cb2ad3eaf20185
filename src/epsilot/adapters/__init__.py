"""Our solvers behind the names and arguments of other libraries, one module per library.

Each module is imported by its name: ``epsilot.adapters.torchcfm``, ``epsilot.adapters.gudhi``.
"""
