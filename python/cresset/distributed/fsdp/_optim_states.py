"""States of optimizers of wrapped models, by names of parameters, and back to what Optimizer.load_state_dict takes."""

import cresset

from .. import _groups
from ..checkpoint.state_dict import _mapped, _named, _names_of_parameters, _whole
from ..tensor import DTensor
from ._common_utils import clean_tensor_name
from ._fully_shard._fsdp_state import state_of
from ._state_dicts import as_sharded_tensor, into_parameter

__all__ = ["named_state", "rekeyed", "to_load"]

_STATE, _GROUPS, _PARAMS = "state", "param_groups", "params"


def _parameters(model):
    """({parameter: name}, {parameter: FSDPParam}) with every module's parts, not wholes, in place."""
    owners = {}
    for module in model.modules():
        state = state_of(module)
        if state is not None and state.group is not None:
            state.reshard()
            owners.update({p.sharded_param: p for p in state.group.fsdp_params})
    names = _names_of_parameters(model)
    for p in owners.values():  # while wholes are summoned, modules have those
        if p.whole is not None and p.whole in names:
            names[p.sharded_param] = names.pop(p.whole)
    return {parameter: clean_tensor_name(name) for parameter, name in names.items()}, owners


def named_state(model, optim, raw, full, use_dtensor, rank0_only, offload_to_cpu, group):
    """The state of an optimizer by names; `raw`: what its state_dict() gave, if not now."""
    names, _ = _parameters(model)
    raw = optim.state_dict() if raw is None else raw
    state, groups, name_of = {}, [], {}
    for own, given in zip(optim.param_groups, raw[_GROUPS]):
        found = [_named(names, p) for p in own[_PARAMS]]
        name_of.update(zip(given[_PARAMS], found))
        groups.append({key: value for key, value in given.items() if key not in (_PARAMS, "param_names")} | {_PARAMS: found})
    for key, values in raw[_STATE].items():
        state[name_of.get(key, key)] = values
    found = {_STATE: {name: state[name] for name in sorted(state, key=str)}, _GROUPS: groups}

    def write(value):
        if full:
            value = _whole(value)
        elif isinstance(value, DTensor) and not use_dtensor:
            value = as_sharded_tensor(value)
        return value.to("cpu") if offload_to_cpu and isinstance(value, cresset.Tensor) and value.device.type != "cpu" else value

    with cresset.no_grad():
        found[_STATE] = _mapped(found[_STATE], write)
    return {} if full and rank0_only and _groups.get_rank(group) != 0 else found


def _own_value(p, parameter, value):
    """A state of the parameter, as this rank keeps it."""
    if not hasattr(value, "shape") or tuple(value.shape) != tuple(parameter.shape):
        return value
    return into_parameter(p, value) if p is not None else value


def _groups_to_load(model, optim_input, optim):
    """(parameters, their keys, options) of each group of an optimizer, or of what it will be made of: numbers are the keys then."""
    if optim is not None:
        return [(own[_PARAMS], raw[_PARAMS], raw) for own, raw in zip(optim.param_groups, optim.state_dict()[_GROUPS])]
    given = list(model.parameters()) if optim_input is None else list(optim_input)
    if given and not isinstance(given[0], dict):
        given = [{_PARAMS: given}]
    groups, count = [], 0
    for group in given:
        parameters = [group[_PARAMS]] if isinstance(group[_PARAMS], cresset.Tensor) else list(group[_PARAMS])
        groups.append((parameters, list(range(count, count + len(parameters))), group))
        count += len(parameters)
    return groups


def to_load(model, optim, optim_state_dict, is_named_optimizer=False, optim_input=None):
    """What optim.load_state_dict takes, of a state by names whose tensors are whole or parts.

    State of parameters the optimizer does not have is left out, and parameters of which the state knows nothing are left out of groups that it knows.
    """
    names, owners = _parameters(model)
    given_of = {name: group for group in optim_state_dict[_GROUPS] for name in group[_PARAMS]}
    state, groups = {}, []
    for parameters, numbers, options in _groups_to_load(model, optim_input, optim):
        mine = [_named(names, p) for p in parameters]
        known = [name for name in mine if name in given_of]
        given = given_of[known[0]] if known else options
        keys = mine if is_named_optimizer else numbers
        kept = [key for key, name in zip(keys, mine) if name in given_of or not known]
        groups.append({key: value for key, value in given.items() if key not in (_PARAMS, "param_names")} | {_PARAMS: kept})
        for parameter, name, key in zip(parameters, mine, keys):
            if name in optim_state_dict[_STATE]:
                with cresset.no_grad():
                    state[key] = {k: _own_value(owners.get(parameter), parameter, v) for k, v in optim_state_dict[_STATE][name].items()}
    rest = {key: value for key, value in optim_state_dict[_STATE].items() if is_named_optimizer and not isinstance(value, dict)}
    return {_STATE: state | rest, _GROUPS: groups}


def rekeyed(optim_state_dict, to_names, model, optim_input, optim):
    """The state with names of parameters in place of numbers, or the other way round. ValueError for keys that the optimizer does not have."""
    name_of, _ = _parameters(model)
    names = [_named(name_of, p) for parameters, _, _ in _groups_to_load(model, optim_input, optim) for p in parameters]
    new_of = dict(enumerate(names)) if to_names else {name: number for number, name in enumerate(names)}

    def new(key):
        if key not in new_of:
            raise ValueError(f"rekey_optim_state_dict: keys of the optimizer ({list(new_of)[:5]}…) were required; {key!r} was given.")
        return new_of[key]

    state = {new(key): value for key, value in optim_state_dict[_STATE].items()}
    groups = [{**group, _PARAMS: sorted(new(key) for key in group[_PARAMS])} for group in optim_state_dict[_GROUPS]]
    return {_STATE: state, _GROUPS: groups}
