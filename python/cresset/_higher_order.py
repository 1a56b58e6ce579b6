"""Operators that take functions, or anything else that a schema cannot say: Python kernels chosen by transforms, modes, classes and dispatch keys."""

import abc
import contextlib

from . import _C
from ._ops import OperatorBase
from .utils._pytree import tree_leaves

__all__ = ["HigherOrderOperator"]

_operators = {}  # by name


class _Level:
    """The innermost level of vmap, as rules see it."""

    def __init__(self, number, batch_size, randomness):
        self._number, self._batch_size, self._randomness = number, batch_size, randomness

    def key(self):
        """TransformType.Vmap."""
        return _C._functorch.TransformType.Vmap

    def level(self):
        """Its number."""
        return self._number

    def batch_size(self):
        """How many examples it has."""
        return self._batch_size

    def randomness(self):
        """What random operators do: "error", "same" or "different"."""
        return self._randomness

    @contextlib.contextmanager
    def lower(self):
        """A block without this level."""
        _C._vmap_pop()
        try:
            yield
        finally:
            _C._vmap_push(self._batch_size, self._randomness)


def _backend_of(tensors):
    device = next((t.device.type for t in tensors if t.device.type != "cpu"), "cpu")
    return {"cpu": "CPU", "meta": "Meta", "cuda": "CUDA"}.get(device) or next(
        name for name in _C.DispatchKey.__members__ if name.startswith("PrivateUse") and f"({name}," in str(_C._dispatch_keys(tensors[0])).replace(" ", "(")
    )


class HigherOrderOperator(OperatorBase):
    """Base class of operators without a schema. A subclass defines `__call__`, which calls that of this class; `py_impl` adds kernels.

    A call looks for a kernel in this order: of arguments' `__torch_function__`; of TransformType.Vmap under vmap; of the innermost mode's class;
    of the classes of arguments; of the autograd key of the device, or Autograd; of the device's key, or CompositeExplicitAutograd. There is one
    tape for all levels of grad, so kernels of TransformType.Grad are never asked: those of the autograd keys are. NotImplementedError where a
    kernel is missing.
    """

    def __init__(self, name, *, cacheable=False):
        if type(self) is HigherOrderOperator:
            raise RuntimeError("Direct instantiation of HigherOrderOperator is not allowed. Please subclass it.")
        self._name = self.__name__ = name
        self._ns, self._cacheable = "higher_order", cacheable
        self.py_kernels, self.non_fallthrough_keys, self._fallthrough = {}, None, set()
        _operators[name] = self

    def __str__(self):
        return self._name

    def name(self):
        """Its name."""
        return self._name

    def cacheable(self):
        """May what it does to fakes be kept?"""
        return self._cacheable

    @property
    def namespace(self):
        """Where `cresset.ops` has it."""
        return self._ns

    def py_impl(self, key):
        """A decorator: the kernel for a DispatchKey, a TransformType, a class of modes or of tensors. Kernels of transforms, modes and classes of
        modes get the level, or the mode, in front of the arguments. RuntimeError where there is one."""

        def register(function):
            if key in self.py_kernels:
                raise RuntimeError(f"Trying to override a python impl for {key} on operator {self._name}")
            self.py_kernels[key] = function
            self._fallthrough.discard(key)
            return function

        return register

    def fallthrough(self, key):
        """Calls go on below a DispatchKey."""
        self._fallthrough.add(key)

    def has_kernel_for_dispatch_key(self, key):
        """Is there a kernel for this DispatchKey?"""
        return key in self.py_kernels

    def _of_key(self, key, alias):
        for k in (key, alias):
            if k in self.py_kernels:
                return self.py_kernels[k]
        if key in self._fallthrough or alias in self._fallthrough:
            return None
        raise NotImplementedError(f"could not find kernel for HigherOrderOperator {self._name} at dispatch key {key} (resolved from {key})")

    def _of_mode(self, args, kwargs):
        from .utils._python_dispatch import _pop_mode_temporarily

        mode = _C._get_dispatch_stack_at(_C._len_torch_dispatch_stack() - 1)
        kernel = self.py_kernels.get(type(mode))
        if kernel is not None:
            with _pop_mode_temporarily():
                return kernel(mode, *args, **kwargs)
        if getattr(mode, "supports_higher_order_operators", False):
            with _pop_mode_temporarily() as mode:
                return mode.__torch_dispatch__(self, [], args, kwargs)
        raise NotImplementedError(
            f"There was no rule registered for HigherOrderOperator {self._name} and mode {mode}."
            f"Hint: set {mode}'s supports_higher_order_operators to True. This causes all higher order operators to pass through its "
            "__torch_dispatch__."
        )

    def dispatch(self, *args, **kwargs):
        """Run the kernel of what is active now."""
        inner = _C._vmap_innermost()
        if inner is not None:
            kernel = self.py_kernels.get(_C._functorch.TransformType.Vmap)
            if kernel is None:
                raise NotImplementedError(f"There was no rule registered for HigherOrderOperator {self._name} under vmap.")
            return kernel(_Level(*inner), *args, **kwargs)
        if _C._len_torch_dispatch_stack():
            return self._of_mode(args, kwargs)
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, _C.Tensor)]
        for t in tensors:
            kernel = self.py_kernels.get(type(t))
            if kernel is not None and kernel is not NotImplemented:
                result = kernel(*args, **kwargs)
                if result is not NotImplemented:
                    return result
        backend, keys = _backend_of(tensors), _C.DispatchKey.__members__
        autograd = keys[f"Autograd{backend}"]
        if tensors and not _C._dispatch_tls_is_dispatch_key_excluded(autograd):
            kernel = self._of_key(autograd, keys["Autograd"])
            if kernel is not None:
                return kernel(*args, **kwargs)
        kernel = self._of_key(keys[backend], keys["CompositeExplicitAutograd"])
        if kernel is None:
            raise NotImplementedError(f"HigherOrderOperator {self._name}: no kernel is left below the keys that fall through.")
        return kernel(*args, **kwargs)

    @abc.abstractmethod
    def __call__(self, /, *args, **kwargs):
        flat = tree_leaves((args, kwargs))
        if _C._has_torch_function(tuple(flat)):
            from .overrides import handle_torch_function

            return handle_torch_function(self, tuple(x for x in flat if isinstance(x, _C.Tensor)), *args, **kwargs)
        return self.dispatch(*args, **kwargs)
