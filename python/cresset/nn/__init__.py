"""Neural network modules, their functional forms, initial values and utilities."""

from . import functional, init, modules, parameter, utils  # noqa: F401
from .modules import *  # noqa: F403
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter  # noqa: F401
