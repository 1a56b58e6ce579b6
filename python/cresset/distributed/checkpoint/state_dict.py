"""States of models and optimizers by the names of parameters, the same whatever wraps the model and however many ranks there are."""

import contextlib
import sys
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Tuple, Union

import cresset
from cresset import distributed as dist
from cresset import nn

from . import _sharding

__all__ = [
    "FQNS_T", "DictValueType", "ListDictValueType", "OptimizerStateType", "PrimitiveType", "StateDictOptions", "ValueType", "get_model_state_dict",
    "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict", "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip

FQNS_T = set
PrimitiveType = Union[cresset.Tensor, int, float, str]
ValueType = Union[PrimitiveType, List[PrimitiveType], Tuple[PrimitiveType], Dict[str, Any]]
DictValueType = Dict[str, ValueType]
ListDictValueType = List[DictValueType]
OptimizerStateType = Dict[str, Union[DictValueType, ListDictValueType]]

_STATE, _GROUPS, _PARAMS = "state", "param_groups", "params"
_WRAPPERS = ("_orig_mod", "_checkpoint_wrapped_module", "_fsdp_wrapped_module")


@dataclass
class StateDictOptions:
    """How states are got and set.

    `full_state_dict`: whole tensors instead of sharded ones, on all ranks; with `cpu_offload` on the CPU, and of a full one on rank 0 only (the others
    get {}). `ignore_frozen_params` leaves out parameters without gradients. `strict` is that of load_state_dict. `broadcast_from_rank0` takes the full
    state of rank 0 for all (needs full_state_dict). `flatten_optimizer_state_dict` gives "state.<name>.<key>" and "param_groups.<name>.<key>".
    `keep_submodule_prefixes` is for `submodules`.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _options_of(options):
    options = replace(options) if options is not None else StateDictOptions()
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    if options.broadcast_from_rank0 and not (dist.is_available() and dist.is_initialized()):
        options.broadcast_from_rank0 = False
    return options


def _is_first():
    return not (dist.is_available() and dist.is_initialized()) or dist.get_rank() == 0


# Names ------------------------------------------------------------------------------------------------------------------


def _get_fqn(model, name):
    """The name of a parameter or buffer without what wrappers add."""
    module, kept = model, []
    for part in name.split("."):
        wraps = part in _WRAPPERS or (part == "module" and isinstance(module, nn.parallel.DistributedDataParallel))
        if not wraps:
            kept.append(part)
        module = getattr(module, part, None) if isinstance(module, nn.Module) else None
    return ".".join(kept)


def _get_fqns(model, name, dsd_fqn_modifiers="_fqn_modifiers", skip_ddp_prefix=True, skip_compiler_prefix=True):
    return {_get_fqn(model, name)}


def _names_of_parameters(model):
    """Parameter -> its name, the first of several."""
    names = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(parameter, _get_fqn(model, name))
    return names


def _prefixes_of(model, submodules):
    names = {module: name for name, module in model.named_modules()}
    missing = [module for module in submodules if module not in names]
    if missing:
        raise ValueError(f"submodules: modules of the model were required; {type(missing[0]).__name__} is none.")
    return [_get_fqn(model, names[module]) + "." if names[module] else "" for module in submodules]


# Getting ----------------------------------------------------------------------------------------------------------------


def _whole(value):
    """A sharded tensor's whole; all ranks of its mesh call this together."""
    if isinstance(value, cresset.Tensor) and hasattr(value, "full_tensor"):
        return value.full_tensor()
    if _sharding.is_sharded(value):
        raise NotImplementedError(f"full_state_dict: tensors with full_tensor() were required; a {type(value).__name__} was given. Leave full_state_dict out.")
    return value


def _mapped(value, function):
    if isinstance(value, dict):
        return {key: _mapped(item, function) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_mapped(item, function) for item in value)
    return function(value)


def _as_asked(state, options):
    """The state whole and on the CPU, where that is asked for."""
    if options.full_state_dict:
        state = _mapped(state, _whole)
    if options.cpu_offload:
        if options.full_state_dict and not _is_first():
            return {}
        state = _mapped(state, lambda v: v.to("cpu") if isinstance(v, cresset.Tensor) and v.device.type != "cpu" else v)
    return state


def _in_parts(model):
    """A block in which FullyShardedDataParallel modules give and take DTensors, whatever kind of state dicts they are set to."""
    wrappers = sys.modules.get("cresset.distributed.fsdp.fully_sharded_data_parallel")
    if wrappers is None or not wrappers.FullyShardedDataParallel.fsdp_modules(model):
        return contextlib.nullcontext()
    config = wrappers.ShardedStateDictConfig(_use_dtensor=True)
    return wrappers.FullyShardedDataParallel.state_dict_type(model, wrappers.StateDictType.SHARDED_STATE_DICT, config)


def _model_state(model, submodules, options):
    frozen = set()
    if options.ignore_frozen_params:
        frozen = {_get_fqn(model, name) for name, p in model.named_parameters(remove_duplicate=False) if not p.requires_grad}
    with _in_parts(model):
        state = {_get_fqn(model, name): value for name, value in model.state_dict().items()}
    state = {name: value for name, value in state.items() if name not in frozen}
    if submodules:
        chosen = {}
        for prefix in _prefixes_of(model, submodules):
            for name, value in state.items():
                if name.startswith(prefix):
                    chosen[name if options.keep_submodule_prefixes else name[len(prefix) :]] = value
        state = chosen
    return state


def get_model_state_dict(model, *, submodules=None, options=None):
    """The model's state by names of parameters and buffers, without what DistributedDataParallel, compilers and checkpoint wrappers add to them."""
    options = _options_of(options)
    return _as_asked(_model_state(model, submodules, options), options)


def _init_optim_state(optimizer):
    """Give an optimizer without a state one: a step with gradients and rates of zero."""
    if optimizer.state:
        return
    parameters = [p for group in optimizer.param_groups for p in group[_PARAMS]]
    if any(p.grad is not None for p in parameters):
        return  # it keeps no state, or is in the middle of a pass
    for p in parameters:
        if p.requires_grad:
            p.grad = cresset.zeros_like(p)
    rates = [group.get("lr") for group in optimizer.param_groups]
    try:
        for group, rate in zip(optimizer.param_groups, rates):
            if rate is not None:
                group["lr"] = cresset.zeros_like(rate) if isinstance(rate, cresset.Tensor) else 0.0
        optimizer.step(closure=None)
    finally:
        for group, rate in zip(optimizer.param_groups, rates):
            if rate is not None:
                group["lr"] = rate
        optimizer.zero_grad(set_to_none=True)


def _as_tuple(optimizers):
    return (optimizers,) if isinstance(optimizers, cresset.optim.Optimizer) else tuple(optimizers)


def _named(names, parameter):
    if parameter not in names:
        raise ValueError("optimizers: parameters of the model were required; an optimizer has one of another.")
    return names[parameter]


def _named_state(names, optimizer):
    """(state, groups) of an optimizer by names."""
    raw = optimizer.state_dict()
    state, groups, name_of = {}, [], {}
    for group, raw_group in zip(optimizer.param_groups, raw[_GROUPS]):
        found = [_named(names, p) for p in group[_PARAMS]]
        name_of.update(zip(raw_group[_PARAMS], found))
        groups.append({key: value for key, value in raw_group.items() if key not in (_PARAMS, "param_names")} | {_PARAMS: found})
    for key, value in raw[_STATE].items():
        if key in name_of:
            state[name_of[key]] = value
    return state, groups


def _flattened(state, groups):
    flat = {f"{_STATE}.{name}.{key}": value for name, values in state.items() for key, value in values.items()}
    for group in groups:
        for name in group[_PARAMS]:
            flat.update({f"{_GROUPS}.{name}.{key}": value for key, value in group.items() if key != _PARAMS})
    return flat


def get_optimizer_state_dict(model, optimizers, *, submodules=None, options=None):
    """The state of optimizers of the model's parameters: {"state": {name: {...}}, "param_groups": [{"params": [names], ...}]}.

    An optimizer that has made no step gets a state first, by a step that changes nothing.
    """
    options = _options_of(options)
    names = _names_of_parameters(model)
    prefixes = _prefixes_of(model, submodules) if submodules else [""]
    state, groups = {}, []
    for optimizer in _as_tuple(optimizers):
        _init_optim_state(optimizer)
        more, more_groups = _named_state(names, optimizer)
        state |= more
        groups += more_groups
    if submodules:
        state = {name: value for name, value in state.items() if name.startswith(tuple(prefixes))}
        groups = [group | {_PARAMS: [n for n in group[_PARAMS] if n.startswith(tuple(prefixes))]} for group in groups]
    found = _flattened(state, groups) if options.flatten_optimizer_state_dict else {_STATE: state, _GROUPS: groups}
    return _as_asked(found, options)


def get_state_dict(model, optimizers, *, submodules=None, options=None):
    """(get_model_state_dict, get_optimizer_state_dict)."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


# Setting ----------------------------------------------------------------------------------------------------------------


class _Sent:
    """A tensor on its way from rank 0."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype = shape, dtype


def _from_first_rank(state):
    """Rank 0's state on every rank."""
    tensors = []

    def note(value):
        if not isinstance(value, cresset.Tensor):
            return value
        tensors.append(value)
        return _Sent(tuple(value.shape), str(value.dtype).rpartition(".")[2])

    first = dist.get_rank() == 0
    words = [_mapped(state, note) if first else None]
    dist.broadcast_object_list(words, src=0)
    waiting = iter(tensors)

    def arrive(value):
        if not isinstance(value, _Sent):
            return value
        tensor = next(waiting).detach().contiguous() if first else cresset.empty(value.shape, dtype=getattr(cresset, value.dtype))
        dist.broadcast(tensor, src=0)
        return tensor

    return _mapped(words[0], arrive)


def _into(own, value):
    """The value for a tensor of this rank: a sharded one takes its parts of a whole one, in place."""
    if not isinstance(own, cresset.Tensor) or not _sharding.is_sharded(own) or _sharding.is_sharded(value):
        return value
    if tuple(own.shape) != tuple(value.shape):
        raise ValueError(f"a tensor of shape {tuple(own.shape)} was required; one of {tuple(value.shape)} was given.")
    with cresset.no_grad():
        for part in _sharding.local_parts(own):
            box = value
            for dim, (begin, length) in enumerate(zip(part.offsets, part.tensor.shape)):
                box = box.narrow(dim, begin, length)
            part.tensor.detach().copy_(box)
    return own


def _joined(model, state):
    """The older form {submodule: its state} as one state."""
    if not state or not isinstance(next(iter(state)), nn.Module):
        return state
    names = {module: name for name, module in model.named_modules()}
    return {
        (f"{_get_fqn(model, names[module])}." if names[module] else "") + name: value for module, values in state.items() for name, value in values.items()
    }


def set_model_state_dict(model, model_state_dict, *, options=None):
    """Load what get_model_state_dict gave; the missing and unexpected names, as load_state_dict says them."""
    options = _options_of(options)
    state = _joined(model, model_state_dict)
    if options.broadcast_from_rank0:
        state = _from_first_rank(state)
    with _in_parts(model):
        own = model.state_dict()
        actual = {_get_fqn(model, name): name for name in own}
        values = {actual.get(name, name): _into(own.get(actual.get(name)), value) for name, value in state.items()}
        without_memory = any(isinstance(v, cresset.Tensor) and v.is_meta for v in own.values())
        return model.load_state_dict(values, strict=options.strict, assign=without_memory)


def _unflattened(state, names, optimizer):
    """The nested form of a flat state, for one optimizer."""
    found, groups = {}, []
    for group in optimizer.param_groups:
        mine = [_named(names, p) for p in group[_PARAMS]]
        made = {_PARAMS: mine}
        for key, value in group.items():
            if key in (_PARAMS, "param_names"):
                continue
            said = [state[f"{_GROUPS}.{n}.{key}"] for n in mine if f"{_GROUPS}.{n}.{key}" in state]
            if any(other != said[0] for other in said[1:] if not isinstance(other, cresset.Tensor)):
                raise RuntimeError(f"All the parameters in the same parameter group should have the same saved param_group value. But {mine} have other values of {key}: {said}.")
            made[key] = said[0] if said else value
        groups.append(made)
        for name in mine:
            prefix = f"{_STATE}.{name}."
            values = {key[len(prefix) :]: value for key, value in state.items() if key.startswith(prefix)}
            if values:
                found[name] = values
    return {_STATE: found, _GROUPS: groups}


def _load_optimizer(optimizer, names, state, options):
    _init_optim_state(optimizer)
    if _STATE not in state or not isinstance(state.get(_GROUPS), list):
        state = _unflattened(state, names, optimizer)
    group_of = {name: group for group in state[_GROUPS] for name in group[_PARAMS]}
    raw = optimizer.state_dict()
    for group, raw_group in zip(optimizer.param_groups, raw[_GROUPS]):
        mine = [_named(names, p) for p in group[_PARAMS]]
        known = [name for name in mine if name in group_of]
        if options.strict and not options.ignore_frozen_params and len(known) < len(mine):
            lost = next(name for name in mine if name not in group_of)
            raise RuntimeError(f"Missing parameter {lost} in the optimizer's state_dict.")
        for name, key in zip(mine, raw_group[_PARAMS]):
            if name in state[_STATE]:
                own = raw[_STATE].get(key, {})
                raw[_STATE][key] = {k: _into(own.get(k), v) for k, v in state[_STATE][name].items()}
            elif name in group_of:
                raw[_STATE].pop(key, None)
        if known:
            raw_group.update({key: value for key, value in group_of[known[0]].items() if key not in (_PARAMS, "param_names")})
    optimizer.load_state_dict(raw)


def set_optimizer_state_dict(model, optimizers, optim_state_dict, *, options=None):
    """Load what get_optimizer_state_dict gave, nested or flat."""
    options = _options_of(options)
    if options.broadcast_from_rank0:
        optim_state_dict = _from_first_rank(optim_state_dict)
    names = _names_of_parameters(model)
    for optimizer in _as_tuple(optimizers):
        _load_optimizer(optimizer, names, optim_state_dict, options)


def set_state_dict(model, optimizers, *, model_state_dict, optim_state_dict, options=None):
    """set_model_state_dict, whose result it gives, and set_optimizer_state_dict."""
    missing = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return missing
