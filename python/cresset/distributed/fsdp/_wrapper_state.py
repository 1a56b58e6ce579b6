"""How FullyShardedDataParallel uses fully_shard's engine: the ranks of a strategy, which parameters are whose, hooks of forward."""

import os
import warnings
from dataclasses import dataclass
from typing import Any

import cresset
from cresset import nn

from .. import _groups
from ..device_mesh import DeviceMesh, init_device_mesh
from ._fully_shard._fsdp_api import MixedPrecisionPolicy
from ._fully_shard._fsdp_common import FSDPMeshInfo, TrainingState
from ._fully_shard._fsdp_init import _get_managed_modules, _get_managed_states, _get_param_module_infos
from ._fully_shard._fsdp_param import FSDPParam, ReplicatedParam
from ._fully_shard._fsdp_param_group import FSDPParamGroup
from ._fully_shard._fsdp_state import FSDPState, _cast
from ._init_utils import HYBRID_SHARDING_STRATEGIES, NO_RESHARD_AFTER_FORWARD_STRATEGIES
from .api import ShardingStrategy

__all__ = ["ReplicaInfo", "WrapperState", "attach", "ranks_of"]


@dataclass
class ReplicaInfo:
    """For NO_SHARD, in the place of FSDPMeshInfo: parameters are whole on every rank of a group."""

    group: Any
    mesh = shard_process_group = None
    shard_mesh_size, shard_mesh_rank = 1, 0

    @property
    def replicate_process_group(self):
        return self.group if self.replicate_mesh_size > 1 else None

    @property
    def replicate_mesh_size(self):
        return self.group.size()


# Ranks ------------------------------------------------------------------------------------------------------------------


def ranks_of(strategy, process_group, device_mesh, device_type, wraps_automatically):
    """(the strategy that is used, FSDPMeshInfo or ReplicaInfo). ValueError where the arguments contradict each other."""
    if process_group is not None and device_mesh is not None:
        raise ValueError("Cannot pass both process_group and device_mesh at the same time. Please just pass only one of them.")
    if strategy in HYBRID_SHARDING_STRATEGIES:
        return strategy, _hybrid(strategy, process_group, device_mesh, device_type, wraps_automatically)
    if device_mesh is not None:
        if device_mesh.ndim != 1:
            raise ValueError(f"FSDP: a mesh of one dimension was required for {strategy}; one of {device_mesh.ndim} was given. Slice it by name.")
        group = device_mesh.get_group(0)
    else:
        group = process_group
        if group is None:
            if not _groups.is_initialized():
                raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
            group = _groups._get_default_group()
    if group.size() == 1 and strategy != ShardingStrategy.NO_SHARD:
        warnings.warn(f"FSDP is switching to use `NO_SHARD` instead of {strategy} since the world size is 1.", stacklevel=4)
        strategy = ShardingStrategy.NO_SHARD
    if strategy == ShardingStrategy.NO_SHARD:
        return strategy, ReplicaInfo(group)
    return strategy, FSDPMeshInfo(device_mesh if device_mesh is not None else DeviceMesh.from_group(group, device_type))


