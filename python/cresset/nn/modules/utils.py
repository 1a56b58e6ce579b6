"""Sizes given once for every dimension, under the names that modules of others import."""

from itertools import repeat

__all__ = ["_ntuple", "_pair", "_quadruple", "_reverse_repeat_tuple", "_single", "_triple", "consume_prefix_in_state_dict_if_present"]


def _ntuple(n, name="parse"):
    def parse(value):
        return tuple(value) if hasattr(value, "__iter__") else tuple(repeat(value, n))

    parse.__name__ = name
    parse._script_form = name  # in jit._tuples
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(values, n):
    """(a, b) and 2 give (b, b, a, a): the order in which padding is written."""
    return tuple(v for v in reversed(values) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict, prefix):
    """Takes the prefix off the keys that start with it, in place (and off the versions beside them)."""
    for key in [k for k in state_dict if k.startswith(prefix)]:
        state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    for key in list(metadata or ()):
        if key and (key == prefix.rstrip(".") or key.startswith(prefix)):
            metadata[key[len(prefix) :]] = metadata.pop(key)
