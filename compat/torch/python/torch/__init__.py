"""`torch` for programs that run on Cresset: put this folder's parent on PYTHONPATH. It is never installed by default."""

import sys

_stands_for_cresset = True

from cresset.as_torch import install  # noqa: E402

install()
sys.modules[__name__] = sys.modules["cresset"]