def _hybrid(strategy, process_group, device_mesh, device_type, wraps_automatically):
    if process_group is None and device_mesh is None and not wraps_automatically:
        raise ValueError(f"Manual wrapping with {strategy} requires explicit specification of process group or device_mesh.")
    if device_mesh is not None:
        if device_mesh.ndim != 2:
            raise ValueError(f"Expected device_mesh to have ndim=2 but got {device_mesh.ndim}")
        return FSDPMeshInfo(device_mesh, shard_mesh_dim=1, replicate_mesh_dim=0)
    if process_group is None:
        world = _groups.get_world_size()
        local = int(os.environ.get("LOCAL_WORLD_SIZE", world))
        if world % local:
            raise ValueError(f"{strategy}: {world} ranks were expected to be whole machines of LOCAL_WORLD_SIZE={local}. Pass two groups, or a device_mesh.")
        return FSDPMeshInfo(init_device_mesh(device_type, (world // local, local)), shard_mesh_dim=1, replicate_mesh_dim=0)
    if not isinstance(process_group, tuple) or len(process_group) != 2:
        raise ValueError(
            f"Expected process_group to be passed in as either None or Tuple[dist.ProcessGroup, dist.ProcessGroup] but got {type(process_group)}"
        )
    shard, replicate = process_group
    rows = [None] * replicate.size()
    from .. import _objects

    _objects.all_gather_object(rows, _groups.get_process_group_ranks(shard), group=replicate)
    return FSDPMeshInfo(DeviceMesh.from_group([replicate, shard], device_type, mesh=rows), shard_mesh_dim=1, replicate_mesh_dim=0)


# Parameters -------------------------------------------------------------------------------------------------------------


def attach(wrapper, mesh_info, strategy, mixed_precision, ignored_modules, ignored_params):
    """Give a wrapper the state of its module's parameters that no wrapper below has."""
    mp = mixed_precision
    policy = MixedPrecisionPolicy(mp.param_dtype, mp.reduce_dtype if mp.reduce_dtype is not None else mp.param_dtype, None, mp.cast_forward_inputs)
    managed = [m for m in _get_managed_modules((wrapper,)) if m not in ignored_modules]
    params, buffers = _get_managed_states(managed, ignored_params)
    state = WrapperState(wrapper, policy, mixed_precision, strategy)
    state.buffers_of = managed
    if params:
        names = {p: name for name, p in wrapper._fsdp_wrapped_module.named_parameters()}
        kind = ReplicatedParam if strategy == ShardingStrategy.NO_SHARD else FSDPParam
        infos = _get_param_module_infos(params, (wrapper,))
        group = FSDPParamGroup(params, infos, [names.get(p, "") for p in params], mesh_info, policy, None, strategy not in NO_RESHARD_AFTER_FORWARD_STRATEGIES, kind)
        state.group = group
        for p in group.fsdp_params:
            p.sharded_param._fsdp_flattened = True
    wrapper.__dict__["_fsdp_state"] = state
    return state


class WrapperState(FSDPState):
    """The state of a FullyShardedDataParallel module. `buffers_of`: the modules whose buffers it casts."""

    def __init__(self, wrapper, policy, mixed_precision, strategy):
        super().__init__((wrapper,), policy, strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.HYBRID_SHARD))
        self.mixed_precision, self.buffers_of, self.buffer_dtypes = mixed_precision, [], {}

    def lazy_init(self):
        if self.is_root is not None:
            return
        super().lazy_init()
        for state in self.context.states:
            state.cast_buffers()

    def cast_buffers(self):
        """Give buffers their dtype of computation; theirs of checkpoints are kept by module and name."""
        dtype = self.mixed_precision.buffer_dtype
        for module in self.buffers_of if dtype is not None else ():
            for name, buffer in module._buffers.items():
                if buffer is not None and buffer.dtype.is_floating_point:
                    self.buffer_dtypes[module, name] = buffer.dtype
                    module._buffers[name] = buffer.to(dtype)

    def _cast_inputs(self, args, kwargs):
        mp = self.mixed_precision
        wanted = mp.cast_root_forward_inputs if self.is_root else mp.cast_forward_inputs
        return _cast((args, kwargs), mp.param_dtype) if wanted and mp.param_dtype is not None else (args, kwargs)

    def _post_forward(self, module, args, output):
        output = super()._post_forward(module, args, output)
        # Without a backward nothing would free the wholes before the optimizer changes the shards, or before a program changes summoned parameters.
        summoned = self.group is not None and any(p.whole is not None for p in self.group.fsdp_params)
        if (summoned or not cresset.is_grad_enabled()) and self.training_state == TrainingState.IDLE:
            self.reshard()
        return output

    @property
    def is_busy(self):
        """Is a forward or a backward under way?"""
        states = self.context.states if self.context is not None else [self]
        return any(s.training_state != TrainingState.IDLE for s in states)


# What is left out, and where values come from -----------------------------------------------------------------------------


def ignored_states(module, ignored_modules, ignored_params, wrapper_class):
    """(modules, parameters) that are left out: these, and all below the modules."""
    for each in ignored_modules:
        if isinstance(each, wrapper_class):
            raise ValueError("`ignored_modules` should not include FSDP modules")
    if module in ignored_modules:
        warnings.warn(
            "Trying to ignore the top-level module passed into the FSDP constructor itself will result in all parameters being ignored and is not "
            f"well-supported: {module}", stacklevel=4
        )  # fmt: skip
    below = {m for each in ignored_modules for m in each.modules() if not isinstance(m, wrapper_class)}
    return below, set(ignored_params) | {p for m in below for p in m._parameters.values() if p is not None}


def split_ignored(ignored_modules, ignored_states):
    """(modules, parameters) of the constructor's two arguments. ValueError for other things."""
    if ignored_modules is not None and ignored_states is not None:
        raise ValueError("Cannot pass both ignored_modules and ignored_states at the same time. Please just pass ignored_states.")
    modules, states = list(ignored_modules or ()), list(ignored_states or ())
    if not all(isinstance(m, nn.Module) for m in modules):
        raise ValueError(f"ignored_modules expects nn.Module list elements but got types {_types(modules)}")
    if all(isinstance(s, nn.Module) for s in states):
        return modules + states, []
    if not all(isinstance(s, nn.Parameter) for s in states):
        raise ValueError(f"ignored_states expects all nn.Parameter or all nn.Module list elements but got types {_types(states)}")
    return modules, states


def _types(values):
    return sorted({type(v) for v in values}, key=repr)


def materialise(module, param_init_fn, ignored_modules, ignored_params, device, wrapper_class):
    """Give parameters on the meta device memory and values: by param_init_fn(module), or by the modules' reset_parameters()."""
    if param_init_fn is not None and not callable(param_init_fn):
        raise ValueError(f"Expected {param_init_fn} to be callable but got {type(param_init_fn)}")
    mine = [m for m in _get_managed_modules((module,)) if m not in ignored_modules and not isinstance(m, wrapper_class)]
    for each in reversed(mine):  # parents first
        states = [t for t in (*each._parameters.values(), *each._buffers.values()) if t is not None and t not in ignored_params]
        if not any(t.is_meta for t in states):
            continue
        if param_init_fn is not None:
            param_init_fn(each)
            continue
        each.to_empty(device=device, recurse=False)
        if not hasattr(each, "reset_parameters"):
            raise RuntimeError(f"FSDP: a module on the meta device needs reset_parameters(); {type(each).__name__} has none. Pass param_init_fn.")
        with cresset.no_grad():
            each.reset_parameters()
