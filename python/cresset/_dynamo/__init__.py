"""What libraries ask of PyTorch's compiler of Python code under this name; see `cresset.compiler`."""

from cresset.compiler import allow_in_graph, assume_constant_result, disable, is_compiling, list_backends, reset  # noqa: F401
