"""The older name of `ao.quantization`."""

from cresset.ao.quantization import *  # noqa: F403
from cresset.ao.quantization import __all__, __getattr__  # noqa: F401
