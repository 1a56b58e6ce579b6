"""What libraries that train on many ranks take from here: states of modules that begin the same on all ranks."""

from ._reducer import broadcast_coalesced

__all__ = []


def _sync_params_and_buffers(process_group, module_states, broadcast_bucket_size, src):
    """Give tensors the values that rank `src` of the group has, in messages of up to `broadcast_bucket_size` bytes."""
    if module_states:
        broadcast_coalesced(list(module_states), process_group, src, broadcast_bucket_size)


def _sync_module_states(module, process_group, broadcast_bucket_size, src, params_and_buffers_to_ignore, broadcast_buffers=True):
    """Give a module's parameters, and buffers, the values that rank `src` of the group has, but for names that are ignored."""
    named = list(module.named_parameters()) + (list(module.named_buffers()) if broadcast_buffers else [])
    states = [tensor.detach() for name, tensor in named if name not in params_and_buffers_to_ignore]
    _sync_params_and_buffers(process_group, states, broadcast_bucket_size, src)
