"""Trees of arguments: whether two are alike by a rule of one's own, and keyword arguments in the order of a tree."""

__all__ = ["is_equivalent", "reorder_kwargs"]


def reorder_kwargs(user_kwargs, spec):
    """The keyword arguments in the order that they have in the tree of (args, kwargs); ValueError where they are not the same ones."""
    names = spec.children_specs[1].context
    if user_kwargs.keys() != set(names):
        raise ValueError(f"Ran into a kwarg keyword mismatch: Got the following keywords {list(user_kwargs)} but expected {names}")
    return {name: user_kwargs[name] for name in names}


def is_equivalent(spec1, spec2, equivalence_fn):
    """Whether equivalence_fn(type1, context1, type2, context2) is true for all pairs of nodes, and the trees have the same form."""
    if not equivalence_fn(spec1.type, spec1.context, spec2.type, spec2.context):
        return False
    children = spec1.children_specs, spec2.children_specs
    return len(children[0]) == len(children[1]) and all(is_equivalent(a, b, equivalence_fn) for a, b in zip(*children))
