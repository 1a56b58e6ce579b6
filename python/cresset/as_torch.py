"""PyTorch's Python name for Cresset.

`python -m cresset.as_torch script.py [arguments]`, or `-m module`, runs a program in which `import torch` and
`import torch.X` give `cresset` and `cresset.X`; install() does the same inside of a program. `__version__` is then PyTorch's whose
interface this is, and dtypes, layouts, sizes and operators print as `torch.…`. Nothing is changed on disk, and a real `torch` that was imported already is left alone (ImportError).
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types

__all__ = ["install", "main"]

# What packages compare with when they ask which PyTorch this is; TORCH_VERSION in the C++ headers says the same.
_PYTORCH_VERSION = "2.13.0"

_FOREIGN = "Run `pip uninstall cresset cresset-runtime`, then `pip install cresset-runtime`."


def _own_name(name):
    """cresset's name of a module of torch, or of the package functorch."""
    return f"cresset.{name}" if name.partition(".")[0] == "functorch" else "cresset" + name[len("torch") :]


class _Loader(importlib.abc.Loader):
    def create_module(self, spec):
        module = importlib.import_module(_own_name(spec.name))
        # The import system marks the module it is given with the spec it asked for; this one has its own.
        self._own = (getattr(module, "__spec__", None), getattr(module, "__loader__", None))
        return module

    def exec_module(self, module):
        module.__spec__, module.__loader__ = self._own


def _renamed(module_name):
    return "torch" + module_name[len("cresset") :]


def _is_own(name):
    return isinstance(name, str) and (name == "cresset" or name.startswith("cresset."))


def _rename(module):
    """Classes and functions of a module say that they are torch's: they print so, and so pickles name them."""
    kinds = (type, types.FunctionType, types.BuiltinFunctionType, sys.modules["cresset"]._C.overridable)
    for value in list(vars(module).values()):
        if isinstance(value, kinds) and _is_own(getattr(value, "__module__", None)):
            if value.__module__ in _KEEP:
                continue
            try:
                value.__module__ = _renamed(value.__module__)
            except (AttributeError, TypeError):  # C types that cannot change
                continue
            if isinstance(value, type):
                _rename(value)


def _is_ours(name):
    """Does importing this name of torch give cresset's module? A program may have a finder of its own for some."""
    for finder in sys.meta_path:
        spec = finder.find_spec(name, None, None) if hasattr(finder, "find_spec") else None
        if spec is not None:
            return isinstance(spec.loader, _Loader)
    return False


# What pickles for other processes name must be there without the alias.
_KEEP = frozenset(["cresset.multiprocessing.reductions", "cresset._fork_pickling", "cresset.utils.data._utils.worker", "cresset.as_torch"])


class _Renamer(importlib.abc.MetaPathFinder):
    """Modules of cresset that are loaded later are renamed, too."""

    def find_spec(self, name, path=None, target=None):
        if not name.startswith("cresset."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                _rename(module)
                if _is_ours(_renamed(name)):
                    sys.modules.setdefault(_renamed(name), sys.modules.get(name, module))  # a module may put another in its place

            spec.loader.exec_module = exec_module
        return spec


def torch_version(own=None):
    """`__version__` under the alias, and what the distribution `torch` says: PyTorch's version, with Cresset's (`own`) as the local part."""
    if own is None:
        from cresset._build_info import version as own
    return f"{_PYTORCH_VERSION}+cresset{own}"


def torch_metadata(own=None):
    """METADATA of the distribution `torch` that packages find when they ask which one is installed."""
    return f"Metadata-Version: 2.1\nName: torch\nVersion: {torch_version(own)}\nSummary: PyTorch's Python name for Cresset\n\n"


def _distribution():
    from importlib.metadata import Distribution

    class TorchDistribution(Distribution):
        def read_text(self, filename):
            return torch_metadata() if filename == "METADATA" else None

        def locate_file(self, path):
            return Path(__file__).resolve().parent.parent / path

    from pathlib import Path

    return TorchDistribution()


class _Finder(importlib.abc.MetaPathFinder):
    """Finds torch and functorch, and everything under them, at cresset. One module object has both names. `importlib.metadata` finds the
    distribution `torch`."""

    @staticmethod
    def find_distributions(context=None):
        # In front of all others, so that no torch that lies elsewhere on the path answers for this one.
        asked = getattr(context, "name", None)
        return [_distribution()] if asked is None or asked.lower() == "torch" else []

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in ("torch", "functorch"):
            return None
        try:
            found = importlib.util.find_spec(_own_name(name))
        except ModuleNotFoundError:
            found = None
        if found is None and _own_name(name) not in sys.modules:
            return None
        return importlib.machinery.ModuleSpec(name, _Loader(), is_package=found is None or found.submodule_search_locations is not None)


def install():
    """Make `torch` mean cresset in this process; doing it again changes nothing."""
    import cresset

    if not hasattr(cresset, "_C"):
        raise ImportError(f"as_torch: {cresset.__file__} belongs to another project called cresset. {_FOREIGN}")
    from cresset.torch_version import TorchVersion

    present = sys.modules.get("torch")
    if present is cresset:
        return
    if present is not None and not getattr(present, "_stands_for_cresset", False):
        raise ImportError("as_torch: another torch is imported already. Call install() in front of the first import of torch.")
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path[:0] = [_Finder(), _Renamer()]
    sys.modules["torch"] = cresset
    cresset._C._set_printed_name("torch")
    cresset.__name__ = "torch"
    cresset.__version__ = importlib.import_module("cresset.version").__version__ = TorchVersion(torch_version())
    # Modules that exist as objects only (cresset.ops) and those that are loaded already have both names at once.
    for name, module in list(sys.modules.items()):
        if name.startswith("cresset."):
            sys.modules.setdefault(_renamed(name), module)
    for name, module in list(sys.modules.items()):
        if _is_own(name) and isinstance(module, types.ModuleType):
            _rename(module)
    for results in cresset._C._return_types.values():  # those made so far
        results.__module__ = "torch.return_types"
    from cresset._devices import load_torch_backends

    load_torch_backends()


def main(arguments=None):
    """`as_torch script.py …` or `as_torch -m module …`."""
    import runpy

    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m cresset.as_torch [-m module | script.py | -c code] [arguments]")
        return 0 if arguments else 2
    install()
    if arguments[0] == "-c":
        sys.argv = ["-c", *arguments[2:]]
        sys.path.insert(0, "")
        exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})
    elif arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path.insert(0, "")
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        import os

        sys.argv = arguments
        sys.path.insert(0, os.path.dirname(os.path.abspath(arguments[0])))
        runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
