"""vmap: a function of one example runs on all examples at once.

Inputs are wrapped as batched tensors of a new level (src/batching), the function runs, its results are unwrapped. `VmapInfo`, rules of
custom operators and of autograd Functions live here too. The steps have PyTorch's names, and the module is `_functorch.vmap` as well:
packages with containers of tensors put steps of their own in their place.
"""

import contextlib
import functools
from _thread import _local
from typing import NamedTuple

import cresset

from . import _C
from ._C import Tensor  # noqa: F401  (packages that replace steps take it, and the trees, from here)
from .utils import _pytree as pytree
from .utils._pytree import tree_flatten, tree_unflatten  # noqa: F401

__all__ = ["VmapInfo", "apply_function", "apply_rule", "level", "older", "vmap"]

_DOCS = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


class VmapInfo(NamedTuple):
    """What a vmap rule is told about the level: the number of examples, and what random operators do."""

    batch_size: int
    randomness: str


@contextlib.contextmanager
def level(batch_size, randomness="error"):
    """A level of vmap for a block; gives its number."""
    number = _C._vmap_push(batch_size, randomness)
    try:
        yield number
    finally:
        _C._vmap_pop()


class _Older(_local):
    """In how many calls of the older vmap a thread is, whose functions may read their ctx in forward."""

    depth = 0


older = _Older()


@contextlib.contextmanager
def _below(number):
    """Levels from `number` inwards taken off for a block."""
    taken = []
    while (inner := _C._vmap_innermost()) is not None and inner[0] >= number:
        taken.append(inner)
        _C._vmap_pop()
    try:
        yield
    finally:
        for _, size, randomness in reversed(taken):
            _C._vmap_push(size, randomness)


def _get_name(func):
    return getattr(func, "__name__", None) or repr(func)


def _broadcast_to_and_flatten(prefix, spec, is_leaf=None):
    """A tree of dimensions as one entry for each leaf of `spec`; None when it does not fit. A leaf stands for everything below it."""
    leaves, structure = pytree.tree_flatten(prefix, is_leaf=is_leaf)
    if structure.is_leaf():
        return [prefix] * spec.num_leaves
    if spec.is_leaf() or structure.type != spec.type or structure.context != spec.context:
        return None
    children, parts, at = structure.children_specs, spec.children_specs, 0
    if len(children) != len(parts):
        return None
    result = []
    for child, part in zip(children, parts):
        sub = pytree.tree_unflatten(leaves[at : at + child.num_leaves], child)
        at += child.num_leaves
        spread = _broadcast_to_and_flatten(sub, part, is_leaf)
        if spread is None:
            return None
        result += spread
    return result


def _process_batched_inputs(in_dims, args, func):
    """(batch size, dimension of each leaf, leaves, structure) of the arguments."""
    name = _get_name(func)
    call = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(f"{call}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: {type(in_dims)}.")
    if len(args) == 0:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function with no inputs. The "
            "latter is unsupported."
        )
    leaves, spec = pytree.tree_flatten(args)
    dims = _broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{call}: in_dims is not compatible with the structure of `inputs`. in_dims has structure {pytree.tree_flatten(in_dims)[1]} but inputs "
            f"has structure {spec}."
        )
    sizes = []
    for i, (leaf, dim) in enumerate(zip(leaves, dims)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(f"{call}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or None.")
        if not isinstance(leaf, cresset.Tensor):
            raise ValueError(
                f"{call}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over non-Tensor arguments, please use "
                "None as the respective in_dim"
            )
        rank = leaf.dim()
        if not -rank <= dim < rank:
            raise ValueError(
                f"{call}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {rank} so expected in_dim to satisfy "
                f"-{rank} <= in_dim < {rank}."
            )
        dims[i] = dim % rank
        sizes.append(leaf.shape[dims[i]])
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if len(set(sizes)) != 1:
        raise ValueError(f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped dimension")
    return sizes[0], dims, leaves, spec


def _output_dims(func, out_dims, outputs, spec):
    """The dimension of each output leaf."""
    name = _get_name(func)

    def bad_type():
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of ints representing where in the "
            "outputs the vmapped dimension should appear."
        )

    if not all(d is None or isinstance(d, int) for d in pytree.tree_leaves(out_dims)):
        bad_type()
    if isinstance(out_dims, int) or out_dims is None:
        return [out_dims] * len(outputs)
    single = len(outputs) == 1 and spec.is_leaf()
    if single and isinstance(out_dims, tuple) and len(out_dims) == 1:
        return [out_dims[0]]
    dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of `outputs`. out_dims has structure "
            f"{pytree.tree_flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    return dims


def _maybe_remove_batch_dim(name, value, number, batch_size, dim):
    """An output without the level, the examples at `dim`; ValueError for what is no tensor, and for a batched tensor where dim is None."""
    if dim is None:
        if isinstance(value, cresset.Tensor) and _C._is_batched_at(value, number):
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return value
    if not isinstance(value, cresset.Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(value)}. Did you mean to set out_dims= to None for output?"
        )
    return _C._remove_batch_dim(value, number, batch_size, dim)


