"""fully_shard: data parallelism in which each rank keeps a part of the parameters, gradients and optimiser states."""

import functools

from cresset import nn

from ... import _groups
from ...device_mesh import init_device_mesh
from ._fsdp_api import MixedPrecisionPolicy, OffloadPolicy
from ._fsdp_common import FSDPMeshInfo
from ._fsdp_init import _get_managed_modules, _get_managed_states, _get_param_module_infos
from ._fsdp_param_group import FSDPParamGroup
from ._fsdp_state import FSDPState, state_of

__all__ = ["FSDPModule", "UnshardHandle", "fully_shard", "register_fsdp_forward_method", "share_comm_ctx"]

_CLASSES = {}  # class → its class with FSDPModule


def _mesh_info(mesh, dims):
    if mesh is None:
        if not _groups.is_initialized():
            _groups.init_process_group()
        mesh = init_device_mesh("cpu", (_groups.get_world_size(),))
    if dims is not None:
        mesh = _named(mesh, dims)
    if mesh.ndim not in (1, 2):
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    if mesh.ndim == 2 and mesh.mesh_dim_names is None:
        raise AssertionError("Please init the 2D mesh for HSDP with mesh_dim_names specified")
    return FSDPMeshInfo(mesh) if mesh.ndim == 1 else FSDPMeshInfo(mesh, shard_mesh_dim=1, replicate_mesh_dim=0)


def _named(mesh, dims):
    """The (replicating, sharding) mesh of DataParallelMeshDims."""
    def one(names):
        names = (names,) if isinstance(names, str) else tuple(names)
        part = mesh[names]
        return part if part.ndim == 1 else part._flatten()

    if dims.shard is None:
        raise ValueError("DataParallelMeshDims: `shard` is required.")
    shard = one(dims.shard)
    if dims.replicate is None:
        return shard
    return mesh._get_root_mesh()[(one(dims.replicate).mesh_dim_names[0], shard.mesh_dim_names[0])]


def fully_shard(
    module, *, mesh=None, reshard_after_forward=None, shard_placement_fn=None, mp_policy=MixedPrecisionPolicy(), offload_policy=OffloadPolicy(),
    ignored_params=None, dp_mesh_dims=None,
):  # fmt: skip
    """Divide the parameters of a module among the ranks of a mesh, in place; the module, which is an FSDPModule from now on.

    The parameters become DTensors of which each rank has a part of dimension 0 (or as `shard_placement_fn(parameter)` says). Forward gathers them, backward
    reduces the gradients to the mean over the ranks. Call it on submodules first, then on the whole: those of one call are gathered together. A mesh of
    two dimensions (with names) replicates along the first. `reshard_after_forward`: free the wholes after forward and gather them again in backward (None: all
    but the root's do). A list of modules makes one group of them. Make optimisers afterwards.
    """
    if isinstance(module, (nn.ModuleList, nn.ModuleDict)) and type(module).forward is nn.Module.forward:
        raise ValueError(f"fully_shard does not support containers that do not implement forward: {module}")
    modules = tuple(module) if isinstance(module, (list, tuple)) else (module,)
    for each in modules:
        if state_of(each) is not None:
            raise AssertionError(f"fully_shard: {type(each).__name__} has already been sharded by another call.")
    if isinstance(reshard_after_forward, int) and not isinstance(reshard_after_forward, bool):
        raise NotImplementedError("fully_shard: reshard_after_forward with a number of ranks is not supported: pass True or False.")
    if not isinstance(offload_policy, OffloadPolicy):
        raise TypeError(f"fully_shard: offload_policy: an OffloadPolicy was required; a {type(offload_policy).__name__} was given.")
    mesh_info = _mesh_info(mesh, dp_mesh_dims)
    managed = _get_managed_modules(modules)
    params, _ = _get_managed_states(managed, ignored_params)
    state = FSDPState(modules, mp_policy, reshard_after_forward is None)
    if params:
        names = _names(modules, params)
        infos = _get_param_module_infos(params, modules)
        reshard = True if reshard_after_forward is None else reshard_after_forward
        state.group = FSDPParamGroup(params, infos, names, mesh_info, mp_policy, shard_placement_fn, reshard)
    for each in modules:
        each.__dict__["_fsdp_state"] = state
        each.__class__ = _with_fsdp(type(each))
    return module


def _names(modules, params):
    found = {}
    for module in modules:
        for name, param in module.named_parameters(remove_duplicate=False):
            found.setdefault(id(param), name)
    return [found.get(id(p), "") for p in params]


def _with_fsdp(cls):
    if cls not in _CLASSES:
        _CLASSES[cls] = type(f"FSDP{cls.__name__}", (FSDPModule, cls), {"__deepcopy__": _no_deepcopy})
    return _CLASSES[cls]


def _no_deepcopy(self, memo):
    raise AssertionError("FSDP does not support deepcopy. Please use state dict for serialization.")


class UnshardHandle:
    """What unshard(async_op=True) gives: wait() puts the parameters together."""

    def __init__(self, state=None):
        self._state = state

    def wait(self):
        """Wait until the parameters are there."""
        if self._state is not None and self._state.group is not None:
            self._state.group.wait_for_unshard()
        self._state = None


