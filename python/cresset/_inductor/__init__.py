"""What libraries ask of PyTorch's code generator under this name. There is none: Python code runs as it is."""

from . import config  # noqa: F401

__all__ = ["compile", "list_mode_options", "list_options", "cudagraph_mark_step_begin"]


def compile(gm, example_inputs, options=None):
    """The graph module itself."""
    return gm


def list_mode_options(mode=None, dynamic=None):
    """Options of the modes: none."""
    return {} if mode is None else {mode: {}}


def list_options():
    """Names of options: those of `config`."""
    return sorted(name for name in vars(config) if not name.startswith("_"))


def cudagraph_mark_step_begin():
    """There are no CUDA graphs whose step could begin."""
