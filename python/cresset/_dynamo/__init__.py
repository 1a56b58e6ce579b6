"""What libraries ask of PyTorch's compiler of Python code under this name; see `cresset.compiler`."""

from cresset.compiler import allow_in_graph, assume_constant_result, disable, is_compiling, list_backends, reset  # noqa: F401


def __getattr__(name):
    if name == "utils":
        import importlib

        return importlib.import_module(f"{__name__}.utils")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
