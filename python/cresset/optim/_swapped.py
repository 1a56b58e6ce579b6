"""Other parameters and another state in an optimiser, for a while."""

import contextlib
from typing import Any

import cresset

__all__ = ["swap_in_optimizer_params_and_state"]


@contextlib.contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: "cresset.optim.Optimizer", swapin_parameters: dict[str, cresset.Tensor], swapin_optim_state: dict[str, Any]
):
    """Context manager in which an optimiser has other parameters (in the order of its own) and the state of a `state_dict()`, so that `step()`
    works on those. Changes of their tensors in place stay; everything else is as before afterwards. ValueError where the number of
    parameters or of groups is another."""
    given = list(swapin_parameters.values())
    groups = swapin_optim_state["param_groups"]
    own = [len(group["params"]) for group in optimizer.param_groups]
    if len(given) != sum(own) or [len(group["params"]) for group in groups] != own:
        raise ValueError(
            f"swap_in_optimizer_params_and_state: {sum(own)} parameters in groups of {own} were required; given {len(given)} parameters and groups "
            f"of {[len(group['params']) for group in groups]}."
        )
    by_id = dict(zip((number for group in groups for number in group["params"]), given))
    before = optimizer.param_groups, optimizer.state
    state = type(before[1])(dict) if hasattr(before[1], "default_factory") else {}
    state.update((by_id.get(number, number), dict(values)) for number, values in swapin_optim_state["state"].items())
    optimizer.param_groups = [
        {**old, **new, "params": [by_id[number] for number in new["params"]]} for old, new in zip(optimizer.param_groups, groups)
    ]
    optimizer.state = state
    try:
        yield
    finally:
        optimizer.param_groups, optimizer.state = before
