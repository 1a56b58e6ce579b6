"""A batch in parts for several devices, and results joined, inside of tuples, lists and dictionaries."""

from dataclasses import fields, is_dataclass

import cresset

from . import comm

__all__ = ["scatter", "scatter_kwargs", "gather"]


def is_namedtuple(obj):
    """Is it a named tuple?"""
    return isinstance(obj, tuple) and hasattr(obj, "_fields")


def scatter(inputs, target_gpus, dim=0):
    """A tuple for each device: tensors in parts along `dim`, everything else as it is. As many as the smallest number of parts."""

    def parts(obj):
        if isinstance(obj, cresset.Tensor):
            return comm.scatter(obj, target_gpus, dim=dim)
        if is_namedtuple(obj):
            return [type(obj)(*values) for values in zip(*map(parts, obj))]
        if isinstance(obj, tuple) and obj:
            return list(zip(*map(parts, obj)))
        if isinstance(obj, list) and obj:
            return [list(values) for values in zip(*map(parts, obj))]
        if isinstance(obj, dict) and obj:
            return [type(obj)(items) for items in zip(*map(parts, obj.items()))]
        return [obj for _ in target_gpus]

    return parts(inputs)


def scatter_kwargs(inputs, kwargs, target_gpus, dim=0):
    """(positional arguments, keyword arguments) for each device; what has fewer parts is filled up with empty ones."""
    positional = scatter(inputs, target_gpus, dim) if inputs else []
    named = scatter(kwargs, target_gpus, dim) if kwargs else []
    n = max(len(positional), len(named))
    return (
        tuple([*positional, *(() for _ in range(n - len(positional)))]),
        tuple([*named, *({} for _ in range(n - len(named)))]),
    )  # fmt: skip


def gather(outputs, target_device, dim=0):
    """Results of several devices as one, on `target_device`: tensors joined along `dim` (those without dimensions stacked)."""

    def joined(values):
        first = values[0]
        if isinstance(first, cresset.Tensor):
            if first.dim() == 0 and dim == 0:
                if len(values) > 1:
                    import warnings

                    warnings.warn("Was asked to gather along dimension 0, but all input tensors were scalars; will instead unsqueeze and return a vector.", stacklevel=4)
                values = [v.reshape(1) for v in values]
            return comm.gather(values, dim, target_device)
        if first is None:
            return None
        if is_dataclass(first) and not isinstance(first, type):
            return type(first)(**{f.name: joined([getattr(v, f.name) for v in values]) for f in fields(first)})
        if isinstance(first, dict):
            if any(len(v) != len(first) for v in values):
                raise ValueError("All dicts must have the same number of keys")
            return type(first)((k, joined([v[k] for v in values])) for k in first)
        if is_namedtuple(first):
            return type(first)(*map(joined, zip(*values)))
        return type(first)(map(joined, zip(*values)))

    return joined(list(outputs))
