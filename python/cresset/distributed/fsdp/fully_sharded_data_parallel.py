"""FullyShardedDataParallel: PyTorch's first API of sharded data parallelism, a layer over the engine of fully_shard."""

import contextlib
import functools
import math
import warnings
from enum import Enum, auto

import cresset
from cresset import nn

from .. import _collectives, _groups
from ..checkpoint.state_dict import _from_first_rank
from ..tensor import DTensor
from . import _optim_states, _summon
from ._auto_wrap import auto_wrap
from ._common_utils import FSDP_PREFIX, FSDP_WRAPPED_MODULE, TrainingState
from ._fully_shard._fsdp_state import state_of
from ._state_dicts import after_state_dict, before_load
from ._init_utils import HYBRID_SHARDING_STRATEGIES
from ._wrapper_state import attach, ignored_states as _all_ignored, materialise, ranks_of, split_ignored
from .api import (
    BackwardPrefetch, CPUOffload, FullOptimStateDictConfig, FullStateDictConfig, LocalOptimStateDictConfig, LocalStateDictConfig, MixedPrecision,
    OptimStateDictConfig, ShardedOptimStateDictConfig, ShardedStateDictConfig, ShardingStrategy, StateDictConfig, StateDictSettings, StateDictType,
)  # fmt: skip

__all__ = [
    "BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig", "FullStateDictConfig", "FullyShardedDataParallel", "LocalOptimStateDictConfig",
    "LocalStateDictConfig", "MixedPrecision", "OptimStateDictConfig", "OptimStateKeyType", "ShardedOptimStateDictConfig", "ShardedStateDictConfig",
    "ShardingStrategy", "StateDictConfig", "StateDictSettings", "StateDictType",
]  # fmt: skip

