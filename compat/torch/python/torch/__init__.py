"""`torch` for programs that run on Cresset: the distribution cresset-as-torch installs it, and nothing else does.

In a source tree, put this folder's parent on PYTHONPATH.
"""

import os
import sys

if os.path.isdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")):
    raise ImportError(
        f"torch: the files of PyTorch and of cresset-as-torch lie in one folder, {os.path.dirname(os.path.abspath(__file__))}. "
        "Run `pip uninstall torch cresset-as-torch`, then install the one that is wanted."
    )

_stands_for_cresset = True

try:
    from cresset.as_torch import install
except ModuleNotFoundError as error:
    if error.name != "cresset.as_torch":
        raise
    raise ImportError(
        f"torch: {sys.modules['cresset'].__file__} belongs to another project called cresset, which lies in front of this one. "
        "Run `pip uninstall cresset`; the distribution of this one is cresset-runtime."
    ) from None

install()
sys.modules[__name__] = sys.modules["cresset"]
