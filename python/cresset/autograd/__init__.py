"""backward and grad, grad modes, custom functions, the backward graph."""

import warnings

import cresset
from cresset import _C
from cresset._same_names import prefer_functions
from cresset._submodules import submodule

from . import graph
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .function import Function, NestedIOFunction, once_differentiable
from .grad_mode import (  # noqa: F401
    _force_original_view_tracking,
    _unsafe_preserve_version_counter,
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)

__all__ = [
    "Function", "Variable", "backward", "grad", "no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "set_multithreading_enabled",
    "detect_anomaly", "set_detect_anomaly", "once_differentiable", "graph", "forward_ad", "functional", "gradcheck", "gradgradcheck",
]  # fmt: skip


prefer_functions(__name__, "gradcheck")


def _is_checkpoint_valid():
    """Does no backward pass run, or one that computes all gradients (so that one inside of it may add to .grad)?"""
    return not _C._is_partial_backward()


def _profiler_enabled():
    """Does a profiler session run?"""
    from . import profiler

    return profiler._is_profiler_enabled


def _as_tuple(value):
    return (value,) if isinstance(value, (cresset.Tensor, graph.GradientEdge)) or value is None else tuple(value)


def _output_gradients(outputs, gradients, batched=False):
    """The gradient of each output: given ones checked, ones for scalars."""
    if len(gradients) < len(outputs):  # more than that are left aside
        raise RuntimeError(f"got {len(outputs)} tensors and {len(gradients)} gradients")
    filled = []
    for out, grad in zip(outputs, gradients):
        if isinstance(out, graph.GradientEdge):
            out = _C._edge_zeros(out).requires_grad_()
        if isinstance(grad, cresset.Tensor):
            if grad.shape != out.shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{len(filled)}] has a shape of {grad.shape} and output[{len(filled)}] has a shape of {out.shape}."
                )
            if out.is_complex() != grad.is_complex():
                raise RuntimeError(
                    "For complex Tensors, both grad_output and output are required to have the same dtype. "
                    f"Mismatch in dtype: grad_output[{len(filled)}] has a dtype of {grad.dtype} and output[{len(filled)}] has a dtype of {out.dtype}."
                )
            filled.append(grad)
        elif grad is None:
            if out.requires_grad:
                if out.numel() != 1:
                    raise RuntimeError("grad can be implicitly created only for scalar outputs")
                if not out.is_floating_point():
                    raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {out.dtype}")
                filled.append(cresset.ones_like(out, memory_format=cresset.preserve_format))
            else:
                filled.append(None)
        else:
            raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
    return tuple(filled)


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Add into .grad of the leaves (or of `inputs`) the gradients of `tensors`, each weighted with its grad_tensor."""
    tensors = _as_tuple(tensors)
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    if inputs is not None and not isinstance(inputs, (cresset.Tensor, graph.GradientEdge)) and len(inputs) == 0:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    inputs = () if inputs is None else _as_tuple(inputs)
    gradients = (None,) * len(tensors) if grad_tensors is None else _as_tuple(grad_tensors)
    gradients = _output_gradients(tensors, gradients)
    _C._run_backward(tensors, gradients, create_graph if retain_graph is None else retain_graph, create_graph, inputs, True, True)


def _backward_to_edges(tensor, gradient, retain_graph, create_graph, inputs):
    """Tensor.backward where `inputs` names edges of the graph."""
    backward(tensor, gradient, retain_graph, create_graph, inputs=inputs)


def _batched_grad(outputs, inputs, gradients, retain_graph, create_graph, allow_unused, materialize_grads):
    """grad for all elements of the gradients' first dimension at once: one backward pass under vmap."""
    from cresset import _vmap

    sizes = [g.shape[0] if g.dim() else g[0] for g in gradients if g is not None]
    if len(set(sizes)) > 1:
        raise ValueError(f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped dimension")
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    count = sizes[0]
    for i, (g, out) in enumerate(zip(gradients, outputs)):
        if isinstance(out, cresset.Tensor) and g is not None and g.shape[1:] != out.shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The sizes of the remaining "
                f"dimensions are expected to match the shape of corresponding output, but a mismatch was detected: grad_output[{i}] has a shape of "
                f"{g.shape[1:]} and output[{i}] has a shape of {out.shape}. If you only want some tensors in `grad_output` to be considered batched, "
                "consider using vmap."
            )
    if count == 0:
        return tuple(cresset.zeros((0, *x.shape), dtype=x.dtype, device=x.device) for x in inputs)
    with _vmap.level(count) as number:
        seeds = tuple(g if g is None else _C._add_batch_dim(g, 0, number) for g in gradients)
        result = grad(
            outputs, inputs, seeds, retain_graph=retain_graph, create_graph=create_graph, allow_unused=allow_unused, materialize_grads=materialize_grads
        )
        return tuple(g if g is None else _C._remove_batch_dim(g, number, count, 0) for g in result)


