"""Module: the base of everything that holds parameters, buffers and child modules."""

import itertools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Optional

import cresset
import cresset.__future__ as _conversion
from cresset._homes import settle
from cresset import Tensor
from cresset._dtype_info import NUMBER_DTYPES
from cresset._hints import with_hint
from cresset.nn.parameter import Buffer, Parameter
from cresset.utils._python_dispatch import is_traceable_wrapper_subclass
from cresset.utils._swap import swap_tensors

from . import _hooks
from ._hooks import *  # noqa: F403  (the global registration functions are public here)
from ._hooks import (  # noqa: F401  (PyTorch's place of the dictionaries, which are only ever changed, not replaced)
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_buffer_registration_hooks,
    _global_forward_hooks,
    _global_forward_hooks_always_called,
    _global_forward_hooks_with_kwargs,
    _global_forward_pre_hooks,
    _global_module_registration_hooks,
    _global_parameter_registration_hooks,
    _HookedModule,
)
from ._state import _EXTRA as _EXTRA_STATE_KEY_SUFFIX, _IncompatibleKeys, _StatefulModule, _WrappedHook  # noqa: F401

__all__ = ["Module", *_hooks.__all__]
settle(globals(), _hooks.__all__)


def _addindent(text, spaces):
    """Indent every line of `text` but the first."""
    return text.replace("\n", "\n" + " " * spaces)


def _check_name(kind, name):
    if not isinstance(name, str):
        raise TypeError(f"{kind} name should be a string. Got {type(name).__name__}")
    if "." in name:
        raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
    if name == "":
        raise KeyError(f'{kind} name can\'t be empty string ""')


def _parse_to(args, kwargs):
    """The arguments of Module.to as (device, dtype, non_blocking, memory_format)."""
    given = dict(kwargs)
    device, dtype = given.pop("device", None), given.pop("dtype", None)
    non_blocking, memory_format = given.pop("non_blocking", False), given.pop("memory_format", None)
    given.pop("copy", None)
    rest = [NUMBER_DTYPES.get(a, a) if isinstance(a, type) else a for a in args]
    dtype = NUMBER_DTYPES.get(dtype, dtype) if isinstance(dtype, type) else dtype
    if "tensor" in given:
        rest.insert(0, given.pop("tensor"))
    ok = not given
    if rest and isinstance(rest[0], Tensor):
        other = rest.pop(0)
        device, dtype = other.device, other.dtype
    elif rest and (
        rest[0] is None or (isinstance(rest[0], (str, int, cresset.device)) and not isinstance(rest[0], bool))
    ):
        device = rest.pop(0)
        if rest and (rest[0] is None or isinstance(rest[0], cresset.dtype)):
            dtype = rest.pop(0)
        elif rest:
            ok = False
    elif rest and isinstance(rest[0], cresset.dtype):
        dtype = rest.pop(0)
    elif rest:
        ok = False
    if rest:
        non_blocking = rest.pop(0)
        ok = ok and isinstance(non_blocking, bool) and len(rest) <= 1
    if not ok or not (dtype is None or isinstance(dtype, cresset.dtype)):
        got = ", ".join([type(a).__name__ for a in args] + [f"{k}={type(v).__name__}" for k, v in kwargs.items()])
        raise TypeError(
            f"to() received an invalid combination of arguments - got ({got}), but expected one of: (device, dtype, non_blocking), "
            "(dtype, non_blocking), (tensor, non_blocking)"
        )
    if device is not None:
        device = cresset.device(device)
    return device, dtype, non_blocking, memory_format


