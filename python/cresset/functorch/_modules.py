"""Modules as functions of tuples of parameters and buffers. `cresset.func.functional_call` is the interface for new code."""

import copy

import cresset
from cresset import nn
from cresset.func import functional_call

from ._warning import warn_deprecated

__all__ = ["FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "make_functional", "make_functional_with_buffers"]


def _stateless(module):
    """A copy of a module whose parameters and buffers have no memory; what was tied stays tied."""
    memo = {}
    for tensor in (*module.parameters(), *module.buffers()):
        empty = cresset.empty_like(tensor, device="meta")
        memo[id(tensor)] = nn.Parameter(empty, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else empty
    return copy.deepcopy(module, memo)


class FunctionalModuleWithBuffers(nn.Module):
    """Calling it with (parameters, buffers, *inputs) is calling the module it was made from with these in place of its own."""

    def __init__(self, stateless_model, param_names, buffer_names, with_buffers=True):
        super().__init__()
        self.stateless_model, self.param_names, self.buffer_names = stateless_model, tuple(param_names), tuple(buffer_names)

    def forward(self, params, buffers, *args, **kwargs):
        """The module's results."""
        state = {**dict(zip(self.param_names, params)), **dict(zip(self.buffer_names, buffers))}
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(nn.Module):
    """Calling it with (parameters, *inputs) is calling the module it was made from with these in place of its own."""

    def __init__(self, stateless_model, param_names):
        super().__init__()
        self.stateless_model, self.param_names = stateless_model, tuple(param_names)

    def forward(self, params, *args, **kwargs):
        """The module's results."""
        return functional_call(self.stateless_model, dict(zip(self.param_names, params)), args, kwargs)


def _split(named, disable_autograd_tracking):
    names, tensors = zip(*named) if named else ((), ())
    return names, tuple(t.detach() for t in tensors) if disable_autograd_tracking else tensors


def _functional(module, disable_autograd_tracking):
    names, params = _split(list(module.named_parameters()), disable_autograd_tracking)
    buffer_names, buffers = _split(list(module.named_buffers()), disable_autograd_tracking)
    return FunctionalModuleWithBuffers(_stateless(module), names, buffer_names), params, buffers


def make_functional(model, disable_autograd_tracking=False):
    """(function of (parameters, *inputs), parameters) of a module without buffers; the parameters are detached on request."""
    warn_deprecated("make_functional", "torch.func.functional_call")
    if list(model.buffers()):
        raise RuntimeError("make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead.")
    names, params = _split(list(model.named_parameters()), disable_autograd_tracking)
    return FunctionalModule(_stateless(model), names), params


def make_functional_with_buffers(model, disable_autograd_tracking=False):
    """(function of (parameters, buffers, *inputs), parameters, buffers) of a module."""
    warn_deprecated("make_functional_with_buffers", "torch.func.functional_call")
    return _functional(model, disable_autograd_tracking)


def combine_state_for_ensemble(models):
    """(function of (parameters, buffers, *inputs), parameters, buffers) of modules of one class; the tensors are stacked, for vmap.

    RuntimeError for no modules, modules of several classes, and modules of which only some are in training mode.
    """
    warn_deprecated("combine_state_for_ensemble", "torch.func.stack_module_state")
    if len(models) == 0:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    functions, params, buffers = zip(*(_functional(m, False) for m in models))
    return functions[0], tuple(map(cresset.stack, zip(*params))), tuple(map(cresset.stack, zip(*buffers)))