_CONFIGS = {
    StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (LocalStateDictConfig, LocalOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (ShardedStateDictConfig, ShardedOptimStateDictConfig),
}
FLAT_PARAM = "_flat_param"  # a name that libraries look for in those of parameters; none has it here
_NO_FLAT_PARAMETERS = (FLAT_PARAM, "_handle", "_handles", "params")


class OptimStateKeyType(Enum):
    """What the keys of an optimizer's state are."""

    PARAM_NAME = auto()
    PARAM_ID = auto()


class FullyShardedDataParallel(nn.Module):
    """A module whose parameters, gradients and optimizer states the ranks of a group divide among them.

    Forward gathers the parameters that no wrapped submodule has, backward reduces their gradients to the mean over the ranks. Make optimizers after wrapping.
    All ranks make the same calls. Attributes and items that the wrapper does not have are those of the module, `module`.

    Unlike in PyTorch there are no flat parameters: every parameter is by itself, as with use_orig_params=True, whatever is passed. Between passes it is a
    DTensor of the whole size, of which this rank has a part of dimension 0 (a plain tensor under NO_SHARD). So groups of an optimizer may have
    other options, frozen parameters may lie beside others, and a `_flat_param` does not exist.

    process_group, device_mesh: the ranks; for hybrid strategies (group that shards, group of copies), or a mesh of two dimensions, copies first.
    sharding_strategy: see ShardingStrategy; FULL_SHARD by default. auto_wrap_policy: which submodules are wrapped by themselves (`fsdp.wrap`).
    mixed_precision: see MixedPrecision. ignored_modules, ignored_states: modules and parameters that stay as they are. param_init_fn: gives modules on the meta device
    memory and values; without it their reset_parameters() does. device_id: move the module to this device first. sync_module_states: begin with
    the values of the group's first rank. use_orig_params: without effect but for summon_full_params(with_grads=True), which needs True as in PyTorch.
    cpu_offload: parameters between passes are in memory of the device the module is on when it is wrapped, so that a module on the CPU is offloaded; this checks nothing.
    backward_prefetch, forward_prefetch, limit_all_gathers: hints of order that have no effect here.
    """

    def __init__(
        self, module, process_group=None, sharding_strategy=None, cpu_offload=None, auto_wrap_policy=None, backward_prefetch=BackwardPrefetch.BACKWARD_PRE,
        mixed_precision=None, ignored_modules=None, param_init_fn=None, device_id=None, sync_module_states=False, forward_prefetch=False,
        limit_all_gathers=True, use_orig_params=False, ignored_states=None, device_mesh=None,
    ):  # fmt: skip
        super().__init__()
        if not isinstance(module, nn.Module):
            raise TypeError(f"FullyShardedDataParallel: a module was required; a {type(module).__name__} was given.")
        if mixed_precision is not None and mixed_precision.keep_low_precision_grads:
            raise NotImplementedError("MixedPrecision(keep_low_precision_grads=True) is not supported: gradients have the dtype of their parameters.")
        if isinstance(module, (nn.ModuleList, nn.ModuleDict)):
            warnings.warn(f"FSDP will not all-gather parameters for containers that do not implement forward: {module}", stacklevel=2)
        device = _device_of(device_id)
        strategy = ShardingStrategy.FULL_SHARD if sharding_strategy is None else sharding_strategy
        roots, states = split_ignored(ignored_modules, ignored_states)
        ignored = _all_ignored(module, roots, states, FullyShardedDataParallel)
        self._ignored_modules, self._ignored_params = ignored
        kind = _device_type(module, device)
        self.sharding_strategy, mesh_info = ranks_of(strategy, process_group, device_mesh, kind, auto_wrap_policy is not None)
        if strategy in HYBRID_SHARDING_STRATEGIES and process_group is None and device_mesh is None:
            process_group = (mesh_info.shard_process_group, mesh_info.replicate_process_group)
        if auto_wrap_policy is not None:
            options = dict(
                process_group=process_group, sharding_strategy=strategy, cpu_offload=cpu_offload, backward_prefetch=backward_prefetch,
                mixed_precision=mixed_precision, param_init_fn=param_init_fn, device_id=device_id, sync_module_states=sync_module_states,
                forward_prefetch=forward_prefetch, limit_all_gathers=limit_all_gathers, use_orig_params=use_orig_params, device_mesh=device_mesh,
                ignored_states=self._ignored_params,
            )  # fmt: skip
            auto_wrap(module, auto_wrap_policy, FullyShardedDataParallel, *ignored, options)
        materialise(module, param_init_fn, *ignored, device or cresset.device(kind), FullyShardedDataParallel)
        if device is not None:
            _move(module, device, self._ignored_params)
        self.process_group = mesh_info.shard_process_group or mesh_info.replicate_process_group or process_group
        if self.process_group is None:
            self.process_group = mesh_info.group
        self.rank, self.world_size = self.process_group.rank(), self.process_group.size()
        if sync_module_states:
            _synchronise(module, mesh_info, *ignored)
        self.cpu_offload, self.mixed_precision = cpu_offload or CPUOffload(), mixed_precision or MixedPrecision()
        self.backward_prefetch, self.forward_prefetch, self.limit_all_gathers = backward_prefetch, forward_prefetch, limit_all_gathers
        self._use_orig_params, self._device_mesh, self._summoned = use_orig_params, device_mesh, 0
        self._fsdp_wrapped_module = module
        attach(self, mesh_info, self.sharding_strategy, self.mixed_precision, *ignored)
        self._set_type(StateDictType.FULL_STATE_DICT, None, None)
        self.register_state_dict_post_hook(after_state_dict)
        self.register_load_state_dict_pre_hook(before_load)

    # --- the module inside

    @property
    def module(self):
        """The module inside, without an activation wrapper."""
        from ..algorithms._checkpoint.checkpoint_wrapper import ActivationWrapper

        inner = self._fsdp_wrapped_module
        return inner._checkpoint_wrapped_module if isinstance(inner, ActivationWrapper) else inner

    def __getattr__(self, name):
        if name in _NO_FLAT_PARAMETERS:
            raise AttributeError(f"FullyShardedDataParallel has no {name}: parameters are not flattened here. parameters() gives each as a DTensor.")
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == FSDP_WRAPPED_MODULE:
                raise
            return getattr(self._fsdp_wrapped_module, name)

    def __getitem__(self, key):
        return self.module.__getitem__(key)

    def forward(self, *args, **kwargs):
        """That of the module inside, with its parameters gathered."""
        return self._fsdp_wrapped_module(*args, **kwargs)

    def named_parameters(self, *args, **kwargs):
        """Names and parameters; inside of summon_full_params without the wrappers' prefixes."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(FSDP_PREFIX, "") if self._summoned else name, parameter

    def named_buffers(self, *args, **kwargs):
        """Names and buffers; inside of summon_full_params without the wrappers' prefixes."""
        for name, buffer in super().named_buffers(*args, **kwargs):
            yield name.replace(FSDP_PREFIX, "") if self._summoned else name, buffer

    def _apply(self, *args, **kwargs):
        self._fsdp_state.reshard()
        return super()._apply(*args, **kwargs)

    def apply(self, fn):
        """fn(module) for this and all modules below, with whole parameters, whose changes are kept. ValueError inside of summon_full_params, forward or backward."""
        self._assert_state(TrainingState.IDLE)
        with _summon.summoned([self], True, False, False, False):
            return super().apply(fn)

    # --- states

    @staticmethod
    def fsdp_modules(module, root_only=False):
        """The wrappers at and below a module; `root_only`: those that are in no other."""
        found = [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]
        return [m for m in found if m.check_is_root()] if root_only else found

    def check_is_root(self):
        """Is this wrapper in no other? It counts from now on."""
        self._fsdp_state.lazy_init()
        return self._fsdp_state.is_root

    @property
    def _is_root(self):
        return self._fsdp_state.is_root

    @property
    def training_state(self):
        """A TrainingState."""
        if self._fsdp_state.is_busy:
            return TrainingState.FORWARD_BACKWARD
        return TrainingState.SUMMON_FULL_PARAMS if self._summoned else TrainingState.IDLE

    @property
    def _comm_hook(self):
        """The hook of register_comm_hook, or None."""
        return self._fsdp_state.group.comm_hook if self._has_params else None

    @_comm_hook.setter
    def _comm_hook(self, hook):
        self._fsdp_state.group.comm_hook = hook

    @property
    def _comm_hook_state(self):
        """The state of that hook, or None."""
        return self._fsdp_state.group.comm_hook_state if self._has_params else None

    @property
    def _inter_node_pg(self):
        """The group of copies, for hybrid strategies."""
        info = self._fsdp_state.group.mesh_info if self._has_params else None
        return None if info is None else info.replicate_process_group

    def _assert_state(self, state):
        states = [state] if isinstance(state, TrainingState) else list(state)
        if self.training_state not in states:
            raise ValueError(f"expected to be in states {states} but current state is {self.training_state}")

    @property
    def _has_params(self):
        return self._fsdp_state.group is not None

    @staticmethod
    def summon_full_params(module, recurse=True, writeback=True, rank0_only=False, offload_to_cpu=False, with_grads=False):
        """A block in which modules have whole parameters; all ranks enter and leave it together.

        recurse: also those of wrappers below. writeback: changes are kept, of each rank's own part. rank0_only: the others keep their parts
        (needs writeback=False). with_grads: gradients, too. AssertionError during forward or backward; both may run in the block.
        """
        modules = [m for m in (module.modules() if recurse else [module]) if isinstance(m, FullyShardedDataParallel)]
        for each in modules:
            shards = each.sharding_strategy != ShardingStrategy.NO_SHARD
            _summon.check(writeback, rank0_only, offload_to_cpu, with_grads, each._use_orig_params, shards)
        return _summon.summoned(modules, writeback, rank0_only, offload_to_cpu, with_grads)

    # --- training

    @contextlib.contextmanager
    def no_sync(self):
        """A block whose backwards add up gradients of the wholes on each rank; the next backward outside of it reduces them."""
        if not self.check_is_root():
            raise RuntimeError("`no_sync()` on inner FSDP instances is not supported. Please call `no_sync()` on root FSDP module.")
        groups = [s.group for s in self._fsdp_state.context.states if s.group is not None]
        before = [(g.reduce_grads, g.all_reduce_grads) for g in groups]
        for group in groups:
            group.reduce_grads = group.all_reduce_grads = False
        try:
            yield
        finally:
            for group, (reduce, all_reduce) in zip(groups, before):
                group.reduce_grads, group.all_reduce_grads = reduce, all_reduce

    def zero_grad(self, set_to_none=True):
        """Forget gradients, also what no_sync has kept."""
        super().zero_grad(set_to_none)
        for state in {state_of(m) for m in self.modules()} - {None}:
            for p in state.group.fsdp_params if state.group is not None else ():
                p.accumulated_grad = None

    @cresset.no_grad()
    def clip_grad_norm_(self, max_norm, norm_type=2.0):
        """Scale all gradients so that their norm over all ranks is `max_norm` at most; the norm before. Only of the outermost wrapper, on all ranks together."""
        if not self.check_is_root():
            raise RuntimeError("`clip_grad_norm_()` should only be called on the root FSDP instance")
        grads = [p.grad for p in self.parameters() if p.grad is not None]
        if not grads and not self._has_sharded_params():
            warnings.warn(
                f"Called FSDP.clip_grad_norm_() on rank {self.rank} with no gradients -- returning the total norm in the default dtype "
                f"{cresset.get_default_dtype()}", stacklevel=2
            )  # fmt: skip
            return cresset.tensor(0.0)
        total = _total_norm(grads, float(norm_type), self._fsdp_state)
        factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
        for grad in grads:
            local = grad._local_tensor if isinstance(grad, DTensor) else grad
            local.mul_(factor.to(local.dtype))
        dtypes = {grad.dtype for grad in grads}
        return total.to(functools.reduce(cresset.promote_types, dtypes)) if dtypes else total

    def _has_sharded_params(self):
        return any(isinstance(p, DTensor) for p in self.parameters())

    def register_comm_hook(self, state, hook):
        """Let hook(state, gradients, part) put the reduced part of this rank into `part`; under NO_SHARD hook(state, gradients) works in place. Before training."""
        if not self.check_is_root():
            raise AssertionError("register_comm_hook can only be called on a root instance.")
        groups = [s.group for s in self._fsdp_state.context.states if s.group is not None]
        for wrapper in self.fsdp_modules(self):
            if wrapper.sharding_strategy in HYBRID_SHARDING_STRATEGIES:
                raise AssertionError(f"Communication hook is not supported for hybrid strategies: {wrapper.sharding_strategy}")
        if any(g.comm_hook is not None for g in groups):
            raise AssertionError("A communication hook is already registered")
        if not callable(hook):
            raise ValueError(f"The communication hook must be callable but got {hook}")
        for group in groups:
            group.comm_hook, group.comm_hook_state = hook, state

    # --- kinds of state dicts

    def _set_type(self, kind, config, optim_config):
        model, optim = _CONFIGS[kind]
        config, optim_config = config or model(), optim_config or optim()
        for name, given, wanted in (("state_dict_config", config, model), ("optim_state_dict_config", optim_config, optim)):
            if type(given) is not wanted:
                raise RuntimeError(f"Expected {name} of type {wanted} but got {type(given)}")
        if self._device_mesh is not None:
            if kind == StateDictType.LOCAL_STATE_DICT:
                raise RuntimeError("Found state_dict_type LOCAL_STATE_DICT. DeviceMesh is not compatible with LOCAL_STATE_DICT.")
            if kind == StateDictType.SHARDED_STATE_DICT:
                config._use_dtensor = optim_config._use_dtensor = True
        self._state_dict_type, self._state_dict_config, self._optim_state_dict_config = kind, config, optim_config

    @staticmethod
    def set_state_dict_type(module, state_dict_type, state_dict_config=None, optim_state_dict_config=None):
        """Let state_dict() of the module and of all wrappers below give this kind; the settings before. RuntimeError for configurations of another kind."""
        before = FullyShardedDataParallel.get_state_dict_type(module)
        for wrapper in FullyShardedDataParallel.fsdp_modules(module):
            wrapper._set_type(state_dict_type, state_dict_config, optim_state_dict_config)
        return before

    @staticmethod
    def get_state_dict_type(module):
        """The StateDictSettings of the wrappers at and below a module. AssertionError where they differ."""
        found = StateDictSettings(None, None, None)
        for wrapper in FullyShardedDataParallel.fsdp_modules(module):
            mine = StateDictSettings(wrapper._state_dict_type, wrapper._state_dict_config, wrapper._optim_state_dict_config)
            if found.state_dict_type is not None and mine != found:
                raise AssertionError(f"All FSDP modules must have the same state dict settings.Got {mine} and {found}.")
            found = mine
        return found

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(module, state_dict_type, state_dict_config=None, optim_state_dict_config=None):
        """set_state_dict_type for a block."""
        before = FullyShardedDataParallel.set_state_dict_type(module, state_dict_type, state_dict_config, optim_state_dict_config)
        try:
            yield
        finally:
            if before.state_dict_type is not None:
                FullyShardedDataParallel.set_state_dict_type(module, before.state_dict_type, before.state_dict_config, before.optim_state_dict_config)

    # --- states of optimizers

    @staticmethod
    def optim_state_dict(model, optim, optim_state_dict=None, group=None):
        """The state of an optimizer of the model's parameters by their names, whole or in parts as state_dict_type says. `optim_state_dict`: of now, without."""
        settings = FullyShardedDataParallel.get_state_dict_type(model)
        config = settings.optim_state_dict_config or FullOptimStateDictConfig()
        full = settings.state_dict_type in (None, StateDictType.FULL_STATE_DICT)
        return _optim_states.named_state(
            model, optim, optim_state_dict, full, getattr(config, "_use_dtensor", False), getattr(config, "rank0_only", False), config.offload_to_cpu, group
        )

    @staticmethod
    def optim_state_dict_to_load(model, optim, optim_state_dict, is_named_optimizer=False, load_directly=False, group=None):
        """What optim.load_state_dict takes, of what optim_state_dict gave, on this or another number of ranks where it is whole. `load_directly`: load it, too."""
        made = _optim_states.to_load(model, optim, optim_state_dict, is_named_optimizer)
        if load_directly:
            optim.load_state_dict(made)
        return made

    @staticmethod
    def full_optim_state_dict(model, optim, optim_input=None, rank0_only=True, group=None):
        """The older form of optim_state_dict with whole tensors."""
        _warn_older("full_optim_state_dict", "optim_state_dict")
        return _optim_states.named_state(model, optim, None, True, False, rank0_only, True, group)

    @staticmethod
    def sharded_optim_state_dict(model, optim, group=None):
        """The older form of optim_state_dict with parts."""
        _warn_older("sharded_optim_state_dict", "optim_state_dict")
        return _optim_states.named_state(model, optim, None, False, _uses_dtensors(model), False, False, group)

    @staticmethod
    def shard_full_optim_state_dict(full_optim_state_dict, model, optim_input=None, optim=None):
        """The older form of optim_state_dict_to_load, of whole tensors. `optim_input`: the optimizer's parameters or groups, where there is no `optim`."""
        _warn_older("shard_full_optim_state_dict", "optim_state_dict_to_load")
        return _optim_states.to_load(model, optim, full_optim_state_dict, optim_input=optim_input)

    @staticmethod
    def flatten_sharded_optim_state_dict(sharded_optim_state_dict, model, optim):
        """The older form of optim_state_dict_to_load, of parts."""
        _warn_older("flatten_sharded_optim_state_dict", "optim_state_dict_to_load")
        return _optim_states.to_load(model, optim, sharded_optim_state_dict)

    @staticmethod
    def scatter_full_optim_state_dict(full_optim_state_dict, model, optim_input=None, optim=None, group=None):
        """shard_full_optim_state_dict of the state that rank 0 has; the others pass None. The group is the default one."""
        _warn_older("scatter_full_optim_state_dict", "optim_state_dict_to_load")
        if group is not None and group is not _groups._get_default_group():
            raise NotImplementedError("scatter_full_optim_state_dict: only the default group is supported.")
        return _optim_states.to_load(model, optim, _from_first_rank(full_optim_state_dict), optim_input=optim_input)

    @staticmethod
    def rekey_optim_state_dict(optim_state_dict, optim_state_key_type, model, optim_input=None, optim=None):
        """An optimizer's state with names of parameters for numbers, or the other way round: between wrapped models and others."""
        to_names = optim_state_key_type == OptimStateKeyType.PARAM_NAME
        return _optim_states.rekeyed(optim_state_dict, to_names, model, optim_input, optim)


# Parts of the constructor -------------------------------------------------------------------------------------------------


def _device_of(device_id):
    if device_id is None or isinstance(device_id, cresset.device):
        return device_id
    if not isinstance(device_id, int):
        return cresset.device(device_id)
    accelerator = cresset.accelerator.current_accelerator()
    if accelerator is None:
        raise RuntimeError(f"device_id={device_id}: a number is that of an accelerator, and there is none. Pass a device.")
    return cresset.device(accelerator.type, device_id)


def _device_type(module, device):
    """Of the mesh: that of the module's first tensor with memory."""
    if device is not None:
        return device.type
    return next((p.device.type for p in module.parameters() if not p.is_meta), "cpu")


def _move(module, device, ignored):
    for each in module.modules():
        for table in (each._parameters, each._buffers):
            for name, tensor in table.items():
                if tensor is None or tensor in ignored or isinstance(tensor, DTensor) or tensor.is_meta or tensor.device == device:
                    continue
                if isinstance(tensor, nn.Parameter):
                    tensor.data = tensor.data.to(device)
                else:
                    table[name] = tensor.to(device)


def _synchronise(module, mesh_info, ignored_modules, ignored_params):
    """Give parameters and buffers that no wrapper below has the values of the first rank."""
    from ..utils import _sync_params_and_buffers

    tensors = [t for t in (*module.parameters(), *module.buffers()) if not isinstance(t, DTensor)]
    ignored = {id(t) for t in ignored_params} | {id(b) for m in ignored_modules for b in m._buffers.values()}
    below = {id(p.sharded_param) for s in map(state_of, module.modules()) if s is not None and s.group is not None for p in s.group.fsdp_params}
    tensors = [t.detach() for t in tensors if id(t) not in ignored | below]
    for group in (mesh_info.replicate_process_group, mesh_info.shard_process_group):
        if group is not None:
            _sync_params_and_buffers(group, tensors, 250 * 2**20, 0)


def _total_norm(grads, norm_type, state):
    """The norm of all gradients. Parts add up over the ranks of the mesh dimensions that divide them; each kind of them is one message."""
    kinds = {}
    for grad in grads:
        local, groups = grad, ()
        if isinstance(grad, DTensor):
            local = grad._local_tensor
            groups = tuple(grad._spec.mesh.get_group(i) for i, p in enumerate(grad.placements) if p.is_shard())
        kinds.setdefault(groups, []).append(local)
    # A rank without gradients takes part, too: parameters say which kinds there are.
    for s in state.context.states:
        for p in s.group.fsdp_params if s.group is not None else ():
            if isinstance(p.sharded_param, DTensor):
                spec = p.sharded_param._spec
                kinds.setdefault(tuple(spec.mesh.get_group(i) for i, q in enumerate(spec.placements) if q.is_shard()), [])
    infinite, totals = norm_type == math.inf, []
    for groups, parts in kinds.items():
        norms = [cresset.linalg.vector_norm(p.float() if p.dtype.itemsize < 4 else p, norm_type) for p in parts if p.numel()]
        if not norms:
            total = cresset.zeros(())
        else:
            stacked = cresset.stack([n.to(cresset.float64) for n in norms])
            total = stacked.max() if infinite else (stacked**norm_type).sum()
        total = total.to(cresset.float64)
        for group in groups:
            _collectives.all_reduce(total, op=_collectives.ReduceOp.MAX if infinite else _collectives.ReduceOp.SUM, group=group)
        totals.append(total)
    whole = cresset.stack(totals) if totals else cresset.zeros(1, dtype=cresset.float64)
    return (whole.max() if infinite else whole.sum() ** (1.0 / norm_type)).to(cresset.get_default_dtype() if not grads else grads[0].dtype)


# Parts of the states ------------------------------------------------------------------------------------------------------


def _uses_dtensors(model):
    return any(m._device_mesh is not None for m in FullyShardedDataParallel.fsdp_modules(model))


def _warn_older(name, newer):
    owner = "FullyShardedDataParallel"
    warnings.warn(
        f"``{owner}.{name}``is being deprecated and is replaced by ``{owner}.{newer}``. ``{owner}.{name}`` may be removed after PyTorch 2.2.",
        FutureWarning, stacklevel=3,
    )  # fmt: skip