class Module(_HookedModule, _StatefulModule):
    """Base class of neural network modules: subclass it, register state in `__init__`, compute in `forward`.

    Parameters, buffers and modules that are assigned as attributes are registered under the attribute's name.
    """

    dump_patches: bool = False
    call_super_init: bool = False
    training: bool
    forward: Callable[..., Any]
    _parameters: dict[str, Optional[Parameter]]
    _buffers: dict[str, Optional[Tensor]]

    def __init__(self, *args, **kwargs):
        if not type(self).call_super_init and (args or kwargs):
            name = type(self).__name__
            if kwargs:
                raise TypeError(f"{name}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")
            raise TypeError(f"{name}.__init__() takes 1 positional argument but {len(args) + 1} were given")
        new = super().__setattr__  # the plain one: nothing here is a parameter, buffer or module
        new("training", True)
        new("_parameters", {})
        new("_buffers", {})
        new("_non_persistent_buffers_set", set())
        new("_backward_pre_hooks", OrderedDict())
        new("_backward_hooks", OrderedDict())
        new("_is_full_backward_hook", None)
        new("_forward_hooks", OrderedDict())
        new("_forward_hooks_with_kwargs", OrderedDict())
        new("_forward_hooks_always_called", OrderedDict())
        new("_forward_pre_hooks", OrderedDict())
        new("_forward_pre_hooks_with_kwargs", OrderedDict())
        new("_state_dict_hooks", OrderedDict())
        new("_state_dict_pre_hooks", OrderedDict())
        new("_load_state_dict_pre_hooks", OrderedDict())
        new("_load_state_dict_post_hooks", OrderedDict())
        new("_modules", {})
        if type(self).call_super_init:
            super().__init__(*args, **kwargs)

    # Attributes -------------------------------------------------------------------------------------------------------

    def __getattr__(self, name):
        d = self.__dict__
        try:
            if name in d["_parameters"]:
                return d["_parameters"][name]
            if name in d["_buffers"]:
                return d["_buffers"][name]
            if name in d["_modules"]:
                return d["_modules"][name]
        except KeyError:
            error = AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
            raise with_hint(error, "Module.__init__() has not been called. Call super().__init__() first in __init__.") from None
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _forget(self, name, *keep):
        # A name lives in one place only.
        d = self.__dict__
        for where in ("_parameters", "_buffers", "_modules"):
            if where not in keep:
                d[where].pop(name, None)
        d.pop(name, None)
        if "_buffers" not in keep:
            d["_non_persistent_buffers_set"].discard(name)

    def __setattr__(self, name, value):
        d = self.__dict__
        params = d.get("_parameters")
        tensor = isinstance(value, Tensor)
        if tensor and isinstance(value, Parameter):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
            return
        if params is not None and name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_kind(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, None)
            return
        modules = d.get("_modules")
        if isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_modules")
            modules[name] = _hooks.registered(_hooks._global_module_registration_hooks, self, name, value)
            return
        if modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_kind(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            modules[name] = _hooks.registered(_hooks._global_module_registration_hooks, self, name, value)
            return
        buffers = d.get("_buffers")
        is_buffer = tensor and isinstance(value, Buffer)
        if is_buffer or (buffers is not None and name in buffers):
            if value is not None and not tensor:
                raise TypeError(
                    f"cannot assign '{_kind(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None expected)"
                )
            if buffers is None:
                raise AttributeError("cannot assign buffer before Module.__init__() call")
            if is_buffer:
                persistent = value.persistent
                self._forget(name, "_buffers")
                self.register_buffer(name, value, persistent)
                return
            buffers[name] = _hooks.registered(_hooks._global_buffer_registration_hooks, self, name, value)
            return
        super().__setattr__(name, value)
        if name == "_call_impl" and self._compiled_call_impl is None:
            d["_compiled_call_impl"] = self._call_replaced

    def __delattr__(self, name):
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            super().__delattr__(name)

    def __dir__(self):
        names = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted(name for name in names if not name[0].isdigit())

    def __setstate__(self, state):
        self.__dict__.update(state)
        # Objects pickled before a field existed get it empty.
        for name, make in _FIELDS_ADDED_LATER:
            if name not in self.__dict__:
                self.__dict__[name] = make()

    # Registration -----------------------------------------------------------------------------------------------------

    def register_parameter(self, name, param):
        """Add a parameter under `name`; None keeps the name in the module without a value.

        Raises AttributeError before `__init__`, TypeError or KeyError for a bad name or value, ValueError for a non-leaf.
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        _check_name("parameter", name)
        if hasattr(self, name) and name not in self._parameters:
            raise KeyError(f"attribute '{name}' already exists")
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{_kind(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To express "
                    f"'{name}' as a function of another Tensor, compute the value in the forward() method."
                )
            param = _hooks.registered(_hooks._global_parameter_registration_hooks, self, name, param)
        self._parameters[name] = param

    def register_buffer(self, name, tensor, persistent=True):
        """Add a buffer under `name`: state that is moved and (if `persistent`) saved with the module, but not trained."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        _check_name("buffer", name)
        if hasattr(self, name) and name not in self._buffers:
            raise KeyError(f"attribute '{name}' already exists")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{_kind(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = _hooks.registered(_hooks._global_buffer_registration_hooks, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name, module):
        """Add a child module under `name`; None keeps the name without a value."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{_kind(module)} is not a Module subclass")
        _check_name("module", name)
        if hasattr(self, name) and name not in self._modules:
            raise KeyError(f"attribute '{name}' already exists")
        self._modules[name] = _hooks.registered(_hooks._global_module_registration_hooks, self, name, module)

    register_module = add_module

    # Looking up -------------------------------------------------------------------------------------------------------

    def get_submodule(self, target):
        """The child at the dotted path `target` ("" is the module itself); AttributeError names what is missing."""
        if target == "":
            return self
        module = self
        for name in target.split("."):
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target, module, strict=False):
        """Replace the child at `target`; without `strict` a name that does not exist yet is added to its parent."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target):
        """The parameter at the dotted path `target`; AttributeError when there is none."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        param = getattr(module, name)
        if not isinstance(param, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return param

    def get_buffer(self, target):
        """The buffer at the dotted path `target`; AttributeError when there is none."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return getattr(module, name)

    def _named_members(self, get_members, prefix="", recurse=True, remove_duplicate=True):
        seen = {}  # by id; holds the tensors, which may be objects made for this walk (script modules)
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for module_prefix, module in modules:
            for name, value in get_members(module):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen[id(value)] = value
                yield (f"{module_prefix}.{name}" if module_prefix else name), value

    def parameters(self, recurse=True):
        """Iterate over the parameters, each once."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """Iterate over (dotted name, parameter)."""
        return self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        """Iterate over the buffers, each once."""
        for _, buf in self.named_buffers(recurse=recurse):
            yield buf

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """Iterate over (dotted name, buffer)."""
        return self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self):
        """Iterate over the direct child modules, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self):
        """Iterate over (name, direct child module), each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate=True):
        """Iterate over this module and all below it, each once."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """Iterate over (dotted name, module), starting with ("", self)."""
        if memo is None:
            memo = set()
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    # Changing the whole tree ------------------------------------------------------------------------------------------

    def apply(self, fn):
        """Call `fn` on every module, children first, then self; returns self."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode=True):
        """Set the training mode of this module and all below it; returns self."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        """Set evaluation mode; the same as train(False)."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        """Set requires_grad of all parameters; returns self."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        """Drop the gradients of all parameters, or with `set_to_none=False` fill them with zeros."""
        for param in self.parameters():
            grad = param.grad
            if grad is None:
                continue
            if set_to_none:
                param.grad = None
            else:
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    def share_memory(self):
        """Move all tensors to shared memory; returns self."""
        return self._apply(lambda t: t.share_memory_())

    def _apply(self, fn, recurse=True):
        """Replace every parameter, gradient and buffer by `fn` of it; parameters stay the same objects where possible."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in self._parameters.items():
            if param is None:
                continue
            grad = param.grad
            with cresset.no_grad():
                applied = fn(param)
            # A wrapper keeps its parts in attributes, which `data` does not carry over.
            if _conversion.get_swap_module_params_on_conversion() or (applied is not param and is_traceable_wrapper_subclass(applied)):
                self._swap(name, param, applied, fn)
                continue
            target = param
            try:
                if _conversion.get_overwrite_module_params_on_conversion():
                    raise TypeError
                param.data = applied
            except (RuntimeError, TypeError):
                # The new tensor is of another implementation (another kind of device): the object cannot be kept.
                target = Parameter(applied, param.requires_grad)
                self._parameters[name] = target
            if grad is not None:
                with cresset.no_grad():
                    applied = fn(grad)
                if target is param:
                    grad.data = applied
                else:
                    target.grad = applied.requires_grad_(grad.requires_grad)
        for name, buf in self._buffers.items():
            if buf is not None:
                self._buffers[name] = fn(buf)
        return self

    def _swap(self, name, param, applied, fn):
        """Puts `applied` behind the object `param`, and `fn` of its gradient behind the gradient's object."""
        grad, param.grad = param.grad, None
        try:
            # A conversion that changes nothing gives the parameter itself.
            swap_tensors(param, Parameter(applied, param.requires_grad) if applied is param or not isinstance(applied, Parameter) else applied)
            if grad is not None:
                with cresset.no_grad():
                    converted = fn(grad)
                if converted is not grad:
                    swap_tensors(grad, converted.requires_grad_(grad.requires_grad))
        except Exception as error:
            raise RuntimeError(f"_apply(): Couldn't swap {type(self).__name__}.{name}") from error
        param.grad = grad

    def to(self, *args, **kwargs):
        """Move and cast: `to(device, dtype)`, `to(dtype)`, `to(tensor)`, `memory_format=`; in place, returns self.

        Only floating point and complex tensors change dtype. TypeError for a dtype of another kind.
        """
        if kwargs.get("copy") is not None or len(args) > (2 if args and isinstance(args[0], (cresset.dtype, cresset.Tensor)) else 3):
            raise RuntimeError(".to() does not accept copy argument")
        device, dtype, non_blocking, memory_format = _parse_to(args, kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )

        def convert(t):
            try:
                to_dtype = dtype if t.is_floating_point() or t.is_complex() else None
                if memory_format is not None and t.dim() in (4, 5):
                    return t.to(device, to_dtype, non_blocking, memory_format=memory_format)
                return t.to(device, to_dtype, non_blocking)
            except NotImplementedError as e:
                if t.is_meta and (device is None or device.type != "meta"):
                    raise NotImplementedError(
                        "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when "
                        "moving module from meta to a different device."
                    ) from e
                raise

        return self._apply(convert)

    def to_empty(self, *, device, recurse=True):
        """Move to `device` without copying: every tensor becomes uninitialised there; returns self."""
        return self._apply(lambda t: cresset.empty_like(t, device=device), recurse=recurse)

    def type(self, dst_type):
        """Cast all parameters and buffers, of every dtype, to `dst_type`; returns self."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self):
        """Cast floating point tensors to float32; returns self."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self):
        """Cast floating point tensors to float64; returns self."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self):
        """Cast floating point tensors to float16; returns self."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self):
        """Cast floating point tensors to bfloat16; returns self."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def cpu(self):
        """Move to the CPU; returns self."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device=None):
        """Move to CUDA: AssertionError unless the module has no tensors, because none is built in. Use to(device); returns self."""
        return self._apply(lambda t: t.cuda(device))

    def xpu(self, device=None):
        """The same for XPU."""
        return self._apply(lambda t: t.xpu(device))

    def ipu(self, device=None):
        """The same for IPU, with RuntimeError."""
        return self._apply(lambda t: t.ipu(device))

    def mtia(self, device=None):
        """The same for MTIA."""
        return self._apply(lambda t: t.mtia(device))

    def compile(self, *args, **kwargs):
        """Calls of this module go through cresset.compile from now on, which takes the arguments."""
        self.__dict__["_compiled_call_impl"] = cresset.compiler.compiled_in_place(self, *args, **kwargs)

    # Printing ---------------------------------------------------------------------------------------------------------

    def _get_name(self):
        return type(self).__name__

    def _replicate_for_data_parallel(self):
        """A shallow copy without parameters, which nn.parallel.replicate fills."""
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = replica._buffers.copy()
        replica._modules = replica._modules.copy()
        replica._is_replica = True
        return replica

    def extra_repr(self):
        """What stands between the parentheses of repr; subclasses override it."""
        return ""

    def __repr__(self):
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        child_lines = [f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()]
        if len(extra_lines) == 1 and not child_lines:
            body = extra_lines[0]
        else:
            body = "".join("\n  " + line for line in itertools.chain(extra_lines, child_lines))
            if body:
                body += "\n"
        return f"{self._get_name()}({body})"


def _kind(value):
    """How an error names the type of `value`."""
    kind = value if isinstance(value, type) else type(value)
    if issubclass(kind, Tensor) and kind is not value:
        return value.type()
    name = kind.__qualname__
    return name if kind.__module__ == "builtins" else f"{kind.__module__}.{name}"


_FIELDS_ADDED_LATER = (
    ("_forward_pre_hooks", OrderedDict),
    ("_forward_pre_hooks_with_kwargs", OrderedDict),
    ("_forward_hooks_with_kwargs", OrderedDict),
    ("_forward_hooks_always_called", OrderedDict),
    ("_state_dict_hooks", OrderedDict),
    ("_state_dict_pre_hooks", OrderedDict),
    ("_load_state_dict_pre_hooks", OrderedDict),
    ("_load_state_dict_post_hooks", OrderedDict),
    ("_non_persistent_buffers_set", set),
    ("_is_full_backward_hook", lambda: None),
    ("_backward_pre_hooks", OrderedDict),
)
