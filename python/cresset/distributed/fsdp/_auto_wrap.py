"""auto_wrap_policy of FullyShardedDataParallel."""

import functools

import cresset
from cresset.utils._pytree import tree_map_only

from .wrap import (
    _construct_wrap_fn, _or_policy, _Policy, _post_order_apply, _recursive_wrap, _run_mixed_precision_override_policy, _warn_on_overridden_mixed_precision,
    _wrap_module_cls_individually,
)  # fmt: skip

__all__ = ["auto_wrap"]


def auto_wrap(module, policy, wrapper_class, ignored_modules, ignored_params, options):
    """Wrap submodules as the policy says, with these options. ValueError where some are wrapped already."""
    for name, each in module.named_modules():
        if isinstance(each, wrapper_class):
            raise ValueError(f"FSDP auto wrapping requires modules to not already have FSDP applied but found {name} in\n{module}")
    precise = _precise_modules(module, ignored_modules, options["mixed_precision"])
    if isinstance(policy, _Policy):
        targets = policy._run_policy(module, ignored_modules, options)
        if precise:
            targets = _run_mixed_precision_override_policy(module, {type(m) for m in precise}, ignored_modules, options, targets)
        _compute_in_full_precision(precise)
        _post_order_apply(module, _construct_wrap_fn(module, targets, wrapper_class))
        return
    if precise:
        for each in precise:
            each._wrap_overrides = {"mixed_precision": None}
        individually = functools.partial(_wrap_module_cls_individually, module_classes=tuple({type(m) for m in precise}))
        policy = functools.partial(_or_policy, policies=[policy, individually])
        _compute_in_full_precision(precise)
    _recursive_wrap(module, policy, wrapper_class, ignored_modules, ignored_params, only_wrap_children=True, **options)
    for each in precise:
        del each._wrap_overrides


def _precise_modules(module, ignored_modules, mixed_precision):
    """Modules of the classes that mixed precision leaves out."""
    if mixed_precision is None:
        return []
    classes = tuple(mixed_precision._module_classes_to_ignore or ())
    found = [m for m in module.modules() if isinstance(m, classes) and m not in ignored_modules and m is not module]
    _warn_on_overridden_mixed_precision({type(m) for m in found})
    return found


def _compute_in_full_precision(modules):
    """Let modules get float32 and give what they got."""
    for module in modules:
        seen = []  # dtypes of the calls that are under way

        def before(module, args, kwargs, seen=seen):
            seen.append(None)

            def cast(tensor):
                if not tensor.dtype.is_floating_point:
                    return tensor
                seen[-1] = tensor.dtype
                return tensor.to(cresset.float32)

            return tree_map_only(cresset.Tensor, cast, (args, kwargs))

        def behind(module, args, output, seen=seen):
            dtype = seen.pop() if seen else None
            if dtype is None:
                return output
            return tree_map_only(cresset.Tensor, lambda t: t.to(dtype) if t.dtype.is_floating_point else t, output)

        module.register_forward_pre_hook(before, prepend=True, with_kwargs=True)
        module.register_forward_hook(behind, always_call=True)
