"""How exact products of float32 must be, for each library and operation, and when settings of libraries may be written."""

import sys
import types
from contextlib import contextmanager

__all__ = ["Precision", "Settings", "allow_nonbracketed_mutation", "disable_global_flags", "flags_frozen", "matmul_precision", "set_matmul_precision"]

_KNOWN = ("none", "ieee", "tf32", "bf16")
_frozen = [False]


class Precision:
    """One place of the tree: what is set here, else what its parent has, else its own default.

    A precision is what may be used at least: kernels here always compute float32 in full, which every one of them allows.
    """

    def __init__(self, parent=None, device="generic", default="none"):
        self.parent, self.device, self.default, self.own = parent, device, default, "none"

    def get(self):
        """The precision that holds here."""
        place = self
        while place.own == "none" and place.parent is not None:
            place = place.parent
        found = place.own
        if found == "bf16" and self.device == "cuda":
            return "none"
        return self.default if found == "none" else found

    def set(self, name):
        """Set "none", "ieee", "tf32" or "bf16". RuntimeError for another, and for what the device does not have."""
        if name not in _KNOWN:
            raise RuntimeError(f"Unknown precision: {name}")
        if name == "bf16" and self.device == "cuda":
            raise RuntimeError(f"backend 'cuda' does not support precision '{name}'")
        self.own = name


class Operation:
    """The settings of one operation of a library: `fp32_precision`."""

    def __init__(self, place):
        object.__setattr__(self, "_place", place)

    @property
    def fp32_precision(self):
        return self._place.get()

    @fp32_precision.setter
    def fp32_precision(self, name):
        self._place.set(name)

    def __setattr__(self, name, value):
        if name != "fp32_precision":
            raise AttributeError("Unknown attribute " + name)
        object.__setattr__(self, name, value)


class Settings(types.ModuleType):
    """A module of settings that disable_global_flags freezes; `fp32_precision` where it has a place for it."""

    fp32_precision = Operation.fp32_precision

    def __setattr__(self, name, value):
        if _frozen[0] and not name.startswith("__"):
            said = self.__name__.replace("cresset.", "torch.", 1)
            raise RuntimeError(f"not allowed to set {said} flags after disable_global_flags; please use flags() context manager instead")
        super().__setattr__(name, value)


class Backends(types.ModuleType):
    """The package itself: `fp32_precision` for all libraries."""

    fp32_precision = Settings.fp32_precision


def flags_frozen():
    """May settings be written only within a flags() block?"""
    return _frozen[0]


def disable_global_flags():
    """From now on settings are written within flags() blocks only; elsewhere RuntimeError."""
    _frozen[0] = True


@contextmanager
def allow_nonbracketed_mutation():
    """A block in which settings may be written all the same."""
    before, _frozen[0] = _frozen[0], False
    try:
        yield
    finally:
        _frozen[0] = before


_everywhere = Precision()
_cuda = Precision(_everywhere, "cuda")
_products = {"cuda": Precision(_cuda, "cuda"), "mkldnn": Precision(_everywhere)}
_matmul = ["highest"]


def matmul_precision():
    """"highest", "high" or "medium": what products of float32 were last allowed by one of the older switches."""
    return _matmul[0]


def set_matmul_precision(name, *libraries):
    """Set it, for all libraries or those named; RuntimeError for another name."""
    if name not in ("highest", "high", "medium"):
        raise RuntimeError(f"{name} is not one of 'highest', 'high', or 'medium'")
    _matmul[0] = name
    for library in libraries or _products:
        _products[library].set("ieee" if name == "highest" else "tf32" if name == "high" or library == "cuda" else "bf16")


def install(package, mkldnn, cudnn, cuda):
    """Give the modules their places."""
    sys.modules[package].__class__ = Backends
    sys.modules[package].__dict__["_place"] = _everywhere
    mkldnn.__dict__.update(_place=_everywhere, matmul=Operation(_products["mkldnn"]), **{name: Operation(Precision(_everywhere)) for name in ("conv", "rnn")})
    cudnn.__dict__.update(_place=_cuda, **{name: Operation(Precision(_cuda, "cuda", "tf32")) for name in ("conv", "rnn")})
    cuda.matmul._place = _products["cuda"]
