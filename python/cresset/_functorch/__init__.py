"""Where PyTorch keeps what `torch.func` is made of: the parts of it that programs and tests name."""

__all__ = []


def __getattr__(name):
    import importlib.util

    if not name.startswith("__") and importlib.util.find_spec(f"{__name__}.{name}"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
