"""Which submodules are wrapped by themselves: policies of FullyShardedDataParallel's auto_wrap_policy, and enable_wrap with wrap.

A policy is a function policy(module, recurse, nonwrapped_numel): with `recurse` it says whether to look at the module's children, without whether to wrap
the module, of whose parameters `nonwrapped_numel` elements are in no wrapped child. Or it is a `_Policy`, which names all modules at once.
"""

import contextlib
import copy
import warnings
from abc import ABC, abstractmethod

from cresset import nn

__all__ = [
    "CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap", "lambda_auto_wrap_policy", "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy", "wrap",
]  # fmt: skip


def always_wrap_policy(*args, **kwargs):
    """Wrap every module."""
    return True


def lambda_auto_wrap_policy(module, recurse, nonwrapped_numel, lambda_fn):
    """Wrap the modules for which lambda_fn(module) is true."""
    return True if recurse else lambda_fn(module)


def _module_wrap_policy(module, recurse, nonwrapped_numel, module_classes):
    return True if recurse else isinstance(module, tuple(module_classes))


def transformer_auto_wrap_policy(module, recurse, nonwrapped_numel, transformer_layer_cls):
    """Wrap the layers of a transformer, which are of these classes."""
    return _module_wrap_policy(module, recurse, nonwrapped_numel, transformer_layer_cls)


def _wrap_module_cls_individually(module, module_classes, recurse, *args, **kwargs):
    return True if recurse else isinstance(module, tuple(module_classes))


def _or_policy(module, recurse, nonwrapped_numel, policies):
    return any(policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for policy in policies)


def size_based_auto_wrap_policy(module, recurse, nonwrapped_numel, min_num_params=int(1e8), force_leaf_modules=None, exclude_wrap_modules=None):
    """Wrap modules with `min_num_params` elements or more in no wrapped child. Not those of `exclude_wrap_modules`, and no children of `force_leaf_modules`."""
    excluded = size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES if exclude_wrap_modules is None else exclude_wrap_modules
    leaves = size_based_auto_wrap_policy.FORCE_LEAF_MODULES if force_leaf_modules is None else force_leaf_modules
    large = nonwrapped_numel >= min_num_params
    if recurse:
        return large and not isinstance(module, tuple(leaves))
    return large and not isinstance(module, tuple(excluded))


size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = {nn.ModuleList, nn.ModuleDict}
size_based_auto_wrap_policy.FORCE_LEAF_MODULES = {nn.MultiheadAttention}


class _Policy(ABC):
    """Names the modules to wrap."""

    @abstractmethod
    def _run_policy(self, root_module, ignored_modules, root_kwargs):
        """{module: options of its wrapper}, of modules below or at the root."""


class ModuleWrapPolicy(_Policy):
    """Wraps modules of these classes."""

    def __init__(self, module_classes):
        self._module_classes = set(module_classes)
        self._module_classes_str = str(self._module_classes)

    def _run_policy(self, root_module, ignored_modules, root_kwargs):
        classes = tuple(self._module_classes)
        return {m: copy.copy(root_kwargs) for m in root_module.modules() if m not in ignored_modules and isinstance(m, classes)}

    def __call__(self, module, recurse, *args, **kwargs):
        return _module_wrap_policy(module, recurse, nonwrapped_numel=-1, module_classes=self._module_classes)

    def __repr__(self):
        return super().__repr__() + f"({self._module_classes_str})"


class CustomPolicy(_Policy):
    """Wraps modules for which lambda_fn(module) is True or a dict, whose items go before the root's options. ValueError for other results."""

    def __init__(self, lambda_fn):
        self._lambda_fn = lambda_fn

    def _run_policy(self, root_module, ignored_modules, root_kwargs):
        found = {}
        for module in root_module.modules():
            if module in ignored_modules:
                continue
            answer = self._lambda_fn(module)
            if not isinstance(answer, (bool, dict)):
                raise ValueError(f"The lambda_fn passed to CustomPolicy should return False/True or a kwarg dict, but it returned {answer}")
            if answer is not False:
                found[module] = {**root_kwargs, **(answer if isinstance(answer, dict) else {})}
        return found


def _run_mixed_precision_override_policy(root_module, module_classes, ignored_modules, root_kwargs, target_module_to_kwargs):
    """Let modules of these classes be wrapped without mixed precision, with casts of their inputs and outputs."""
    classes = tuple(set(module_classes))
    for module in root_module.modules():
        if module not in ignored_modules and isinstance(module, classes):
            target_module_to_kwargs[module] = {**target_module_to_kwargs.get(module, root_kwargs), "mixed_precision": None}
    return target_module_to_kwargs


