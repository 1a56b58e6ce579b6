"""Activation checkpoints for a module in place."""

import contextlib

from cresset.utils.checkpoint import _DEFAULT_DETERMINISM_MODE, _first_run, noop_context_fn

from .._composable_state import _State
from .contract import contract

__all__ = ["checkpoint"]


class _CheckpointState(_State):
    def __init__(self):
        self.enabled = True  # not while the module is computed again
        self._ac_generator = None  # the block that is open while the module's forward runs


@contract(_CheckpointState)
def checkpoint(module, **kwargs):
    """Let a module compute again in backward what it would keep for it; returns the module. Hooks do it, so that names stay.

    Options of utils.checkpoint.checkpoint: context_fn, determinism_check, preserve_rng_state, early_stop, debug. NotImplementedError for
    use_reentrant=True, ValueError for other options.
    """
    if kwargs.pop("use_reentrant", False):
        raise NotImplementedError(
            "use_reentrant=True is not supported in composable checkpoint. Please use torch.utils.checkpoint.checkpoint instead."
        )
    preserve, context_fn = kwargs.pop("preserve_rng_state", True), kwargs.pop("context_fn", None) or noop_context_fn
    determinism, early_stop = kwargs.pop("determinism_check", _DEFAULT_DETERMINISM_MODE), kwargs.pop("early_stop", True)
    kwargs.pop("debug", None)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    state = checkpoint.state(module)

    def again(*args, **kwargs):
        state.enabled = False
        try:
            module(*args, **kwargs)
        finally:
            state.enabled = True

    def before(module, args, kwargs):
        if state.enabled:
            state._ac_generator = contextlib.ExitStack()
            state._ac_generator.enter_context(_first_run(again, args, kwargs, preserve, context_fn, determinism, early_stop))

    def behind(module, args, output):
        if state.enabled and state._ac_generator is not None:
            block, state._ac_generator = state._ac_generator, None
            block.close()

    module.register_forward_pre_hook(before, with_kwargs=True)
    # In front of the others, and also where forward raises.
    module.register_forward_hook(behind, prepend=True, always_call=True)
    return module
