"""Custom operators: schemas from signatures, kernels, gradients, checks. The public names are in `cresset.library`."""


def __getattr__(name):
    if name == "utils":
        import importlib

        return importlib.import_module("cresset._library.utils")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
