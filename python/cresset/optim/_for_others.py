"""What optimisers outside of this package import from `optim.optimizer`: choices of an implementation, and lists of tensors by device and dtype."""

import functools

import cresset
from cresset import Tensor
from cresset.nn.parameter import Parameter
from cresset.utils._foreach_utils import _foreach_supported_types, _get_fused_kernels_supported_devices, _group_tensors_by_device_and_dtype  # noqa: F401

_FUSED = ("cpu", "cuda", "mps", "mtia", "xpu", "hpu")
_FOREACH = ("cuda", "xpu", "mtia")

# What the keyword arguments mean that most optimisers share; optimisers of others put these texts into their docstrings.
_params_doc = "params (iterable): parameters, pairs of names and parameters, or dicts that define groups of parameters"
_foreach_doc = "foreach (bool, optional): update all parameters of a group with operators on lists (default: None, which is False on processors)"
_fused_doc = "fused (bool, optional): update in one pass over memory; parameters of floating point only (default: None, which is False)"
_maximize_doc = "maximize (bool, optional): go up the gradient instead of down (default: False)"
_capturable_doc = "capturable (bool, optional): may the step be recorded in a graph? Only on devices that record graphs (default: False)"
_differentiable_doc = "differentiable (bool, optional): should gradients flow through the step? Otherwise it runs without recording (default: False)"

DeviceDict = dict[cresset.device | None, Tensor]
DeviceDtypeDict = dict[tuple[cresset.device, cresset.dtype] | None, Tensor]


def _device_dtype_check_for_fused(p, cuda_unsupported=False):
    """RuntimeError unless a fused step can update the parameter: of floating point, on one of the devices that have fused steps."""
    devices = _get_fused_kernels_supported_devices()
    if cuda_unsupported:
        devices.remove("cuda")
    if not (p.is_floating_point() and p.device.type in devices):
        raise RuntimeError(f"`fused=True` requires all the params to be floating point Tensors of supported devices: {devices} but {p.dtype} and {p.device.type}")


def _use_grad_for_differentiable(func):
    """A `step` that runs with gradients as the optimiser's `defaults["differentiable"]` says."""

    @functools.wraps(func)
    def step(*args, **kwargs):
        with cresset.set_grad_enabled(args[0].defaults["differentiable"]):
            return func(*args, **kwargs)

    return step


def _default_to_fused_or_foreach(params, differentiable, use_fused=False):
    """(fused, foreach) for an optimiser that was not told: one of them at most, and none where gradients flow through the step."""
    if cresset.jit.is_scripting() or differentiable:
        return False, False

    def all_on(kinds, floating):
        plain = all(p is None or ((type(p) is Parameter or type(p) in _foreach_supported_types) and p.device.type in kinds) for p in params)
        return plain and not (floating and any(p is not None and not p.is_floating_point() for p in params))

    private = cresset._C._get_privateuse1_backend_name()
    fused = use_fused and all_on((*_FUSED, private), True)
    return fused, not fused and all_on((*_FOREACH, private), False)


def _get_capturable_supported_devices(supports_xla=True):
    """Kinds of device whose steps can be recorded in graphs."""
    return ["cuda", "xpu", "hpu", cresset._C._get_privateuse1_backend_name(), *(["xla"] if supports_xla else [])]


def _get_value(x):
    """The number in a tensor; others as they are."""
    return x.item() if isinstance(x, Tensor) else x


def _stack_if_compiling(x):
    return x


def _get_scalar_dtype(is_fused=None):
    """The dtype of step counts: float64 where that is the default and the step is not fused, else float32."""
    return cresset.float32 if is_fused or cresset.get_default_dtype() != cresset.float64 else cresset.float64


def _view_as_real(params, *state_and_grads):
    """Puts pairs of real numbers in the place of complex tensors, and of what lies beside them in the other lists."""
    for i, p in enumerate(params):
        if cresset.is_complex(p):
            params[i] = cresset.view_as_real(p)
            for other in state_and_grads:
                other[i] = cresset.view_as_real(other[i])


def _disable_dynamo_if_unsupported(single_tensor_fn=None):
    """A decorator that changes nothing: steps are not traced by bytecode here."""
    return lambda func: func
