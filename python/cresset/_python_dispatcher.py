"""`PythonDispatcher`: which kernel of an operator each backend would run, asked with registrations that compute nothing."""

import itertools

from . import _C

__all__ = ["PythonDispatcher"]

_KEYS = ("CPU", "XLA", "Lazy", "FPGA", "AutogradOther", "AutogradCPU", "AutogradXLA", "AutogradLazy")
_ORDER = ("FPGA", *(k for k in _KEYS if k != "FPGA"))  # of registrations
# Kernels for these can never be called, so the dispatcher keeps none; another backend, by the same rules, shows where they would stand.
_SHOWN_BY = {"Lazy": "CUDA", "AutogradLazy": "AutogradCUDA"}
_NAMES = {shown: name for name, shown in _SHOWN_BY.items()}
_numbers = itertools.count()


class PythonDispatcher:
    """An operator of its own without a computation: register keys, then look at its tables.

    register(["CPU", "CompositeImplicitAutograd"]) makes kernels called fn_CPU and so on; registrations() and dispatchTable() are texts.
    """

    name = "foo"

    def __init__(self):
        self._namespace = f"__test_python_dispatcher_{next(_numbers)}__"
        self.ref = _C._dispatch_library("FRAGMENT", self._namespace, "")
        self.ref.def_("foo(Tensor x) -> Tensor")

    def keys(self):
        """The keys that the tables show."""
        return list(_KEYS)

    def register(self, dispatchKeys):
        """Give the operator a kernel for each key; RuntimeError for a key twice, or for both kinds of composites."""
        keys = list(dispatchKeys)
        if len(set(keys)) != len(keys):
            raise RuntimeError(f"Overriden is not allowed but found duplicates in {keys}.")
        if {"CompositeImplicitAutograd", "CompositeExplicitAutograd"} <= set(keys):
            raise RuntimeError("Registration to both CompositeImplicitAutograd and CompositeExplicitAutograd is not allowed.")
        for key in keys:
            self.ref.impl_t_t("foo", dispatch=_SHOWN_BY.get(key, key), debug=f"fn_{key}")

    @property
    def _qualified(self):
        return f"{self._namespace}::{self.name}"

    def rawRegistrations(self):
        """All registrations, as the dispatcher dumps them."""
        return _C._dispatch_dump(self._qualified)

    def rawDispatchTable(self):
        """The table of every key, as the dispatcher dumps it."""
        return _C._dispatch_dump_table(self._qualified)

    @staticmethod
    def _table(title, rows):
        lines = "".join(f"{key:<15} {kernel}\n" for key, kernel in rows)
        return f"\n{title}\n{'key':<15} kernel\n{'-' * 27}\n{lines}"

    def registrations(self):
        """Key and kernel of each registration."""
        rows = []
        for line in self.rawRegistrations().splitlines():
            key, _, kernel = line.partition(": ")
            if kernel.startswith("fn_"):
                rows.append((_NAMES.get(key, key), kernel.partition(" ")[0]))
        rows.sort(key=lambda row: _ORDER.index(row[0]) if row[0] in _ORDER else len(_ORDER))
        return self._table("Registered Kernels", rows)

    def dispatchTable(self):
        """Key and kernel of the keys that matter, with the rule that chose it."""
        entries = dict(line.split(": ", 1) for line in self.rawDispatchTable().splitlines())
        rows = []
        for key in _KEYS:
            entry = entries.get(_SHOWN_BY.get(key, key))
            if entry is not None:
                rows.append((key, entry[entry.index("[") :] if entry.endswith("[backend fallback]") else entry))
        return self._table("Computed Dispatch Table", rows)
