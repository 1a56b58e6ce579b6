"""Marks of what will stay as it is."""

import textwrap

_BACK_COMPAT_OBJECTS = {}
_MARKED_WITH_COMPATIBILITY = {}


def compatibility(is_backward_compatible):
    """Decorator that says in the docstring whether a function or class will keep its interface."""

    def mark(fn):
        text = "Backwards-compatibility for this API is guaranteed." if is_backward_compatible else (
            "This API is experimental and is *NOT* backward-compatible."
        )
        kind = "note" if is_backward_compatible else "warning"
        fn.__doc__ = textwrap.dedent(fn.__doc__ or "") + f"\n.. {kind}::\n    {text}\n"
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS.setdefault(fn)
        _MARKED_WITH_COMPATIBILITY.setdefault(fn)
        return fn

    return mark
