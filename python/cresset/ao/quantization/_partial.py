"""Constructors with some of their arguments given."""

import functools

__all__ = ["PartialWrapper", "with_args", "with_callable_args"]


class PartialWrapper:
    """A constructor with some of its arguments given, and others (`callable_args`) that are made at each call."""

    def __init__(self, p):
        self.p = p
        self.callable_args = {}

    def __call__(self, *args, **keywords):
        for name, make in self.callable_args.items():
            if name not in keywords:
                keywords[name] = make()
        return self.p(*args, **keywords)

    def __repr__(self):
        return repr(self.p) + repr(self.callable_args)

    def with_args(self, **kwargs):
        """The same with more arguments given."""
        return with_args(self, **kwargs)

    def with_callable_args(self, **kwargs):
        """The same with more arguments that are made at each call."""
        made = with_args(self)
        made.callable_args = {**self.callable_args, **kwargs}
        return made


def with_args(cls_or_self, **kwargs):
    """The constructor with these arguments given."""
    inner = cls_or_self.p if isinstance(cls_or_self, PartialWrapper) else cls_or_self
    made = PartialWrapper(functools.partial(inner, **kwargs))
    made.callable_args = dict(getattr(cls_or_self, "callable_args", {}))
    return made


def with_callable_args(cls_or_self, **kwargs):
    """The constructor with these arguments, each made at each call by what is given."""
    return with_args(cls_or_self).with_callable_args(**kwargs)


PartialWrapper.__name__ = "_PartialWrapper"
