"""What test suites of compiled programs use: backends that count, tensors of given strides, comparisons, and classes of tests under other settings."""

import contextlib
import copy
import functools
import random
import unittest
from unittest import mock

import cresset
from cresset.utils import _pytree as pytree

__all__ = [
    "CompileCounter", "CompileCounterWithBackend", "EagerAndRecordGraphs", "collect_results", "make_test_cls_with_patches",
    "rand_strided", "reduce_to_scalar_loss", "requires_bwd_pass", "reset_rng_state", "same",
]  # fmt: skip


def _calls(module):
    return sum(node.op.startswith("call_") for node in module.graph.nodes)


class CompileCounter:
    """A backend that runs graphs as they are: frame_count of them, with op_count calls."""

    def __init__(self):
        self.clear()

    def clear(self):
        self.frame_count = self.op_count = 0

    def __call__(self, module, example_inputs):
        self.frame_count += 1
        self.op_count += _calls(module)
        return module.forward


class CompileCounterWithBackend(CompileCounter):
    """The same in front of another backend, with the graphs it got."""

    def __init__(self, backend):
        self.backend = backend
        super().__init__()

    def clear(self):
        super().clear()
        self.graphs = []

    def __call__(self, module, example_inputs):
        from cresset._capture import backends

        super().__call__(module, example_inputs)
        self.graphs.append(module)
        return backends.lookup(self.backend)(module, example_inputs)


class EagerAndRecordGraphs:
    """A backend that runs graphs as they are and keeps them."""

    def __init__(self):
        self.graphs = []

    def __call__(self, module, example_inputs):
        self.graphs.append(module)
        return module.forward


def rand_strided(size, stride, dtype=cresset.float32, device="cpu", extra_size=0):
    """Random values (normal; zeros for integers and flags) in a new tensor of these strides; extra_size: elements behind them."""
    memory = 1 + sum((n - 1) * s for n, s in zip(size, stride)) + extra_size if all(size) else 0
    if dtype.is_floating_point or dtype.is_complex:
        values = cresset.randn(memory, dtype=dtype if dtype.itemsize > 1 else cresset.float16, device=device).to(dtype)
    else:
        values = cresset.zeros(memory, dtype=dtype, device=device)
    return cresset.as_strided(values, size, stride)


def same(ref, res, *, tol=1e-4, equal_nan=False, exact_dtype=True):
    """Are two trees of results equal, tensors within `tol`?"""
    left, left_spec = pytree.tree_flatten(ref)
    right, right_spec = pytree.tree_flatten(res)
    if left_spec != right_spec:
        return False

    def equal(a, b):
        if not isinstance(a, cresset.Tensor) or not isinstance(b, cresset.Tensor):
            return type(a) is type(b) and (a == b or (equal_nan and a != a and b != b))
        if a.shape != b.shape or (exact_dtype and a.dtype != b.dtype):
            return False
        if a.layout is not cresset.strided:
            a, b = a.to_dense(), b.to_dense()
        return cresset.allclose(a.to(b.dtype), b, rtol=tol, atol=tol, equal_nan=equal_nan)

    return all(map(equal, left, right))


def reset_rng_state():
    """Random numbers from the start, those of Python too."""
    cresset.manual_seed(1337)
    random.seed(1337)


def requires_bwd_pass(out):
    """Is there a tensor in it that needs gradients?"""
    return any(isinstance(leaf, cresset.Tensor) and leaf.requires_grad for leaf in pytree.tree_leaves(out))


def reduce_to_scalar_loss(out):
    """One number from all tensors of a result, to call backward on."""
    tensors = [leaf for leaf in pytree.tree_leaves(out) if isinstance(leaf, cresset.Tensor)]
    if not tensors:
        raise NotImplementedError("reduce_to_scalar_loss: a result with tensors was required.")
    return sum(t.sum() / max(1, t.numel()) for t in tensors) / len(tensors)


def collect_results(model, prediction, loss, example_inputs):
    """[prediction, loss, gradients and parameters, buffers, gradients of inputs] of a run."""
    parameters = dict(model.named_parameters())
    grads = {f"{name}.grad": copy.deepcopy(p.grad) if p.grad is not None else cresset.zeros_like(p) for name, p in parameters.items()}
    inputs = [leaf.grad for leaf in pytree.tree_leaves(example_inputs) if isinstance(leaf, cresset.Tensor) and leaf.grad is not None]
    return [prediction, loss, {**parameters, **grads}, dict(model.named_buffers()), *inputs]


def make_test_cls_with_patches(cls, cls_prefix, fn_suffix, *patches, xfail_prop=None, decorator=lambda test: test):
    """A class of the same tests, named fn_suffix behind, each of which runs with patches (module, name, value) and behind `decorator`; a test that
    has the attribute xfail_prop is expected to fail."""
    made = type(f"{cls_prefix}{cls.__name__}", cls.__bases__, {"__doc__": cls.__doc__})
    made.__qualname__ = made.__name__

    def under_patches(test):
        @functools.wraps(test)
        def run(*args, **kwargs):
            with contextlib.ExitStack() as stack:
                for module, setting, value in patches:
                    stack.enter_context(mock.patch.object(module, setting, value))
                return test(*args, **kwargs)

        return run

    for name in dir(cls):
        value = getattr(cls, name)
        if name.startswith("test_"):
            test = under_patches(value) if callable(value) else value
            test.__name__ = f"{name}{fn_suffix}"
            if xfail_prop is not None and hasattr(value, xfail_prop):
                test = unittest.expectedFailure(test)
            setattr(made, f"{name}{fn_suffix}", decorator(test))
        elif name in vars(cls) and not name.startswith("__"):
            setattr(made, name, vars(cls)[name])
    return made