class FSDPModule:
    """What a module is after fully_shard. Methods with `recurse` act on all such modules below, too."""

    def __new__(cls, *args, **kwargs):
        # Slices of containers make new ones by their class: those are not sharded.
        original = cls.__mro__[2]
        self = original.__new__(original, *args, **kwargs)
        self.__init__(*args, **kwargs)
        return self

    def _get_fsdp_state(self):
        return state_of(self)

    def _groups_of(self, recurse):
        modules = self.modules() if recurse else [self]
        return [s.group for s in dict.fromkeys(state_of(m) for m in modules) if s is not None and s.group is not None]

    def _set(self, name, value, recurse):
        for group in self._groups_of(recurse):
            setattr(group, name, value)

    def reshard(self):
        """Free the wholes of this module's own parameters: they are shards again."""
        state_of(self).reshard()

    def unshard(self, async_op=False):
        """Gather this module's own parameters. With `async_op` an UnshardHandle to wait for."""
        state = state_of(self)
        if state.group is not None:
            state.group.unshard(async_op=async_op)
        handle = UnshardHandle(state)
        if async_op:
            return handle
        handle.wait()
        return None

    def set_is_last_backward(self, is_last_backward):
        """Whether the next backward is the last one of an iteration: what is kept between backwards is waited for then. No effect here: nothing is under way after one."""
        state_of(self).is_last_backward = is_last_backward

    def set_requires_gradient_sync(self, requires_gradient_sync, *, recurse=True):
        """False: keep gradients of the wholes for a later backward instead of reducing them (accumulation without communication)."""
        self._set("reduce_grads", requires_gradient_sync, recurse)
        self._set("all_reduce_grads", requires_gradient_sync, recurse)

    def set_requires_all_reduce(self, requires_all_reduce, *, recurse=True):
        """False: reduce among the ranks that shard, not yet among those that replicate."""
        self._set("all_reduce_grads", requires_all_reduce, recurse)

    def set_reshard_after_forward(self, reshard_after_forward, recurse=True):
        """Free the wholes after forward?"""
        if not isinstance(reshard_after_forward, bool):
            raise ValueError(f"reshard_after_forward should be a bool, got {type(reshard_after_forward)}")
        for module in self.modules() if recurse else [self]:
            if state_of(module) is not None:
                state_of(module).auto_reshard = False
        self._set("reshard_after_forward", reshard_after_forward, recurse)

    def set_reshard_after_backward(self, reshard_after_backward, *, recurse=True):
        """Free the wholes after backward?"""
        self._set("reshard_after_backward", reshard_after_backward, recurse)

    def set_modules_to_forward_prefetch(self, modules):
        """Modules whose parameters are gathered while this one's forward runs."""
        state_of(self).forward_prefetch = [_checked_state(m) for m in modules]

    def set_modules_to_backward_prefetch(self, modules):
        """Modules whose parameters are gathered while this one's backward runs."""
        state_of(self).backward_prefetch = [_checked_state(m) for m in modules]

    def set_all_reduce_hook(self, hook, *, stream=None):
        """hook(tensor) changes the reduced gradients in place, before they are divided."""
        self._set("all_reduce_hook", hook, False)

    def set_gradient_divide_factor(self, factor):
        """Divide the sum of gradients by this instead of the number of ranks."""
        self._set("divide_factor", factor, False)

    set_reduce_scatter_divide_factor = set_gradient_divide_factor

    def set_force_sum_reduction_for_comms(self, enable):
        """Send sums and divide afterwards, rather than ask the backend for means."""
        self._set("force_sum", enable, False)

    def set_unshard_in_backward(self, unshard_in_backward):
        """False for parameters that backward does not need, of an embedding for instance."""
        self._set("unshard_in_backward", unshard_in_backward, False)

    def set_post_optim_event(self, event):
        """What the next gather waits for, on devices with streams. No effect here."""
        state_of(self).post_optim_event = event

    def set_allocate_memory_from_process_group_for_comm(self, enable):
        """Memory of the backend's own for messages: no backend here has any. No effect."""

    def _set_unshard_async_op(self, async_op):
        """Gathers of forward as asynchronous messages. No effect: prefetching ones are."""

    def _apply(self, *args, **kwargs):
        self.reshard()
        return super()._apply(*args, **kwargs)


def _checked_state(module):
    state = state_of(module)
    if not isinstance(module, FSDPModule) or state is None:
        raise ValueError(f"an FSDPModule was required; a {type(module).__name__} was given.")
    return state


def register_fsdp_forward_method(module, method_name):
    """Let a method run as forward does: parameters are gathered before it and freed after. ValueError where there is no such method."""
    if not isinstance(module, FSDPModule):
        return
    if not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")
    original, state = getattr(module, method_name), state_of(module)

    @functools.wraps(original)
    def method(*args, **kwargs):
        args, kwargs = state._pre_forward(module, args, kwargs)
        return state._post_forward(module, args, original(*args, **kwargs))

    setattr(module, method_name, method)


def share_comm_ctx(modules):
    """Share streams and buffers between roots. No effect: there are none."""
    for module in modules:
        _checked_state(module)