def _add_batch_dim(tensor, dim, number):
    """The tensor as one of the examples along dim, at the level with this number."""
    return _C._add_batch_dim(tensor, dim, number)


def _remove_batch_dim(tensor, number, batch_size, dim):
    """The tensor without the level, its examples along dim; a tensor that is not batched there is repeated."""
    return _C._remove_batch_dim(tensor, number, batch_size, dim)


def _create_batched_inputs(dims, leaves, number, spec):
    """The arguments of the function: leaves with a dimension are batched."""
    return pytree.tree_unflatten([leaf if dim is None else _add_batch_dim(leaf, dim, number) for leaf, dim in zip(leaves, dims)], spec)


def _unwrap_batched(result, out_dims, number, batch_size, func):
    """What the function returned, without the level."""
    outputs, spec = pytree.tree_flatten(result)
    wanted, name = _output_dims(func, out_dims, outputs, spec), _get_name(func)
    return pytree.tree_unflatten([_maybe_remove_batch_dim(name, v, number, batch_size, d) for v, d in zip(outputs, wanted)], spec)


def _run(func, leaves, dims, spec, batch_size, out_dims, randomness, kwargs):
    """The results of one pass over all examples."""
    with level(batch_size, randomness) as number:
        return _unwrap_batched(func(*_create_batched_inputs(dims, leaves, number, spec), **kwargs), out_dims, number, batch_size, func)


