"""Where pickles that C++ writes look for what they call."""

from cresset._jit_pickle import build_boollist, build_doublelist, build_intlist, build_tensorlist, restore_type_tag

__all__ = ["build_boollist", "build_doublelist", "build_intlist", "build_tensorlist", "restore_type_tag"]
