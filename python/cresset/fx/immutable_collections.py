"""Lists and dictionaries that refuse to change: what a Node holds in its arguments, so that its users stay known."""

from ..utils import _pytree as pytree

__all__ = ["immutable_list", "immutable_dict"]


def _no_mutation(self, *args, **kwargs):
    raise TypeError(
        f"{type(self).__name__!r} object does not support mutation. If you are attempting to modify the kwargs or args of a torch.fx.Node object,\n"
        "instead create a new copy of it and assign the copy to the node:\n\n"
        "    new_args = ...  # copy and mutate args\n"
        "    node.args = new_args"
    )


def _refusing(base, names):
    return {name: _no_mutation for name in names if hasattr(base, name)}


class immutable_list(list):
    """A list whose changing methods raise TypeError; hashable when its items are."""

    locals().update(
        _refusing(list, "__delitem__ __iadd__ __imul__ __setitem__ append clear extend insert pop remove reverse sort".split())
    )

    def __hash__(self):
        return hash(tuple(self))

    def __reduce__(self):
        return type(self), (tuple(self),)


class immutable_dict(dict):
    """A dict whose changing methods raise TypeError; hashable when its items are."""

    locals().update(_refusing(dict, "__delitem__ __ior__ __setitem__ clear pop popitem setdefault update".split()))

    def __hash__(self):
        return hash(frozenset(self.items()))

    def __reduce__(self):
        return type(self), (tuple(self.items()),)


def _list_with_keys(values):
    return [(pytree.SequenceKey(i), v) for i, v in enumerate(values)], None


def _dict_with_keys(d):
    return [(pytree.MappingKey(k), v) for k, v in d.items()], list(d)


def _immutable_list_flatten(values):
    return list(values), None


def _immutable_list_unflatten(values, context):
    return immutable_list(values)


def _immutable_dict_flatten(d):
    return list(d.values()), list(d)


def _immutable_dict_unflatten(values, context):
    return immutable_dict(zip(context, values))


pytree.register_pytree_node(
    immutable_list,
    _immutable_list_flatten,
    _immutable_list_unflatten,
    serialized_type_name="torch.fx.immutable_collections.immutable_list",
    flatten_with_keys_fn=_list_with_keys,
)
pytree.register_pytree_node(
    immutable_dict,
    _immutable_dict_flatten,
    _immutable_dict_unflatten,
    serialized_type_name="torch.fx.immutable_collections.immutable_dict",
    flatten_with_keys_fn=_dict_with_keys,
)
