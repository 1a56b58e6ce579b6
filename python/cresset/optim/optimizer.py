"""Optimizer: parameter groups, state, hooks; the base of all optimisers."""

import copy
import functools
import threading
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, TypeAlias

import cresset
from cresset import Tensor, _C
from cresset.utils.hooks import RemovableHandle

from ._for_others import (  # noqa: F401  (optimisers of others import them from here)
    DeviceDict,
    DeviceDtypeDict,
    _capturable_doc,
    _default_to_fused_or_foreach,
    _device_dtype_check_for_fused,
    _differentiable_doc,
    _disable_dynamo_if_unsupported,
    _foreach_doc,
    _fused_doc,
    _get_capturable_supported_devices,
    _get_scalar_dtype,
    _get_value,
    _group_tensors_by_device_and_dtype,
    _maximize_doc,
    _params_doc,
    _stack_if_compiling,
    _use_grad_for_differentiable,
    _view_as_real,
)

__all__ = ["Optimizer", "register_optimizer_step_pre_hook", "register_optimizer_step_post_hook"]


# Types of annotations, which optimisers of others import.
ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
Args: TypeAlias = tuple[Any, ...]
Kwargs: TypeAlias = dict[str, Any]
StateDict: TypeAlias = dict[str, Any]
GlobalOptimizerPreHook: TypeAlias = Callable[["Optimizer", Args, Kwargs], tuple[Args, Kwargs] | None]
GlobalOptimizerPostHook: TypeAlias = Callable[["Optimizer", Args, Kwargs], None]


class _RequiredParameter:
    """Marks a default that every parameter group has to give."""

    def __repr__(self):
        return "<required parameter>"


required = _RequiredParameter()

_global_pre_hooks = OrderedDict()
_global_post_hooks = OrderedDict()


def _add(hooks, hook, prepend=False):
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook):
    """Call `hook(optimizer, args, kwargs)` before every optimiser's step; may return new (args, kwargs). Returns a handle."""
    return _add(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook):
    """Call `hook(optimizer, args, kwargs)` after every optimiser's step. Returns a handle."""
    return _add(_global_post_hooks, hook)


def _device_step(optimizer, step):
    """`step` between the hooks of the backends whose devices hold parameters."""
    devices = {p.device for group in optimizer.param_groups for p in group["params"] if p.device.type != "cpu"}
    if not devices:
        return step

    def between(*args, **kwargs):
        for device in devices:
            _C._optimizer_step(device, 0)
        out = step(*args, **kwargs)
        for device in devices:
            _C._optimizer_step(device, 1)
        return out

    return between


def _recorded(name, function):
    """`function` as a range of the profiler."""
    from cresset.autograd.profiler import record_function

    return record_function(name)(function)


def _recorded_step(optimizer, own_step):
    """`own_step` as a range of the profiler, which looks at the optimizer behind it."""
    ranged = _recorded(f"Optimizer.step#{type(optimizer).__name__}.step", own_step)

    def step(*args, **kwargs):
        out = ranged(*args, **kwargs)
        optimizer._optimizer_step_code()
        return out

    return step


def _with_hooks(own_step):
    """`step` with the hooks around it. A step that a subclass's step calls runs without them: the outermost has them."""

    @functools.wraps(own_step)
    def wrapper(self, *args, **kwargs):
        if "_opt_called" in self.__dict__:  # a schedule asks
            self._opt_called = True
        step = _device_step(self, own_step) if _C._registered_backends() and type(self).step is wrapper else own_step
        if _C._profiler_recording() and type(self).step is wrapper:
            step = _recorded_step(self, step)
        if (
            not (
                self._optimizer_step_pre_hooks
                or self._optimizer_step_post_hooks
                or _global_pre_hooks
                or _global_post_hooks
            )
            or type(self).step is not wrapper
        ):
            return step(self, *args, **kwargs)
        args = (self, *args)
        for hook in list(chain(_global_pre_hooks.values(), self._optimizer_step_pre_hooks.values())):
            result = hook(self, args, kwargs)
            if result is not None:
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError(
                        f"{wrapper.__qualname__} must return None or a tuple of (new_args, new_kwargs), but got {result}."
                    )
                args, kwargs = result
        out = step(*args, **kwargs)
        for hook in list(chain(self._optimizer_step_post_hooks.values(), _global_post_hooks.values())):
            hook(self, args, kwargs)
        return out

    wrapper.hooked = True
    return wrapper


