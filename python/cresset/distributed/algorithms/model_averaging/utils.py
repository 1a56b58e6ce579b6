"""Averages of parameters over a group."""

import itertools

import cresset
from cresset import distributed as dist

__all__ = ["average_parameters", "average_parameters_or_parameter_groups", "get_params_to_average"]


def average_parameters(params, process_group):
    """Replace parameters by their averages over the group; nothing on ranks outside of it."""
    group = process_group if process_group is not None else dist.group.WORLD
    if dist._rank_not_in_group(group):
        return
    first, second = itertools.tee(params)
    with cresset.no_grad():
        flat = cresset.cat([p.detach().reshape(-1) for p in first])
        flat.div_(dist.get_world_size(group))
        dist.all_reduce(flat, group=group)
        at = 0
        for p in second:
            p.detach().copy_(flat[at : at + p.numel()].view(p.shape))
            at += p.numel()


def get_params_to_average(params):
    """The parameters, of a list of them or of groups, that have a gradient. NotImplementedError for anything else."""
    found = []
    for entry in params:
        if isinstance(entry, cresset.nn.Parameter):
            entries = [entry]
        elif isinstance(entry, dict):
            entries = entry["params"]
        else:
            raise NotImplementedError(f"Parameter input of type {type(entry)} is not supported")
        found += [p for p in entries if p.grad is not None]
    return found


def average_parameters_or_parameter_groups(params, process_group):
    """average_parameters of those that have a gradient."""
    average_parameters(iter(get_params_to_average(params)), process_group)
