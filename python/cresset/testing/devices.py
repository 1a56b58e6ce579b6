"""The devices of this process that tests can run on."""

import importlib.util
import re
import sys
from pathlib import Path

import cresset
from cresset import _C

__all__ = ["backend_key", "check_device", "known_devices", "load_backend", "out_of_tree_devices", "state_of", "with_tensors"]


_KEYS = {"cpu": "CPU", "meta": "Meta", "cuda": "CUDA"}


def backend_key(device):
    """The name of the dispatch key that kernels of a device are registered under: "CPU", "PrivateUse1"."""
    kind = cresset.device(device).type
    if kind in _KEYS:
        return _KEYS[kind]
    return re.search(r"\bPrivateUse\d+\b", str(_C._dispatch_keys(cresset.empty(0, device=kind)))).group()


def known_devices():
    """Names of the device types that can be written in cresset.device(…)."""
    try:
        cresset.device("no_such_device")
    except RuntimeError as error:
        text = str(error)
        return [name.strip() for name in text.partition("Expected one of ")[2].partition(" device type")[0].split(",") if name.strip()]
    return []


def out_of_tree_devices():
    """Device types that a loaded backend provides memory for, in the order of their slots."""
    found = []
    for name in known_devices():
        if name in _KEYS:
            continue
        try:
            cresset.empty(0, device=name)
        except (RuntimeError, AssertionError):  # as CUDA and XPU are refused
            continue
        found.append(name)
    return found


def load_backend(path):
    """Loads a backend: a library (.so), a Python file (.py), the name of a device that an installed plug-in gives, or a Python module."""
    path = str(path)
    if path.endswith((".so", ".dylib", ".dll")):
        cresset.ops.load_library(str(Path(path).resolve()))
        return None
    if path.endswith(".py"):
        name = "_cresset_backend_" + Path(path).stem
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module
    try:
        return cresset.device(path) and None
    except RuntimeError:
        return importlib.import_module(path)


def check_device(device):
    """The device, when tensors can be made on it. RuntimeError says what to do otherwise."""
    device = cresset.device(device)
    if device.type != "meta":
        cresset.empty(0, device=device)
    return device


_KINDS = {"[kernel]": "kernel", "[backend fallback]": "fallback"}


def with_tensors(func, args):
    """Positional arguments of an operator, tensors where its schema has them: to modes, numbers that it took as tensors come as numbers, and not every
    operator takes them back so."""
    is_number = lambda value, parameter: isinstance(value, (bool, int, float, complex)) and str(parameter.type) == "Tensor"  # noqa: E731
    return tuple(cresset.tensor(v) if is_number(v, p) else v for v, p in zip(args, func._schema.arguments))


def state_of(operator, key):
    """How an operator ("aten::add.out") runs under a backend key: kernel, derived, fallback or missing."""
    for line in _C._dispatch_dump_table(operator).splitlines():
        if line.startswith(f"{key}:"):
            if line.startswith(f"{key}: default of backends"):  # the library's own, on the backend's memory
                return "derived"
            return next((state for mark, state in _KINDS.items() if line.endswith(mark)), "derived")
    return "missing"