def grad(
    outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True, allow_unused=None, is_grads_batched=False,
    materialize_grads=False,
):  # fmt: skip
    """The gradients of outputs with respect to inputs, as a tuple. An unused input raises, or gives None with allow_unused
    (zeros with materialize_grads). With is_grads_batched, grad_outputs and the results have one more dimension in front: the
    gradient is taken for each of its elements, all of them in one pass under vmap."""
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.")
    allow_unused = bool(materialize_grads) if allow_unused is None else allow_unused
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for other parts of the graph, please "
            "use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    outputs, inputs = _as_tuple(outputs), _as_tuple(inputs)
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if _C._has_torch_function(outputs + inputs):
        from cresset.overrides import handle_torch_function

        return handle_torch_function(
            grad, outputs + inputs, outputs, inputs, grad_outputs=grad_outputs, retain_graph=retain_graph, create_graph=create_graph,
            only_inputs=only_inputs, allow_unused=allow_unused, is_grads_batched=is_grads_batched, materialize_grads=materialize_grads,
        )  # fmt: skip
    gradients = (None,) * len(outputs) if grad_outputs is None else _as_tuple(grad_outputs)
    if is_grads_batched:
        _output_gradients([o for o, g in zip(outputs, gradients) if g is None], [g for g in gradients if g is None])  # none for a batch
        return _batched_grad(outputs, inputs, gradients, retain_graph, create_graph, allow_unused, materialize_grads)
    gradients = _output_gradients(outputs, gradients)
    result = _C._run_backward(
        outputs, gradients, create_graph if retain_graph is None else retain_graph, create_graph, inputs, allow_unused, False
    )
    if materialize_grads:
        if any(g is None and isinstance(i, graph.GradientEdge) for g, i in zip(result, inputs)):
            raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
        result = tuple(cresset.zeros_like(i, requires_grad=create_graph) if g is None else g for g, i in zip(result, inputs))
    return result


class _VariableMeta(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, cresset.Tensor)


SavedTensor = _C.SavedTensor
is_multithreading_enabled = _C._is_multithreading_enabled
is_view_replay_enabled = _C._is_view_replay_enabled


def kineto_available():
    """True: profiles come with traces, as those that PyTorch makes with Kineto."""
    return True


class _Engine:
    """The engine as `Variable._execution_engine`."""

    @staticmethod
    def queue_callback(callback):
        """Call callback() when the backward pass that runs now is complete."""
        _C._queue_callback(callback)

    @staticmethod
    def is_checkpoint_valid():
        """Does no backward pass run, or one that computes all gradients?"""
        return _is_checkpoint_valid()

    @staticmethod
    def run_backward(tensors, grad_tensors, keep_graph, create_graph, inputs=(), allow_unreachable=True, accumulate_grad=False):
        """backward (accumulate_grad) or grad, as both call the engine: `inputs` is empty or a tuple, and all gradients of the outputs are given."""
        if accumulate_grad:
            return backward(tensors, grad_tensors, keep_graph, create_graph, inputs=inputs or None)
        return grad(tensors, inputs, grad_tensors, keep_graph, create_graph, allow_unused=allow_unreachable)


class Variable(metaclass=_VariableMeta):
    """The old name of Tensor: Variable(t) is t."""

    _execution_engine = _Engine()

    def __new__(cls, data, requires_grad=False):
        out = data.detach()
        return out.requires_grad_() if requires_grad else out


def __getattr__(name):
    import importlib

    if name in ("gradcheck", "gradgradcheck", "GradcheckError"):
        module = importlib.import_module("cresset.autograd.gradcheck")
        return getattr(module, name)
    if name.startswith("_record_function_with_args_"):
        return getattr(importlib.import_module("cresset.autograd._argument_ranges"), name)
    if name == "_supported_activities":
        return importlib.import_module("cresset.profiler").supported_activities
    if name in ("forward_ad", "functional", "profiler", "variable"):
        return importlib.import_module(f"cresset.autograd.{name}")
    return submodule(__name__, name)
