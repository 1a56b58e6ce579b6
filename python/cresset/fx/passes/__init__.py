"""Passes over graphs: each a module of its own, loaded on first use."""

import importlib

_MODULES = (
    "fake_tensor_prop", "graph_drawer", "graph_manipulation", "graph_transform_observer", "operator_support", "reinplace", "shape_prop", "split_module", "tools_common", "infra", "utils", "dialect",
)  # fmt: skip


def __getattr__(name):
    if name in _MODULES:
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
