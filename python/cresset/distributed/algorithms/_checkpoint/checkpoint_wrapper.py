"""Modules whose forward runs under an activation checkpoint, or keeps activations in this host's memory; names of parameters stay as they were."""

from abc import ABC, abstractmethod
from enum import Enum, auto
from functools import partial

from cresset import nn
from cresset.autograd.graph import save_on_cpu
from cresset.utils.checkpoint import checkpoint

__all__ = [
    "ActivationWrapper", "CheckpointImpl", "CheckpointWrapper", "OffloadWrapper", "apply_activation_checkpointing", "checkpoint_wrapper", "offload_wrapper",
]  # fmt: skip

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = _CHECKPOINT_WRAPPED_MODULE + "."


class CheckpointImpl(Enum):
    """Which form of utils.checkpoint.checkpoint: use_reentrant=True or False."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(nn.Module, ABC):
    """A module around another one, `_checkpoint_wrapped_module`: attributes and items are that one's, state dicts and parameters have its names."""

    def __init__(self, mod):
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self.register_state_dict_post_hook(_without_prefix)
        self.register_load_state_dict_pre_hook(_with_prefix)

    @abstractmethod
    def forward(self, *args, **kwargs):
        raise NotImplementedError("Subclasses should implement forward().")

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key):
        return self._checkpoint_wrapped_module.__getitem__(key)

    def named_parameters(self, *args, **kwargs):
        """Those of the module inside, under its names."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), parameter


def _replace_by_prefix(state_dict, old, new):
    """Let names that begin with `old` begin with `new`, in place and in their order."""
    items = [(new + name[len(old) :] if name.startswith(old) else name, value) for name, value in state_dict.items()]
    state_dict.clear()
    state_dict.update(items)


def _without_prefix(module, state_dict, prefix, local_metadata):
    _replace_by_prefix(state_dict, prefix + _CHECKPOINT_PREFIX, prefix)


def _with_prefix(module, state_dict, prefix, *args):
    _replace_by_prefix(state_dict, prefix, prefix + _CHECKPOINT_PREFIX)


class OffloadWrapper(ActivationWrapper):
    """Keeps what forward saves for backward in this host's memory."""

    def forward(self, *args, **kwargs):
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """Computes forward again in backward. `checkpoint_fn(module, *args, **checkpoint_fn_kwargs, **kwargs)` replaces utils.checkpoint.checkpoint."""

    def __init__(self, mod, checkpoint_impl=CheckpointImpl.NO_REENTRANT, checkpoint_fn=None, **checkpoint_fn_kwargs):
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            self.checkpoint_fn = partial(checkpoint, use_reentrant=checkpoint_impl == CheckpointImpl.REENTRANT, **checkpoint_fn_kwargs)
        else:
            self.checkpoint_fn = partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args, **kwargs):
        if self.checkpoint_impl == CheckpointImpl.REENTRANT and kwargs:  # that form takes none
            names = tuple(kwargs)

            def positional(*values):
                count = len(values) - len(names)
                return self._checkpoint_wrapped_module(*values[:count], **dict(zip(names, values[count:])))

            return self.checkpoint_fn(positional, *args, *kwargs.values())
        return self.checkpoint_fn(self._checkpoint_wrapped_module, *args, **kwargs)


def offload_wrapper(module):
    """The module with activations in this host's memory: an OffloadWrapper."""
    return OffloadWrapper(module)


def checkpoint_wrapper(module, checkpoint_impl=CheckpointImpl.NO_REENTRANT, checkpoint_fn=None, **checkpoint_fn_kwargs):
    """The module as one that computes its activations again in backward: a CheckpointWrapper. Further options are checkpoint's (preserve_rng_state, context_fn, …)."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(model, checkpoint_wrapper_fn=checkpoint_wrapper, check_fn=lambda _: True, auto_wrap_policy=None):
    """Wrap, in place, the submodules for which check_fn(module) is true, or those of a policy of distributed.fsdp.wrap. The model itself is not wrapped."""
    from cresset.distributed.fsdp.wrap import _construct_wrap_fn, _Policy, _post_order_apply, _recursive_wrap, lambda_auto_wrap_policy

    policy = auto_wrap_policy or partial(lambda_auto_wrap_policy, lambda_fn=check_fn)
    if not callable(policy):
        if not isinstance(policy, _Policy):
            raise ValueError(f"auto_wrap_policy: a function or a policy was required; a {type(policy).__name__} was given.")
        targets = policy._run_policy(model, ignored_modules=set(), root_kwargs={})
        _post_order_apply(model, _construct_wrap_fn(model, targets, checkpoint_wrapper_fn))
        return
    _recursive_wrap(model, policy, checkpoint_wrapper_fn, ignored_modules=set(), ignored_params=set(), only_wrap_children=True)
