"""What a device can do, as data: one small table that tests and the score card read.

    [device]
    dtypes = ["float32", "int64", "bool"]        # others are skipped; without the key all are tried
    only = ["add*", "mul*"]                      # allow list: names or patterns of operators or tests; without it all
    denormals = false                            # numbers below the normal range may become 0
    [skip]
    "linalg_*" = "no LAPACK on this device"      # block list, with reasons
    [tolerance]
    float32 = [1e-4, 1e-5]                       # rtol, atol
    [tolerance."softmax*"]
    float16 = [1e-2, 1e-3]
"""

import fnmatch
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Capabilities", "dtype_name"]


def dtype_name(dtype):
    """'float32' for cresset.float32."""
    return str(dtype).rpartition(".")[2]


def _matches(name, pattern):
    """Patterns are for the full name (add.Tensor) or for the part before the overload (add)."""
    return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name.partition(".")[0], pattern)


@dataclass
class Capabilities:
    """The table of one device. Empty: everything is tried with the tolerances of assert_close."""

    dtypes: tuple | None = None
    only: tuple | None = None
    skip: dict = field(default_factory=dict)
    tolerance: dict = field(default_factory=dict)
    denormals: bool = True

    @classmethod
    def load(cls, path):
        """The table in a TOML file. ValueError names a key that does not exist."""
        data = tomllib.loads(Path(path).read_text())
        device = data.pop("device", {})
        unknown = sorted(set(data) - {"skip", "tolerance"}) + sorted(f"device.{key}" for key in set(device) - {"dtypes", "only", "denormals"})
        if unknown:
            raise ValueError(f"{path}: device.dtypes, device.only, device.denormals, skip and tolerance are known; {', '.join(unknown)} was given.")
        return cls(device.get("dtypes"), device.get("only"), data.get("skip", {}), data.get("tolerance", {}), device.get("denormals", True))

    def reason_to_skip(self, name, dtype=None):
        """Why `name` (an operator or a test), or its run in a dtype, is left out; None when it is to run."""
        if self.only is not None and not any(_matches(name, pattern) for pattern in self.only):
            return "not in the device's allow list"
        for pattern, reason in self.skip.items():
            if _matches(name, pattern):
                return reason
        if dtype is not None and not self.supports(dtype):
            return f"the device has no {dtype_name(dtype)}"
        return None

    def supports(self, dtype):
        return self.dtypes is None or dtype_name(dtype) in self.dtypes

    def tolerances(self, name, dtype):
        """(rtol, atol) for results in a dtype, or None where the table says nothing: an entry for the name wins over the general one."""
        word = dtype_name(dtype)
        for pattern, entry in self.tolerance.items():
            if isinstance(entry, dict) and word in entry and _matches(name, pattern):
                return tuple(entry[word])
        entry = self.tolerance.get(word)
        return tuple(entry) if isinstance(entry, (list, tuple)) else None
