"""Dispatch to kernels written in Python; see `python`."""
