"""The hooks of a module, or of several that are one group."""

import cresset
from cresset.utils._pytree import tree_map_only

from ._fsdp_common import TrainingState

__all__ = ["FSDPState", "state_of"]


class _Context:
    """What all states below a root share."""

    def __init__(self):
        self.states, self.callback_queued, self.is_last_backward = [], False, True


class FSDPState:
    """Of one fully_shard call: its modules, its group of parameters (None where they all belong to other calls), and the root's context."""

    def __init__(self, modules, mp_policy, auto_reshard):
        self.modules, self.mp_policy, self.auto_reshard = modules, mp_policy, auto_reshard
        self.group, self.is_root, self.context = None, None, None
        self.forward_prefetch, self.backward_prefetch = [], []
        self._to_run, self.training_state = [], TrainingState.IDLE
        for module in modules:
            module.register_forward_pre_hook(self._pre_forward, prepend=True, with_kwargs=True)
            module.register_forward_hook(self._post_forward, prepend=False)
            module.register_state_dict_pre_hook(lambda *_: self.reshard())
            module.register_load_state_dict_pre_hook(lambda *_: self.reshard())

    def reshard(self):
        """Give the modules their shards."""
        if self.group is not None:
            self.group.reshard()

    # --- the tree of modules

    def lazy_init(self):
        """On the first forward this module is a root, and the ones below are not."""
        if self.is_root is not None:
            return
        self.is_root, self.context = True, _Context()
        if len(self.modules) > 1:
            raise RuntimeError(f"FSDP requires a single root module but got {self.modules}")
        for module in self.modules[0].modules():
            state = state_of(module)
            if state is None or state in self.context.states:
                continue
            if state is not self:
                if state.is_root:
                    raise RuntimeError(f"FSDP state has already been lazily initialized for {module}\nFSDP requires running forward through the root module first")
                state.is_root, state.context = False, self.context
            self.context.states.append(state)
        if self.auto_reshard and self.group is not None:
            self.group.reshard_after_forward = False
        _check_materialised(self.context.states)

    # --- hooks

    def _pre_forward(self, module, args, kwargs):
        if self.training_state == TrainingState.PRE_BACKWARD:  # a checkpoint runs forward again inside of backward
            return args, kwargs
        if not self._first(module):
            return args, kwargs
        self.lazy_init()
        self.training_state = TrainingState.FORWARD
        args, kwargs = self._cast_inputs(args, kwargs)
        if self.group is not None:
            args, kwargs = self.group.pre_forward(args, kwargs)
        for state in self.forward_prefetch:
            if state.group is not None:
                state.group.unshard(async_op=True)
        return args, kwargs

    def _cast_inputs(self, args, kwargs):
        if self.mp_policy.cast_forward_inputs and self.mp_policy.param_dtype is not None:
            return _cast((args, kwargs), self.mp_policy.param_dtype)
        return args, kwargs

    def _first(self, module):
        """Is this the first of the modules of the group to run?"""
        if len(self.modules) == 1:
            return True
        first = not self._to_run
        if first:
            self._to_run = list(self.modules)
        return first

    def _last(self, module):
        """Is this the last of the modules of the group to run?"""
        if len(self.modules) == 1:
            return True
        self._to_run = [m for m in self._to_run if m is not module]
        return not self._to_run

    def _post_forward(self, module, args, output):
        if self.training_state == TrainingState.PRE_BACKWARD:
            return output
        if not self._last(module):
            return output
        if self.group is not None:
            self.group.post_forward()
        self.training_state = TrainingState.IDLE
        if self.mp_policy.output_dtype is not None:
            output = _cast(output, self.mp_policy.output_dtype)
        if cresset.is_grad_enabled():
            tree_map_only(cresset.Tensor, self._watch, output)
        return output

    def _watch(self, tensor):
        if tensor.requires_grad:
            tensor.register_hook(self._pre_backward)
        return tensor

    def _pre_backward(self, grad):
        self.training_state = TrainingState.PRE_BACKWARD
        context = self.context
        if not context.callback_queued:
            context.callback_queued = True
            cresset.autograd.Variable._execution_engine.queue_callback(lambda: _finish(context))
        if self.group is not None:
            self.group.pre_backward()
        for state in self.backward_prefetch:
            if state.group is not None:
                state.group.unshard(async_op=True)
        return grad


def _finish(context):
    """At the end of backward."""
    context.callback_queued = False
    for state in reversed(context.states):
        if state.group is not None:
            state.group.finish_backward()
        state.training_state = TrainingState.IDLE


def _cast(values, dtype):
    def one(tensor):
        return tensor.to(dtype) if tensor.dtype.is_floating_point and tensor.dtype != dtype else tensor

    return tree_map_only(cresset.Tensor, one, values)


def _check_materialised(states):
    names = [p.name for s in states if s.group is not None for p in s.group.fsdp_params if p.kept.is_meta]
    if names:
        raise RuntimeError(
            f"FSDP parameters should be materialized from meta device before training, but the following were still on meta device: {names}\n"
            "For example, call module.to_empty(device) to materialize to device and call module.reset_parameters() on each module to initialize values."
        )


def state_of(module):
    """The state of a module that fully_shard was called on, or None."""
    return module.__dict__.get("_fsdp_state")
