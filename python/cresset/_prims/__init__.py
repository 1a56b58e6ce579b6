"""The operators of torch.ops.prims by their names, and `utils`, which tests and libraries ask."""

import cresset
from cresset import _prims_common as utils  # noqa: F401


def __getattr__(name):
    if not name.startswith("__"):
        from ._operators import NAMES

        if name in NAMES:
            return getattr(cresset.ops.prims, name).default
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
