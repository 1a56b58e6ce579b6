"""The wrappers of a module."""

__all__ = []


def _get_fsdp_states(module):
    """The states at and below a module: wrappers, and states of fully_shard."""
    from ._common_utils import _get_module_fsdp_state

    found = []
    for each in module.modules():
        state = _get_module_fsdp_state(each)
        if state is not None and all(state is not f for f in found) and not any(getattr(f, "_fsdp_state", None) is state for f in found):
            found.append(state)
    return found


def _get_fsdp_handles(module):
    """Flat parameters, of which there are none."""
    return []
