"""What functions that change modules in place (`_composable`) keep with a module."""

__all__ = []

_STATES = "_composable_states"  # in a module's __dict__: name of the function -> state


class _State:
    """What a function keeps with a module: any attributes."""


def _insert_module_state(module, name, state):
    """Keep the state of a function; one name has one state."""
    states = module.__dict__.setdefault(_STATES, {})
    assert name not in states, f"Inserting {module} more than once."
    states[name] = state


def _get_module_state(module, name=None):
    """The state that a function keeps with a module, without a name the only one or the first, or None."""
    states = module.__dict__.get(_STATES, {})
    return next(iter(states.values()), None) if name is None else states.get(name)
