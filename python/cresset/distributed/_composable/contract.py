"""The contract of functions that change modules in place: once a module, and names stay."""

import functools

from cresset.nn import Module

from .._composable_state import _get_module_state, _insert_module_state, _State

__all__ = ["contract"]

_REGISTRY = "_composable_registry"  # in a module's __dict__: name of the function -> RegistryItem


class RegistryItem:
    """One call of such a function; the modules of a call share it."""


def _get_registry(module):
    """Name of the function -> RegistryItem of all that were applied to a module; None where none was."""
    return module.__dict__.get(_REGISTRY)


def _get_root_modules(modules):
    """Those of the modules that lie in no other of them."""
    below = {child for module in modules for child in module.modules() if child is not module}
    return [module for module in modules if module not in below]


def _names(modules):
    """What stays: names of parameters, buffers and modules, each list with its word for errors."""
    lists = {"parameters": "named_parameters", "buffers": "named_buffers", "modules": "named_modules"}
    return {what: [[name for name, _ in getattr(m, method)()] for m in modules] for what, method in lists.items()}


def _check_names(function, before, after):
    for what, names in before.items():
        if names != after[what]:
            old, new = ({n for each in names for n in each} for names in (names, after[what]))
            raise RuntimeError(
                f"Checking {what}: Composable distributed API implementations cannot modify FQNs. {function.__name__}: "
                f"{sorted(old - new)} are gone, {sorted(new - old)} are new."
            )


def contract(state_cls=_State):
    """Decorator for a function whose first argument is a module or a list of modules, which it changes and returns.

    `function.state(module)` is an object of `state_cls` for what the function keeps with a module; the modules of a list share it. AssertionError where the
    function has been applied to a module before, RuntimeError where names of parameters, buffers or modules are other ones afterwards.
    """

    def decorate(function):
        @functools.wraps(function)
        def apply(module, *args, **kwargs):
            modules = [module] if isinstance(module, Module) else list(module)
            for each in modules:
                assert function.__name__ not in (_get_registry(each) or ()), (
                    "Each distinct composable distributed API can only be applied to a module once. "
                    f"{function.__name__} has already been applied to the following module:\n{each}"
                )
            state, item, roots = state_cls(), RegistryItem(), _get_root_modules(modules)
            for each in modules:
                _insert_module_state(each, function.__name__, state)
                each.__dict__.setdefault(_REGISTRY, {})[function.__name__] = item
            before = _names(roots)
            changed = function(module, *args, **kwargs)
            if changed is not None:
                others = [changed] if isinstance(changed, Module) else list(changed)
                assert len(others) == len(modules), f"{function.__name__}: as many modules as it was given were required of it; {len(others)} came for {len(modules)}."
                roots = [others[n] for n, each in enumerate(modules) if each in roots]
            _check_names(function, before, _names(roots))
            return changed

        apply.state = lambda module: _get_module_state(module, function.__name__)
        return apply

    return decorate
