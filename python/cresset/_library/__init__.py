"""Custom operators: schemas from signatures, kernels, gradients, checks. The public names are in `cresset.library`."""


def __getattr__(name):
    import importlib.util

    if name == "register_fake_class":
        return importlib.import_module(f"{__name__}.fake_class_registry").register_fake_class
    if not name.startswith("__") and importlib.util.find_spec(f"{__name__}.{name}"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