def _run_in_chunks(func, leaves, dims, spec, batch_size, out_dims, randomness, kwargs, chunk_size):
    """The same, at most chunk_size examples at a time."""
    state = cresset.get_rng_state() if randomness == "same" else None
    parts = []
    for start in range(0, batch_size, chunk_size):
        if state is not None:
            cresset.set_rng_state(state)
        count = min(chunk_size, batch_size - start)
        piece = [leaf if dim is None else leaf.narrow(dim, start, count) for leaf, dim in zip(leaves, dims)]
        parts.append(pytree.tree_flatten(_run(func, piece, dims, spec, count, out_dims, randomness, kwargs)))
    outputs, out_spec = parts[0]
    columns = zip(*(values for values, _ in parts))
    wanted = _output_dims(func, out_dims, outputs, out_spec)
    return pytree.tree_unflatten([column[0] if dim is None else cresset.cat(column, dim) for column, dim in zip(columns, wanted)], out_spec)


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """A function that runs `func`, a function of one example, on a batch of examples.

    in_dims: which dimension of each input holds the examples: an int for all, or a tuple (nested like the inputs) with None for inputs
    that all examples share. out_dims: where the dimension goes in the outputs. randomness: what random operators do: "error",
    "same" values for all examples, or "different" ones. chunk_size: run at most so many examples at a time. Keyword arguments are shared.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func, assigned=[a for a in functools.WRAPPER_ASSIGNMENTS if hasattr(func, a)])
    def wrapped(*args, **kwargs):
        batch_size, dims, leaves, spec = _process_batched_inputs(in_dims, args, func)
        run = _run if chunk_size is None or batch_size <= chunk_size else functools.partial(_run_in_chunks, chunk_size=chunk_size)
        return run(func, leaves, dims, spec, batch_size, out_dims, randomness, kwargs)

    return wrapped


# --- rules written in Python --------------------------------------------------------------------------------------------------


def _innermost_of(values):
    """(level, batch size) of the innermost vmap among tensors."""
    number, size = 0, 0
    for v in values:
        if isinstance(v, cresset.Tensor) and _C._is_batched(v):
            value, dim, at = _C._batch_parts(v)
            if at > number:
                number, size = at, value.shape[dim]
    return number, size


def _randomness_of(number):
    """What random operators do at a level that may not be the innermost one."""
    with _below(number + 1):
        inner = _C._vmap_innermost()
        return inner[2] if inner is not None else "error"


def _take_off(tree, number):
    """(tree without the level, tree of its dimensions, None where there is none)."""
    leaves, spec = pytree.tree_flatten(tree)
    plain, dims = [], []
    for leaf in leaves:
        dim = None
        if isinstance(leaf, cresset.Tensor) and _C._is_batched(leaf):
            value, at, found = _C._batch_parts(leaf)
            if found == number:
                leaf, dim = value, at
        plain.append(leaf)
        dims.append(dim)
    return pytree.tree_unflatten(plain, spec), pytree.tree_unflatten(dims, spec)


def apply_rule(rule, args, kwargs=None):
    """Run a vmap rule(info, in_dims, *args) → (output, out_dims) for the innermost level among the arguments."""
    kwargs = kwargs or {}
    number, batch_size = _innermost_of(pytree.tree_leaves((args, kwargs)))
    info = VmapInfo(batch_size, _randomness_of(number))
    with _below(number):
        plain, in_dims = _take_off(tuple(args), number)
        plain_kwargs, _ = _take_off(kwargs, number)
        returned = rule(info, in_dims, *plain, **plain_kwargs)
    if not (isinstance(returned, tuple) and len(returned) == 2):
        raise RuntimeError(
            "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible with the output. Got a "
            f"{_described(returned)} instead"
        )
    output, out_dims = returned
    leaves, spec = pytree.tree_flatten(output)
    dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None and isinstance(out_dims, (tuple, list)) and isinstance(output, (tuple, list)) and len(out_dims) == len(output):
        dims = list(out_dims)  # a list where the output has a tuple
    if dims is None:
        given = pytree.tree_flatten(out_dims, is_leaf=lambda value: value is None)[1]
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
            f"out_dims={out_dims} to be compatible with the structure of `output`. out_dims has structure {given} but output has structure "
            f"{spec}. For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"
        )
    wrapped = [
        _C._add_batch_dim(leaf, dim, number) if dim is not None and isinstance(leaf, cresset.Tensor) else leaf for leaf, dim in zip(leaves, dims)
    ]
    return pytree.tree_unflatten(wrapped, spec)


def _described(value):
    return f"tuple with {len(value)} elements" if isinstance(value, tuple) else type(value)


def apply_function(cls, args):
    """cls.apply(*args) for an autograd Function when some argument is batched."""
    from .autograd.function import _NEEDS_SETUP_CONTEXT, Function

    if cls.setup_context is Function.setup_context:
        if not older.depth:
            raise RuntimeError(_NEEDS_SETUP_CONTEXT)
        return apply_rule(functools.partial(_generated_rule, cls), args)
    own_rule = cls.vmap is not Function.vmap
    if cls.generate_vmap_rule and own_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap staticmethod. Please set "
            f"generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid ambiguity. {_DOCS}"
        )
    if not cls.generate_vmap_rule and not own_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement the vmap staticmethod or set "
            f"generate_vmap_rule=True. {_DOCS}"
        )
    return apply_rule(cls.vmap if own_rule else functools.partial(_generated_rule, cls), args)


class _BatchContext:
    """The ctx of a generated rule: what the function saves is batched, what the real ctx saves is not."""

    def __init__(self, ctx, number):
        self.__dict__.update(_ctx=ctx, _number=number, _saved_dims=(), _forward_dims=(), needs_input_grad=ctx.needs_input_grad)

    def save_for_backward(self, *tensors):
        plain, dims = _take_off(tensors, self._number)
        self.__dict__["_saved_dims"] = dims
        self._ctx.save_for_backward(*plain)

    def save_for_forward(self, *tensors):
        plain, dims = _take_off(tensors, self._number)
        self.__dict__["_forward_dims"] = dims
        self._ctx.save_for_forward(*plain)

    def mark_dirty(self, *tensors):
        self.__dict__["_dirty"] = tensors

    def mark_non_differentiable(self, *tensors):
        self.__dict__["_non_differentiable"] = tensors

    def set_materialize_grads(self, value):
        self._ctx.set_materialize_grads(value)

    def _pass_marks(self, inputs, outputs):
        """Tell the real ctx of inputs and outputs, pairs of the plain and the batched ones, what this one was told."""

        def own(pair, marks):
            return [t for t, b in zip(*pair, strict=True) if any(b is m for m in self.__dict__.get(marks, ()))]

        if dirty := own(inputs, "_dirty"):
            self._ctx.mark_dirty(*dirty)
        if constant := own(outputs, "_non_differentiable"):
            self._ctx.mark_non_differentiable(*constant)

    def _put_on(self, tensors, dims):
        return tuple(t if d is None else _C._add_batch_dim(t, d, self._number) for t, d in zip(tensors, dims, strict=True))

    @property
    def saved_for_forward(self):
        plain = self._ctx.saved_for_forward
        return None if plain is None else self._put_on(plain, self._forward_dims)

    @property
    def saved_tensors(self):
        saved = self.saved_for_forward  # until jvp has ended it stands before what is saved for backward
        return self._put_on(self._ctx.saved_tensors, self._saved_dims) if saved is None else saved


def _wrap(values, dims, number):
    """Tensors of a level, also those in trees, with their examples at these dimensions (None: alike for all)."""

    def wrap(value, dim):
        if isinstance(value, cresset.Tensor):
            return value if dim is None else _C._add_batch_dim(value, dim, number)
        if value is None or dim is None or isinstance(dim, int):
            return value
        leaves, spec = pytree.tree_flatten(value)
        return pytree.tree_unflatten([wrap(leaf, d) for leaf, d in zip(leaves, _broadcast_to_and_flatten(dim, spec), strict=True)], spec)

    return tuple(wrap(v, d) for v, d in zip(values, dims, strict=True))


def _unwrap(values, number, batch_size, dims=None):
    """Tensors without the level, examples first; with `dims` at those dimensions, summed over the examples where it is None."""
    plain = []
    for i, v in enumerate(values):
        if not isinstance(v, cresset.Tensor):
            plain.append(v)
        elif dims is None:
            plain.append(_C._remove_batch_dim(v, number, batch_size, 0))
        elif dims[i] is None:
            plain.append(_C._remove_batch_dim(v, number, batch_size, 0).sum(0) if _C._is_batched_at(v, number) else v * batch_size)
        else:
            plain.append(_C._remove_batch_dim(v, number, batch_size, dims[i]))
    return tuple(plain)


def _as_tuple(values):
    return values if isinstance(values, tuple) else (values,)


def _forward_with_ctx(cls, info, in_dims, results):
    """The forward of such a rule for a Function whose own one takes the ctx."""

    def forward(ctx, *inputs):
        with level(*info) as number:
            inner = ctx._batch_context = _BatchContext(ctx, number)
            given = _wrap(inputs, in_dims, number)
            result = cls.forward(inner, *given)
            plain = results(_as_tuple(result), inputs, given, number)
            inner._pass_marks((inputs, given), (plain, _as_tuple(result)))
        return plain if isinstance(result, tuple) else plain[0]

    return forward


def _generated_rule(cls, info, in_dims, *args):
    """The rule of a Function with generate_vmap_rule: a Function whose forward, backward and jvp are those of cls under vmap."""
    from .autograd.function import Function

    batch_size, randomness = info
    out_dims, returned = [], []  # of each result: where its examples are, and which input it is

    def unwrap(values, number, dims=None):
        return _unwrap(values, number, batch_size, dims)

    def results(values, inputs, given, number):
        # An input that comes back as it was, or changed in place, stays the input, with the examples where it has them.
        returned[:] = [next((i for i, g in enumerate(given) if g is v and in_dims[i] is not None), None) for v in values]
        plain = list(unwrap(values, number))
        out_dims[:] = [0 if isinstance(v, cresset.Tensor) else None for v in plain]
        for k, i in enumerate(returned):
            if i is not None:
                plain[k], out_dims[k] = inputs[i], in_dims[i]
        return tuple(plain)

    class Generated(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(*inputs):
            with level(batch_size, randomness) as number:
                given = _wrap(inputs, in_dims, number)
                result = cls.forward(*given)
                plain = results(_as_tuple(result), inputs, given, number)
            return plain if isinstance(result, tuple) else plain[0]

        @staticmethod
        def setup_context(ctx, inputs, output):
            with level(batch_size, randomness) as number:
                inner = ctx._batch_context = _BatchContext(ctx, number)
                outputs = _as_tuple(output)
                given = _wrap(inputs, in_dims, number)
                wrapped = tuple(w if i is None else given[i] for w, i in zip(_wrap(outputs, out_dims, number), returned))
                cls.setup_context(inner, given, wrapped if isinstance(output, tuple) else wrapped[0])
                inner._pass_marks((inputs, given), (outputs, wrapped))

        @staticmethod
        def backward(ctx, *grads):
            with level(batch_size, randomness) as number:
                wrapped = tuple(g if g is None or d is None else _C._add_batch_dim(g, d, number) for g, d in zip(grads, out_dims))
                inner = ctx._batch_context
                inner.__dict__.update(_number=number, needs_input_grad=ctx.needs_input_grad)
                return unwrap(_as_tuple(cls._resolve_backward()(inner, *wrapped)), number, in_dims)

        @staticmethod
        def jvp(ctx, *tangents):
            with level(batch_size, randomness) as number:
                ctx._batch_context.__dict__["_number"] = number
                given = _wrap(tangents, in_dims, number)
                result = cls.jvp(ctx._batch_context, *given)
                plain = list(unwrap(_as_tuple(result), number, [d or 0 for d in out_dims]))
                for k, v in enumerate(_as_tuple(result)):  # a tangent changed in place stays that tensor
                    plain[k] = next((t for t, g, d in zip(tangents, given, in_dims) if g is v and g is not t and d == out_dims[k]), plain[k])
            return tuple(plain) if isinstance(result, tuple) else plain[0]

    if cls.setup_context is Function.setup_context:
        Generated.forward = staticmethod(_forward_with_ctx(cls, info, in_dims, results))
        Generated.setup_context = staticmethod(Function.setup_context)
    Generated.__name__ = f"Vmapped{cls.__name__}"
    if cls.jvp is Function.jvp:
        Generated.jvp = Function.jvp
    output = Generated.apply(*args)
    return output, tuple(out_dims) if isinstance(output, tuple) else out_dims[0]
