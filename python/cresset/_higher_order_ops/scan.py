"""A function that carries values along a dimension."""

import cresset
from cresset import _rare_functions
from cresset.utils import _pytree as pytree

__all__ = ["scan"]


def _metadata(tensor):
    return tuple(tensor.shape), tensor.dtype, tensor.device


def _scanned(name, xs, dim, error):
    """(tensors of xs with the dimension in front, their structure). All are dense and have the same size along it, one or more."""
    leaves, spec = pytree.tree_flatten(xs)
    for leaf in leaves:
        if not isinstance(leaf, cresset.Tensor):
            raise error(f"{name}: all xs leaves must be tensors; got {type(leaf).__name__}.")
        if leaf.layout != cresset.strided:
            raise error("xs leaves must dense Tensors, consider using `to_dense()`")
        if not leaf.dim() or leaf.shape[dim] == 0:
            raise error("All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0")
    leaves = [leaf.movedim(dim, 0) if dim else leaf for leaf in leaves]
    if len({leaf.shape[0] for leaf in leaves}) > 1:
        raise error(f"{name}: all xs leaves must have the same size along dim {dim}; got {[leaf.shape[0] for leaf in leaves]}.")
    return leaves, spec


def in_steps(step, carried, leaves, backwards=False):
    """(the last carried tensors, all outputs stacked along the first dimension) of `step(carried, parts)` for the parts of tensors along their first one."""
    outputs, steps = [], range(leaves[0].shape[0])
    for i in reversed(steps) if backwards else steps:
        carried, output = step(carried, [leaf[i] for leaf in leaves])
        outputs.append(output)
    if backwards:
        outputs.reverse()
    return carried, pytree.tree_map(lambda *parts: cresset.stack(parts), *outputs)


def _step_of(combine_fn, carried, spec, of_xs):
    """combine_fn as a function of lists that gives a list and the outputs; it checks what combine_fn gives against what is carried at first."""
    want = [_metadata(leaf) for leaf in carried]

    def step(carried, parts):
        given = combine_fn(pytree.tree_unflatten(carried, spec), pytree.tree_unflatten(parts, of_xs))
        if not isinstance(given, (tuple, list)) or len(given) != 2:
            raise RuntimeError(f"scan: combine_fn must give the next carry and an output; got {type(given).__name__}. Return (carry, output).")
        carried, new_spec = pytree.tree_flatten(given[0])
        if len(carried) != len(want):
            raise RuntimeError(
                f"The number of leaves of the pytree of the new carry produced by the operator is {len(carried)}, but {len(want)} were required, as in init."
            )
        if new_spec != spec:
            raise RuntimeError(f"The tree structure of the new carry produced by the operator must be that of init, {spec}; got {new_spec}.")
        have = [_metadata(leaf) if isinstance(leaf, cresset.Tensor) else type(leaf) for leaf in carried]
        if have != want:
            raise RuntimeError(f"Expected init and carry to have same metadata but found: {want} and {have}")
        if not all(isinstance(leaf, cresset.Tensor) for leaf in pytree.tree_leaves(given[1])):
            raise RuntimeError("scan: the outputs of combine_fn must be tensors.")
        return carried, given[1]

    return step


def scan(combine_fn, init, xs, *, dim=0, reverse=False):
    """(the last carry, all outputs stacked) of `carry, output = combine_fn(carry, x)` for each x along `dim`, from the last one if `reverse`.

    Outputs are stacked along `dim`, or behind their last dimension where they have fewer.
    init, xs and outputs are tensors or structures of tensors; carries keep the structure, sizes, dtypes and devices of `init`. RuntimeError for others.
    Programs of `export` hold one step.
    """
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    carried, spec = pytree.tree_flatten(init)
    if not carried:
        raise RuntimeError("scan() operator requires init leaves.")
    for leaf in carried:
        if not isinstance(leaf, cresset.Tensor):
            raise RuntimeError(f"All init leaves must be a Tensor but got {leaf}")
    leaves, of_xs = _scanned("scan", xs, dim, RuntimeError)
    if not leaves:
        return init, []
    step, dim = _step_of(combine_fn, carried, spec, of_xs), dim % leaves[0].dim()
    if _rare_functions._recorders is None:
        carried, outputs = in_steps(step, carried, leaves, reverse)
    else:
        carried, outputs = _rare_functions._recorders["scan"](step, carried, [leaf.flip(0) for leaf in leaves] if reverse else leaves)
        outputs = pytree.tree_map(lambda o: o.flip(0), outputs) if reverse else outputs
    at = pytree.tree_map(lambda o: min(dim, o.dim() - 1), outputs)
    return pytree.tree_unflatten(carried, spec), pytree.tree_map(lambda o, d: o.movedim(0, d) if d else o, outputs, at)


def _fake_scan(combine_fn, init, xs=None, dim=0, reverse=False):
    """`scan`, step by step also where a program is recorded."""
    before, _rare_functions._recorders = _rare_functions._recorders, None
    try:
        return scan(combine_fn, init, [] if xs is None else xs, dim=dim, reverse=reverse)
    finally:
        _rare_functions._recorders = before