def check_not_negative(**values):
    """ValueError when a hyperparameter is negative."""
    for name, value in values.items():
        if not 0.0 <= value:
            raise ValueError(f"Invalid {name} value: {value}")


def check_lr(lr):
    """ValueError for a negative learning rate, or a tensor with more than one element."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not 0.0 <= lr:
        raise ValueError(f"Invalid learning rate: {lr}")


def as_float(value):
    """A hyperparameter that may be a one-element tensor, as a number."""
    return value.item() if isinstance(value, Tensor) else value


class Optimizer:
    """Base class: `params` is an iterable of tensors, of (name, tensor), or of group dictionaries; `defaults` fills the groups.

    Subclasses define `step(closure=None)`.
    """

    _group_tensors_by_device_and_dtype = staticmethod(_group_tensors_by_device_and_dtype)

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        step = cls.__dict__.get("step")
        if step is not None and not getattr(step, "hooked", False):
            cls.step = _with_hooks(step)

    def __init__(self, params, defaults):
        self.defaults = defaults
        self._make_hooks()
        if isinstance(params, Tensor):
            raise TypeError(
                f"params argument given to the optimizer should be an iterable of Tensors or dicts, but got {params.type()}"
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    @staticmethod
    def profile_hook_step(func):
        """A decorator for the step of a class that is no subclass's: the hooks of its optimizers run around it."""
        return func if getattr(func, "hooked", False) else _with_hooks(func)

    def _patch_step_function(self):
        """What subclasses call that do not call __init__: afterwards their class's step has the hooks around it, wherever it came from."""
        self._zero_grad_profile_name = f"Optimizer.zero_grad#{type(self).__name__}.zero_grad"
        if not getattr(type(self).step, "hooked", False):
            type(self).step = _with_hooks(type(self).step)

    def __getattr__(self, name):
        # Subclasses that do not call this class's __init__ have no hooks yet.
        if name.startswith("_optimizer_") and name.endswith("_hooks"):
            self._make_hooks()
            return self.__dict__[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _make_hooks(self):
        self._optimizer_step_pre_hooks = OrderedDict()
        self._optimizer_step_post_hooks = OrderedDict()
        self._optimizer_state_dict_pre_hooks = OrderedDict()
        self._optimizer_state_dict_post_hooks = OrderedDict()
        self._optimizer_load_state_dict_pre_hooks = OrderedDict()
        self._optimizer_load_state_dict_post_hooks = OrderedDict()

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        if "_optimizer_step_pre_hooks" not in self.__dict__:
            self._make_hooks()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self):
        blocks = []
        for i, group in enumerate(self.param_groups):
            lines = [f"Parameter Group {i}"]
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
            blocks.append("\n".join(lines) + "\n")
        return f"{type(self).__name__} (\n" + "\n".join(blocks) + ")"

    # Hooks ------------------------------------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook):
        """Call `hook(optimizer, args, kwargs)` before step; may return new (args, kwargs). Returns a handle."""
        return _add(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook):
        """Call `hook(optimizer, args, kwargs)` after step. Returns a handle."""
        return _add(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """Call `hook(optimizer)` before state_dict. Returns a handle."""
        return _add(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """Call `hook(optimizer, state_dict)` after state_dict; may return another dictionary. Returns a handle."""
        return _add(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """Call `hook(optimizer, state_dict)` before loading; may return another dictionary. Returns a handle."""
        return _add(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """Call `hook(optimizer)` after loading. Returns a handle."""
        return _add(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # State ------------------------------------------------------------------------------------------------------------

    def state_dict(self):
        """{"state": state by parameter number, "param_groups": the groups with parameter numbers}."""
        for hook in list(self._optimizer_state_dict_pre_hooks.values()):
            hook(self)
        number, groups = {}, []
        for group in self.param_groups:
            packed = {k: v for k, v in group.items() if k != "params"}
            for p in group["params"]:
                number.setdefault(id(p), len(number))
            packed["params"] = [number[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {(number[id(k)] if isinstance(k, Tensor) else k): v for k, v in self.state.items()}
        result = {"state": state, "param_groups": groups}
        for hook in list(self._optimizer_state_dict_post_hooks.values()):
            new = hook(self, result)
            if new is not None:
                result = new
        return result

    def load_state_dict(self, state_dict):
        """Take over hyperparameters and state; tensors are cast to their parameter's dtype and device.

        ValueError when the groups do not fit this optimiser's.
        """
        state_dict = state_dict.copy()
        for hook in list(self._optimizer_load_state_dict_pre_hooks.values()):
            new = hook(self, state_dict)
            if new is not None:
                state_dict = new
        saved = copy.deepcopy(state_dict["param_groups"])
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(s["params"]) != len(g["params"]) for s, g in zip(saved, self.param_groups)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        param_of = dict(
            zip(
                chain.from_iterable(s["params"] for s in saved),
                chain.from_iterable(g["params"] for g in self.param_groups),
            )
        )
        state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in param_of:
                param = param_of[key]
                state[param] = _cast_state(param, value)
            else:
                state[key] = value
        groups = []
        for new, old in zip(saved, self.param_groups):
            new["params"] = old["params"]
            if "param_names" in old and "param_names" not in new:
                new["param_names"] = old["param_names"]
            groups.append(new)
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in list(self._optimizer_load_state_dict_post_hooks.values()):
            hook(self)

    def zero_grad(self, set_to_none=True):
        """Drop all gradients, or with `set_to_none=False` fill them with zeros."""
        if _C._profiler_recording():
            name = f"Optimizer.zero_grad#{type(self).__name__}.zero_grad"
            return _recorded(name, self._zero_grad)(set_to_none)
        self._zero_grad(set_to_none)

    def _zero_grad(self, set_to_none):
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                elif p.grad is not None:
                    if p.grad.grad_fn is not None:
                        p.grad.detach_()
                    else:
                        p.grad.requires_grad_(False)
                    p.grad.zero_()

    def _optimizer_step_code(self):
        """Behind each step that is profiled: a session with stacks notes what the optimizer holds after its first step there."""
        from cresset._profiler_c import _OptimizerInfo
        from cresset.autograd import _profiler_state

        noted = _profiler_state.optimizers
        if noted is not None:
            known = _profiler_state.optimizer_infos
            if id(self) not in known:
                known[id(self)] = (self, _OptimizerInfo._of(self))
            noted.setdefault(threading.get_native_id(), []).append(known[id(self)][1])

    def step(self, closure=None):
        """One update; `closure`, when given, computes the loss again and is called with gradients enabled."""
        raise NotImplementedError(f"{type(self).__name__}.step: every optimiser defines its own")

    def add_param_group(self, param_group):
        """Add a group, e.g. `{"params": tensors, "lr": 0.1}`; missing options come from the defaults.

        TypeError or ValueError for sets, non-tensors, non-leaves, missing required options and parameters of other groups.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will change "
                "between runs. Please use a list instead."
            )
        elif not isinstance(params, Iterable):
            raise TypeError(f"params of a group must be Tensors; got {type(params).__name__}")
        params = list(params)
        names = None
        if any(isinstance(p, tuple) for p in params):
            if not all(isinstance(p, tuple) for p in params):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            names = [name for name, _ in params]
            params = [p for _, p in params]
        named_before = ["param_names" in g for g in self.param_groups]
        if named_before and named_before[0] != (names is not None):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{'without' if names is None else 'with'} names to the optimizer"
            )
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(p).__name__}")
            if not self.defaults.get("differentiable", None) and not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        if names is not None:
            param_group["param_names"] = names
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        ids = {id(p) for p in params}
        if len(ids) != len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        if any(id(p) in ids for g in self.param_groups for p in g["params"]):
            raise ValueError("some parameters appear in more than one parameter group")
        param_group["params"] = params
        self.param_groups.append(param_group)


def _cast_state(param, value, key=None):
    """A copy of saved state for `param`: tensors on its device and, when floating and not a step count, of its dtype."""
    if isinstance(value, Tensor):
        if key == "step":
            return value.clone()
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device, copy=True)
        return value.to(device=param.device, copy=True)
    if isinstance(value, dict):
        return {k: _cast_state(param, v, k) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast_state(param, v) for v in value)
    return value


def run_closure(closure):
    """The loss of `closure` computed with gradients enabled, or None."""
    if closure is None:
        return None
    with cresset.enable_grad():
        return closure()
