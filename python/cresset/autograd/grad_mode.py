"""Grad modes as context managers and decorators."""

import functools

from cresset import _C

__all__ = ["no_grad", "enable_grad", "enforce_grad_layout_policy", "set_grad_enabled", "inference_mode", "set_multithreading_enabled"]


_CO_GENERATOR = 0x20  # inspect.CO_GENERATOR; inspect itself is slow to import


def _set_grad_enabled(mode):
    """Switch recording; TorchFunctionModes are told, as of a function."""
    if _C._len_torch_function_stack():
        from ..overrides import handle_torch_function

        handle_torch_function(_C._set_grad_enabled, (), mode)
    else:
        _C._set_grad_enabled(mode)


class _Decorator:
    """A context manager that also decorates functions and generators: the mode holds while their code runs."""

    def _clone(self):
        return type(self)()

    def __call__(self, function):
        if isinstance(function, type):
            import warnings

            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or methods. To preserve "
                "the current behavior of class decoration, you can directly decorate the `__init__` method and nothing else.",
                FutureWarning,
                stacklevel=2,
            )
            function.__init__ = self(function.__init__)
            return function
        if getattr(getattr(function, "__code__", None), "co_flags", 0) & _CO_GENERATOR:
            return self._wrap_generator(function)
        clone = self._clone

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with clone():
                return function(*args, **kwargs)

        return wrapper

    def _wrap_generator(self, function):
        clone = self._clone

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            generator = function(*args, **kwargs)
            # The mode is on only while the generator's own code runs, and off at each yield.
            try:
                with clone():
                    value = generator.send(None)
                while True:
                    try:
                        sent = yield value
                    except GeneratorExit:
                        with clone():
                            generator.close()
                        raise
                    except BaseException as error:
                        with clone():
                            value = generator.throw(error)
                    else:
                        with clone():
                            value = generator.send(sent)
            except StopIteration as stop:
                return stop.value

        return wrapper


class _SetMode(_Decorator):
    mode: bool

    def __init__(self):
        self.prev = False

    def __new__(cls, function=None):
        # @no_grad without parentheses decorates.
        return super().__new__(cls) if function is None else cls()(function)

    def __enter__(self):
        self.prev = _C.is_grad_enabled()
        _set_grad_enabled(self.mode)

    def __exit__(self, *exc_info):
        _set_grad_enabled(self.prev)


class no_grad(_SetMode):
    """Operations are not recorded for backward."""

    mode = False


class enable_grad(_SetMode):
    """Operations are recorded for backward."""

    mode = True


class set_grad_enabled(_Decorator):
    """Records operations or not, at once; as a context manager or decorator for its extent."""

    def __init__(self, mode):
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}")
        self.prev = _C.is_grad_enabled()
        self.mode = mode
        _set_grad_enabled(mode)

    def __call__(self, function):
        _set_grad_enabled(self.prev)  # decorating changes nothing now
        return super().__call__(function)

    def __enter__(self):
        _set_grad_enabled(self.mode)

    def __exit__(self, *exc_info):
        _set_grad_enabled(self.prev)

    def __repr__(self):
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    def _clone(self):
        return type(self)(self.mode)


class inference_mode(_Decorator):
    """Stronger than no_grad: new tensors have neither history nor versions and cannot be used in recorded operations."""

    def __init__(self, mode=True):
        self.mode = mode

    def __new__(cls, mode=True):
        return super().__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def __enter__(self):
        self._guard = _C._InferenceMode(self.mode)
        self._guard.__enter__()

    def __exit__(self, *exc_info):
        self._guard.__exit__(*exc_info)

    def _clone(self):
        return type(self)(self.mode)


class set_multithreading_enabled(_Decorator):
    """Allows or forbids engine threads of devices; forbidden, backward runs on the calling thread alone."""

    def __init__(self, mode):
        self.prev = _C._is_multithreading_enabled()
        self.mode = mode
        _C._set_multithreading_enabled(mode)

    def __enter__(self):
        pass

    def __exit__(self, *exc_info):
        _C._set_multithreading_enabled(self.prev)

    def _clone(self):
        return type(self)(self.mode)


class _force_original_view_tracking(_Decorator):
    """Context manager, or switch: whether the gradient of a view that was changed in place goes through the operators that made the view, or
    through as_strided where that finds the same elements (as by default). For this thread."""

    def __init__(self, mode):
        self.prev = _C._is_view_replay_enabled()
        self.mode = mode
        _C._set_view_replay_enabled(mode)

    def __enter__(self):
        pass

    def __exit__(self, *exc_info):
        _C._set_view_replay_enabled(self.prev)

    def _clone(self):
        return type(self)(self.mode)


class enforce_grad_layout_policy(_Decorator):
    """Context manager, or switch: whether the first gradient of a leaf must be laid out as the leaf is (as it is by default), or may be kept as
    it comes, which saves a copy. For this thread."""

    def __init__(self, enable: bool = True) -> None:
        self.prev = _C._is_grad_layout_enforced()
        self.enable = enable
        _C._set_grad_layout_enforced(enable)

    def __call__(self, function):
        _C._set_grad_layout_enforced(self.prev)  # a decorator is no switch
        return super().__call__(function)

    def __enter__(self):
        _C._set_grad_layout_enforced(self.enable)

    def __exit__(self, *exception):
        _C._set_grad_layout_enforced(self.prev)

    def _clone(self):
        return type(self)(self.enable)


class _unsafe_preserve_version_counter(_Decorator):
    """Context manager: changes of a tensor (or of a tuple of tensors) inside do not count as changes. Saved values that autograd needs may
    be wrong afterwards, without a word."""

    def __init__(self, tensors):
        self.tensors = (tensors,) if isinstance(tensors, _C.Tensor) else tuple(tensors)
        self.prev_versions = tuple(t._version for t in self.tensors)

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        _C._unsafe_set_version_counter(self.tensors, self.prev_versions)

    def _clone(self):
        return type(self)(self.tensors)
