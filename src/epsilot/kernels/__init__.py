"""Compiled array functions, their NumPy twins (``reference``) and the threads that share them."""
