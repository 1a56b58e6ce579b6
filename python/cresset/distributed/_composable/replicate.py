"""DistributedDataParallel for a module in place."""

import weakref

import cresset
from cresset.nn.parallel import DistributedDataParallel

from .._composable_state import _State
from .contract import contract

__all__ = ["replicate"]


class _ReplicateState(_State):
    def __init__(self):
        self.ddp = None  # made at the first forward, when parameters are where they stay

    def _ddp_weakref(self):
        """The DistributedDataParallel, or None before the first forward."""
        return self.ddp

    def __deepcopy__(self, memo):
        raise AssertionError("replicate: a module that is replicated cannot be copied: its process group belongs to this process. Copy it first.")


def _is_sharded(module):
    return any(isinstance(p, cresset.distributed.tensor.DTensor) for p in module.parameters(recurse=False))


def _ignored_names(module, ignored):
    """Names of parameters and buffers of `ignored` modules, and of those that fully_shard manages."""
    left_out = {child for each in ignored for child in each.modules()} | {m for m in module.modules() if _is_sharded(m)}
    names = set()
    for prefix, child in module.named_modules():
        if child in left_out:
            own = (*child.named_parameters(recurse=False), *child.named_buffers(recurse=False))
            names |= {f"{prefix}.{name}" if prefix else name for name, _ in own}
    return names


def _made(module, names, options):
    """A DistributedDataParallel that leaves out what has these names, beside what the module says itself."""
    key = "_ddp_params_and_buffers_to_ignore"
    before = module.__dict__.get(key)
    module.__dict__[key] = names | set(before or ())
    try:
        return DistributedDataParallel(module, **options)
    finally:
        if before is None:
            del module.__dict__[key]
        else:
            module.__dict__[key] = before


@contract(_ReplicateState)
def replicate(module, ignored_modules=None, **kwargs):
    """Let a module average its gradients over the ranks of a process group in backward; returns the module, whose names stay.

    Parameters become those of rank 0 at the first forward. Options are those of DistributedDataParallel, and `device_id`: a device or its number.
    Parameters of `ignored_modules`, and those that fully_shard manages, are left to them. RuntimeError for a `device_id` of another type and
    for a module that fully_shard manages, NotImplementedError for mixed_precision.
    """
    device_id = kwargs.pop("device_id", None)
    if device_id is not None:
        if not isinstance(device_id, (int, cresset.device)):
            raise RuntimeError(f"Expected device_id to be int or torch.device, but got {type(device_id)}")
        if not (isinstance(device_id, cresset.device) and device_id.type == "cpu"):
            kwargs["device_ids"] = [device_id if isinstance(device_id, int) else device_id.index]
    if kwargs.get("mixed_precision") is not None:
        raise NotImplementedError("replicate: mixed_precision is not part of Cresset: a module cannot be called with other parameters from its own hooks. DistributedDataParallel has it.")
    if _is_sharded(module):
        raise RuntimeError("Cannot apply `replicate()` on a Module already managed by `fully_shard`")
    state, ignored, where = replicate.state(module), list(ignored_modules or ()), weakref.ref(module)

    def before(_, args, keywords):
        if state.ddp is None:
            state.ddp = _made(where(), _ignored_names(where(), ignored), kwargs)
        return state.ddp._before(args, keywords)

    module.register_forward_pre_hook(before, with_kwargs=True)
    module.register_forward_hook(lambda _, args, output: state.ddp._behind(output))
    return module
