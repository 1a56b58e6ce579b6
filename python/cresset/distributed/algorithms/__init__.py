"""How gradients travel: `ddp_comm_hooks`."""

from functools import partial as _partial

from cresset._submodules import submodule as _submodule

__getattr__ = _partial(_submodule, __name__)
