"""The name that `cresset.overrides` had in the beginning."""

from .overrides import *  # noqa: F401,F403
from .overrides import __all__  # noqa: F401
