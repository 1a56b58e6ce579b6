"""Flattening by a given structure: generated code with trees among its inputs calls it."""

from collections import namedtuple

from ..utils._pytree import TreeSpec, _structseq

__all__ = ["register_pytree_flatten_spec", "tree_flatten_spec"]

SUPPORTED_NODES = {}
SUPPORTED_NODES_EXACT_MATCH = {}


def register_pytree_flatten_spec(cls, flatten_fn_spec, flatten_fn_exact_match_spec=None):
    """flatten_fn_spec(value, spec) → the children of a value of type cls that the structure names.

    flatten_fn_exact_match_spec(value, spec) → has the value as many children as the structure?
    """
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def _deregister_pytree_flatten_spec(cls):
    """Undo register_pytree_flatten_spec."""
    del SUPPORTED_NODES[cls], SUPPORTED_NODES_EXACT_MATCH[cls]


def tree_flatten_spec(pytree, spec: TreeSpec):
    """The leaves of a tree at a structure's leaves; RuntimeError for a node whose class is not registered."""
    if spec.is_leaf():
        return [pytree]
    kind = spec.type
    if kind not in SUPPORTED_NODES:
        raise RuntimeError(
            f"{type(pytree)} does not have a flatten_fn_spec associated with it. Please register one with "
            "torch.fx._pytree.register_pytree_flatten_spec.  If you have serialized your model, make sure that any custom pytrees have been "
            "registered before loading it."
        )
    children = SUPPORTED_NODES[kind](pytree, spec)
    return [leaf for child, child_spec in zip(children, spec.children_specs) for leaf in tree_flatten_spec(child, child_spec)]


def _dict_flatten_spec(d, spec):
    return [d[k] for k in spec.context]


def _list_flatten_spec(values, spec):
    return [values[i] for i in range(spec.num_children)]


_tuple_flatten_spec = _namedtuple_flatten_spec = _list_flatten_spec

register_pytree_flatten_spec(dict, _dict_flatten_spec, lambda d, spec: list(d) == spec.context)
for _kind in (list, tuple, namedtuple, _structseq):  # the last: results with named fields
    register_pytree_flatten_spec(_kind, _list_flatten_spec, lambda v, spec: len(v) == spec.num_children)
