"""Batches cut into microbatches, and results put together again."""

import cresset
from cresset.utils import _pytree as pytree

__all__ = ["TensorChunkSpec", "merge_chunks", "split_args_kwargs_into_chunks"]


class _CustomReducer:
    """How values that are no batches come together: `reduce_fn` of what there is and the next, beginning with `init_value`."""

    def __init__(self, init_value, reduce_fn):
        self.init_value, self.reduce_fn = init_value, reduce_fn


class _LossReducer(_CustomReducer):
    """That of losses."""


sum_reducer = _LossReducer(0.0, lambda a, b: a + b)


class TensorChunkSpec:
    """A tensor is cut along dimension `split_dim`, and put together along it."""

    def __init__(self, split_dim):
        self.split_dim = split_dim

    def __repr__(self):
        return f"{type(self).__module__}.{type(self).__name__}({self.split_dim})"

    def __str__(self):
        return f"TensorChunkSpec({self.split_dim})"

    @staticmethod
    def from_tuple(chunk_dims):
        """Specifications of positional arguments by dimensions."""
        return pytree.tree_map(TensorChunkSpec, chunk_dims)

    @staticmethod
    def from_dict(chunk_dims):
        """Specifications of keyword arguments by dimensions."""
        return pytree.tree_map(TensorChunkSpec, chunk_dims)


class _Replicate:
    """Every microbatch gets the value."""


def _split_tensor(tensor, spec, num_chunks):
    if tensor.size(spec.split_dim) < num_chunks:
        raise ValueError(f"Tensor size on chunking dimension is {tensor.size(spec.split_dim)}, smaller than the number of chunks {num_chunks}.")
    return cresset.tensor_split(tensor, num_chunks, spec.split_dim)


def _is_spec(value):
    return isinstance(value, (TensorChunkSpec, _Replicate, _CustomReducer)) or value is _Replicate


def _default_specs(value):
    return pytree.tree_map(lambda leaf: TensorChunkSpec(0) if isinstance(leaf, cresset.Tensor) else _Replicate(), value)


def _split_value(value, spec, num_chunks):
    """The `num_chunks` parts of nested containers of tensors and other values."""
    leaves, form = pytree.tree_flatten(value)
    specs, spec_form = pytree.tree_flatten(spec, is_leaf=_is_spec)
    if len(specs) == 1 and len(leaves) != 1 and _is_spec(spec):
        specs = specs * len(leaves)
    if len(specs) != len(leaves):
        raise ValueError(f"Argument value {value} did not have the same number of values as as chunk spec {spec}")
    parts = []
    for leaf, how in zip(leaves, specs):
        if isinstance(how, _Replicate) or how is _Replicate or not isinstance(leaf, cresset.Tensor):
            parts.append([leaf] * num_chunks)
        elif isinstance(how, TensorChunkSpec):
            parts.append(_split_tensor(leaf, how, num_chunks))
        else:
            raise TypeError(f"Unrecognized chunk spec: {how}")
    return [pytree.tree_unflatten([part[n] for part in parts], form) for n in range(num_chunks)]


def split_args_kwargs_into_chunks(args, kwargs, chunks, args_chunk_spec=None, kwargs_chunk_spec=None):
    """(list of tuples, list of dictionaries): the arguments of `chunks` microbatches. Tensors are cut along dimension 0, or as the specifications say."""
    kwargs = {} if kwargs is None else kwargs
    args_split = _split_value(args, _default_specs(args) if args_chunk_spec is None else args_chunk_spec, chunks)
    kwargs_split = _split_value(kwargs, _default_specs(kwargs) if kwargs_chunk_spec is None else kwargs_chunk_spec, chunks)
    return [tuple(a) for a in args_split], kwargs_split


def _merged(leaves, spec):
    if isinstance(spec, TensorChunkSpec):
        if not all(isinstance(leaf, cresset.Tensor) for leaf in leaves):
            raise ValueError(f"merge_chunks: tensors were required by {spec}; {type(leaves[0]).__name__} was given.")
        return cresset.cat(leaves, dim=spec.split_dim)
    if isinstance(spec, _CustomReducer):
        value = spec.init_value
        for leaf in leaves:
            value = spec.reduce_fn(value, leaf)
        return value
    return leaves[0]


def merge_chunks(chunks, chunk_spec):
    """The value of a batch of those of its microbatches. Without a specification tensors are put together along dimension 0, and of other values
    the first is taken."""
    flat, form = zip(*map(pytree.tree_flatten, chunks))
    if any(f != form[0] for f in form[1:]):
        raise ValueError(f"merge_chunks: values of one form were required; {form} were given.")
    if chunk_spec is None:
        specs = pytree.tree_flatten(_default_specs(chunks[0]), is_leaf=_is_spec)[0]
    else:
        specs = pytree.tree_flatten(chunk_spec, is_leaf=_is_spec)[0]
        if len(specs) == 1:
            specs = specs * len(flat[0])
    if len(specs) != len(flat[0]):
        raise ValueError(f"Chunk {chunks[0]} did not match chunk spec {chunk_spec}")
    return pytree.tree_unflatten([_merged([leaves[n] for leaves in flat], spec) for n, spec in enumerate(specs)], form[0])
