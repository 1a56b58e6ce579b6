"""`functorch` for programs that run on Cresset; see `torch` beside it."""

import sys

import torch  # noqa: F401
from cresset import functorch

sys.modules[__name__] = functorch
