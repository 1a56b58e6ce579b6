"""What pickles that C++ writes (jit::pickle_save) call as torch.jit._pickle.…, loaded without the rest of jit: each gives the value that it is called with."""

__all__ = ["build_boollist", "build_doublelist", "build_intlist", "build_tensorlist", "restore_type_tag"]


def build_intlist(data):
    return data


def build_tensorlist(data):
    return data


def build_doublelist(data):
    return data


def build_boollist(data):
    return data


def restore_type_tag(value, type_str):
    """The value; the type of its elements is for readers that keep types beside containers."""
    return value
