"""Running results of an associative function."""

import cresset
from cresset import _rare_functions
from cresset.utils import _pytree as pytree

from .scan import _scanned

__all__ = ["associative_scan"]


def _prefixes(combine, parts):
    """Running results along dimension 0, each a list of tensors: those of pairs are calculated first, and give every second one."""
    size = parts[0].shape[0]
    if size < 2:
        return parts
    odd = _prefixes(combine, combine([p[: size - 1 : 2] for p in parts], [p[1::2] for p in parts]))
    even = [p[:1] for p in parts]
    if size > 2:
        rest = combine([o[: (size - 1) // 2] for o in odd], [p[2::2] for p in parts])
        even = [cresset.cat([e, r]) for e, r in zip(even, rest)]
    pairs = [cresset.stack([e[: size // 2], o], 1).flatten(0, 1) for e, o in zip(even, odd)]
    return [cresset.cat([pair, e[-1:]]) for pair, e in zip(pairs, even)] if size % 2 else pairs


def associative_scan(combine_fn, xs, dim, reverse=False, combine_mode="pointwise"):
    """x0, combine_fn(x0, x1), combine_fn(combine_fn(x0, x1), x2), … along `dim` of tensors or a structure of tensors, from the last one if `reverse`.

    combine_fn is associative. It is called for many pairs at once, under vmap, some 2 log2(n) times; both values of `combine_mode` ("pointwise", "generic")
    give the same. Programs of `export` and `make_fx` hold one step of "pointwise", for any size, and all of "generic". ValueError for other arguments.
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    leaves, spec = _scanned("associative_scan", xs, dim, ValueError)
    if not leaves:
        raise ValueError("associative_scan: xs must hold a tensor or more.")

    def of_pair(first, second):
        result = pytree.tree_leaves(combine_fn(pytree.tree_unflatten(first, spec), pytree.tree_unflatten(second, spec)))
        if len(result) != len(leaves):
            raise RuntimeError(f"associative_scan: combine_fn must give as many tensors as xs has, {len(leaves)}; got {len(result)}.")
        return result

    if reverse:
        leaves = [leaf.flip(0) for leaf in leaves]
    recorders = _rare_functions._recorders
    if recorders is not None and combine_mode == "pointwise":
        results = recorders["associative_scan"](of_pair, leaves)
    else:
        results = _prefixes(cresset.vmap(of_pair), leaves)
    if reverse:
        results = [r.flip(0) for r in results]
    return pytree.tree_unflatten([r.movedim(0, dim) for r in results], spec)


def _fake_associative_scan(combine_fn, xs, dim, reverse=False):
    """`associative_scan` as a loop, one element after the other, with a function of elements."""
    leaves, spec = _scanned("associative_scan", xs, dim, ValueError)
    parts = [pytree.tree_unflatten(list(elements), spec) for elements in zip(*(leaf.unbind(0) for leaf in (x.flip(0) if reverse else x for x in leaves)))]
    results = parts[:1]
    for part in parts[1:]:
        results.append(combine_fn(results[-1], part))
    stacked = pytree.tree_map(lambda *values: cresset.stack(values[::-1] if reverse else values), *results)
    return pytree.tree_map(lambda r: r.movedim(0, dim), stacked)