def _warn_on_overridden_mixed_precision(classes):
    if classes:
        warnings.warn(
            "Both mixed precision and an auto_wrap_policy were specified to FSDP, where the wrapped module has submodules of type:\n"
            f"{classes}\nThese modules will be wrapped as separate FSDP instances with mixed precision disabled.", stacklevel=4
        )  # fmt: skip


def _post_order_apply(root_module, fn):
    """Put fn(module) in place of each module below the root, children first, where that is not None. ValueError for the root itself."""
    seen = {root_module}

    def visit(module, name, parent):
        for child_name, child in module.named_children():
            if child not in seen:
                seen.add(child)
                visit(child, child_name, module)
        made = fn(module)
        if made is None:
            return
        if not isinstance(made, nn.Module):
            raise AssertionError(f"Non-root modules should be wrapped by a module; got {type(made).__name__} for {module}.")
        if parent is None:
            raise ValueError(f"Cannot replace the root module {root_module} by another one.")
        setattr(parent, name, made)

    visit(root_module, "", None)


def _construct_wrap_fn(root_module, target_module_to_kwargs, fsdp_fn):
    """The function for _post_order_apply that wraps the modules of the dict, but not the root."""

    def fn(module):
        if module in target_module_to_kwargs and module is not root_module:
            return fsdp_fn(module, **target_module_to_kwargs[module])
        return None

    return fn


def _wrap(module, wrapper_cls, **kwargs):
    if wrapper_cls is None:
        raise AssertionError("wrapper_cls is required: use enable_wrap(wrapper_cls=...).")
    # Options of one module alone.
    return wrapper_cls(module, **{**kwargs, **getattr(module, "_wrap_overrides", {})})


def _recursive_wrap(module, auto_wrap_policy, wrapper_cls, ignored_modules, ignored_params, only_wrap_children=False, **kwargs):
    """Wrap children of the module, and itself, by a policy function; (the module, elements of parameters that are wrapped now)."""
    if auto_wrap_policy is None:
        raise AssertionError("Must specify auto_wrap_policy.")
    if wrapper_cls is None:
        raise AssertionError("Must specify wrapper_cls")
    for _, child in module.named_modules():
        if child in ignored_modules or not isinstance(wrapper_cls, type):
            continue
        if isinstance(child, wrapper_cls):
            raise AssertionError(f"Child module {child} is wrapped by {wrapper_cls} already.")
    own = sum(p.numel() for p in module.parameters() if p not in ignored_params)
    if not auto_wrap_policy(module=module, recurse=True, nonwrapped_numel=own):
        return module, 0
    total = 0
    for name, child in module.named_children():
        if child in ignored_modules:
            continue
        wrapped, count = _recursive_wrap(child, auto_wrap_policy, wrapper_cls, ignored_modules, ignored_params, **kwargs)
        setattr(module, name, wrapped)
        total += count
    if not only_wrap_children and auto_wrap_policy(module=module, recurse=False, nonwrapped_numel=own - total):
        return _wrap(module, wrapper_cls, **kwargs), own
    return module, total


class _ConfigAutoWrap:
    """What enable_wrap sets and wrap reads."""

    in_autowrap_context = False
    wrapper_cls = None
    kwargs = {}

    def __init__(self, **kwargs):
        self.kwargs = kwargs

    @staticmethod
    def enable_autowrap_context(kwargs):
        if _ConfigAutoWrap.in_autowrap_context:
            raise NotImplementedError("You are already within an autowrap context and we currently do not supported nested autowrap.")
        if "wrapper_cls" not in kwargs:
            raise AssertionError("Expected to pass in wrapper_cls arg into _ConfigAutoWrap.")
        kwargs = dict(kwargs)
        _ConfigAutoWrap.in_autowrap_context = True
        _ConfigAutoWrap.wrapper_cls, _ConfigAutoWrap.kwargs = kwargs.pop("wrapper_cls"), kwargs

    @staticmethod
    def disable_autowrap_context():
        _ConfigAutoWrap.in_autowrap_context, _ConfigAutoWrap.wrapper_cls, _ConfigAutoWrap.kwargs = False, None, {}

    def __enter__(self):
        self.enable_autowrap_context(self.kwargs)

    def __exit__(self, *exc_info):
        self.disable_autowrap_context()


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls, **wrapper_kwargs):
    """Inside of this block wrap(module) is wrapper_cls(module, **wrapper_kwargs). Blocks in blocks are NotImplementedError."""
    with _ConfigAutoWrap(wrapper_cls=wrapper_cls, **wrapper_kwargs):
        yield


def wrap(module, **wrap_overrides):
    """The module, wrapped where this is called in an enable_wrap block; options go before that block's."""
    if not _ConfigAutoWrap.in_autowrap_context:
        return module
    return _wrap(module, _ConfigAutoWrap.wrapper_cls, **{**_ConfigAutoWrap.kwargs, **wrap_overrides})
