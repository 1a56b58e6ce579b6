"""State dictionaries of Module: collecting, loading, and their hooks."""

import warnings
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Mapping

import cresset
import cresset.__future__ as _conversion
from cresset import Tensor
from cresset._hints import with_hint
from cresset.nn.parameter import Parameter, is_lazy
from cresset.utils._swap import swap_tensors

from ._hooks import _add


def _swap_in(target, value, assign):
    """Puts what `target.module_load(value)` gives behind the object `target`, as `__future__.set_swap_module_params_on_conversion` asks for."""
    loaded = target.module_load(value, assign=assign)
    if loaded is value or loaded is target:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning one of the inputs in module_load"
        )
    if isinstance(target, Parameter):
        if isinstance(loaded, Parameter):
            loaded.requires_grad_(target.requires_grad)
        else:
            loaded = Parameter(loaded, requires_grad=target.requires_grad)
    swap_tensors(target, loaded)


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What load_state_dict returns: names that were not in the dictionary, and names the module does not have."""

    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


_EXTRA = "_extra_state"


class _WrappedHook:
    """A hook of load_state_dict, which gets the module first when one is given. Pickles of modules have it under this name."""

    def __init__(self, hook, module=None):
        self.hook, self.with_module = hook, module is not None
        self.module = weakref.ref(module) if self.with_module else None

    def __call__(self, *args, **kwargs):
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("load_state_dict: the module of a hook is gone.")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self):
        state = {"hook": self.hook, "with_module": self.with_module}
        return {**state, "module": self.module()} if self.with_module else state

    def __setstate__(self, state):
        self.hook, self.with_module = state["hook"], state["with_module"]
        self.module = weakref.ref(state["module"]) if self.with_module else None


_WrappedHook.__module__ = "cresset.nn.modules.module"


class _StatefulModule:
    """The part of Module that makes and reads state dictionaries."""

    # Raised by a subclass when the meaning of its entries changes; stored in the dictionary's _metadata.
    _version = 1

    def get_extra_state(self):
        """Anything picklable that goes into the state dict besides tensors; define it together with set_extra_state."""
        error = RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called. Please file an issue at "
            "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug."
        )
        raise with_hint(error, "Define get_extra_state in the subclass.")

    def set_extra_state(self, state):
        """Take back what get_extra_state returned."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called. Define set_extra_state in the subclass."
        )

    def register_state_dict_post_hook(self, hook):
        """Call `hook(module, state_dict, prefix, local_metadata)` after state_dict; it edits in place. Returns a handle."""
        hook._from_public_api = True
        return _add(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook):
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via register_state_dict_post_hook"
            )
        return _add(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook):
        """Call `hook(module, prefix, keep_vars)` before state_dict collects this module. Returns a handle."""
        return _add(self._state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        return _add(self._load_state_dict_pre_hooks, _WrappedHook(hook, self if with_module else None))

    def register_load_state_dict_pre_hook(self, hook):
        """Call `hook(module, state_dict, prefix, local_metadata, strict, missing, unexpected, errors)` before loading. Returns a handle."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook):
        """Call `hook(module, incompatible_keys)` after loading; it may edit the two lists in place. Returns a handle."""
        return _add(self._load_state_dict_post_hooks, hook)

    def _persistent_buffers(self):
        skip = self._non_persistent_buffers_set
        return ((name, buf) for name, buf in self._buffers.items() if name not in skip)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        """Put this module's own entries into `destination`; subclasses may override."""
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        for name, buf in self._persistent_buffers():
            if buf is not None:
                destination[prefix + name] = buf if keep_vars else buf.detach()
        if type(self).get_extra_state is not _StatefulModule.get_extra_state:
            destination[prefix + _EXTRA] = self.get_extra_state()

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """OrderedDict of all parameters and persistent buffers: own parameters, own buffers, then children.

        Values are detached and share storage with the module (with `keep_vars`, they are the parameters themselves).
        The attribute `_metadata` holds each module's version.
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
                FutureWarning,
                stacklevel=2,
            )
            if destination is None:
                destination = args[0]
            if len(args) > 1 and prefix == "":
                prefix = args[1]
            if len(args) > 2 and keep_vars is False:
                keep_vars = args[2]
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in list(self._state_dict_pre_hooks.values()):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        for hook in list(self._state_dict_hooks.values()):
            result = hook(self, destination, prefix, local_metadata)
            if getattr(hook, "_from_public_api", False):
                if result is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif result is not None:
                destination = result
        return destination

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        """Copy this module's own entries out of `state_dict`; problems are appended to the three lists."""
        for hook in list(self._load_state_dict_pre_hooks.values()):
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        own = {**self._parameters, **dict(self._persistent_buffers())}
        own = {name: value for name, value in own.items() if value is not None}
        for name, target in own.items():
            key = prefix + name
            if key in state_dict:
                self._load_entry(name, target, key, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)

        extra = prefix + _EXTRA
        takes_extra = type(self).set_extra_state is not _StatefulModule.set_extra_state
        if takes_extra:
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)

        if strict:
            start = len(prefix)
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    head, dot, _ = key[start:].partition(".")
                    if dot:
                        # Entries of a child are that child's business.
                        if head not in self._modules and key[start:] not in own:
                            unexpected_keys.append(key)
                    elif head not in own:
                        unexpected_keys.append(key)

    def _load_entry(self, name, target, key, value, assign, error_msgs):
        if not isinstance(value, Tensor) and not hasattr(type(value), "__torch_function__"):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint but received {type(value)}'
            )
            return
        lazy = is_lazy(target)
        if not lazy and target.dim() == 0 and len(value.shape) == 1 and value.shape[0] == 1:
            value = value[0]  # old files kept scalars as one-element vectors
        if not lazy and value.shape != target.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
                f"the shape in current model is {target.shape}."
            )
            return
        if target.is_meta and not value.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, which is "
                "a no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary to their corresponding key in the "
                "module instead of copying them in place?)",
                stacklevel=2,
            )
        swap = _conversion.get_swap_module_params_on_conversion()
        try:
            with cresset.no_grad():
                if swap:
                    _swap_in(target, value, assign)
                elif assign:
                    if isinstance(target, Parameter):
                        if isinstance(value, Parameter):
                            value.requires_grad_(target.requires_grad)
                        else:
                            value = Parameter(value, requires_grad=target.requires_grad)
                    setattr(self, name, value)
                else:
                    target.copy_(value)
        except Exception as e:
            error_msgs.append(
                f'While {"swapping" if swap else "copying"} the parameter named "{key}", whose dimensions in the model are {target.size()} and whose dimensions in '
                f"the checkpoint are {value.shape}, an exception occurred : {e.args}."
            )

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copy the entries of `state_dict` into this module and its children (with `assign`, adopt the tensors themselves).

        Returns (missing_keys, unexpected_keys). RuntimeError lists every size mismatch and, with `strict`, every missing and
        unexpected key; TypeError when `state_dict` is not a mapping.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing_keys, unexpected_keys, error_msgs = [], [], []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata

        def load(module, local, prefix):
            local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local_metadata["assign_to_params_buffers"] = assign
            module._load_from_state_dict(local, prefix, local_metadata, True, missing_keys, unexpected_keys, error_msgs)
            for name, child in module._modules.items():
                if child is not None:
                    child_prefix = prefix + name + "."
                    load(child, {k: v for k, v in local.items() if k.startswith(child_prefix)}, child_prefix)
            keys = _IncompatibleKeys(missing_keys, unexpected_keys)
            for hook in list(module._load_state_dict_post_hooks.values()):
                if hook(module, keys) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values, if "
                        "incompatible_keys need to be modified, it should be done inplace."
                    )

        load(self, state_dict, "")
        load = None  # it holds itself and the tensors, until the collector comes
        if strict:
            if unexpected_keys:
                error_msgs.insert(
                    0, "Unexpected key(s) in state_dict: " + ", ".join(f'"{k}"' for k in unexpected_keys) + ". "
                )
            if missing_keys:
                error_msgs.insert(
                    0, "Missing key(s) in state_dict: " + ", ".join(f'"{k}"' for k in missing_keys) + ". "
                )
        if error_msgs:
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(error_msgs)
            )
        return _IncompatibleKeys(missing_keys, unexpected_keys)
