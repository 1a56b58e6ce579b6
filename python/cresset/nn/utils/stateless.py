"""functional_call under the name it had before cresset.func."""

import warnings

from cresset.func import _modules

__all__ = ["functional_call"]


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Deprecated: cresset.func.functional_call with one dictionary."""
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future version of PyTorch. "
        "Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


_functional_call = _modules.functional_call


def _reparametrize_module(module, parameters_and_buffers, tie_weights=False, strict=False, stack_weights=False):
    """A context in which the module has these tensors; what it assigns to their names is in the dictionary afterwards."""
    values = _modules._with_tied(module, parameters_and_buffers) if tie_weights else parameters_and_buffers
    return _modules._Reparametrized(module, values, strict)
