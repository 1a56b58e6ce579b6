"""Which rule answers a function (with gradients) or an operator (below them) that is given a MaskedTensor."""

import functools

import cresset

from . import binary, core, reductions, unary
from .core import dense, is_masked_tensor, make


def _is_contiguous(masked, *args, **kwargs):
    if masked.layout is not cresset.strided:
        raise ValueError("MaskedTensors with sparse data do not have is_contiguous")
    return masked._data.is_contiguous(*args, **kwargs)


def _contiguous(masked, *args, **kwargs):
    return masked if _is_contiguous(masked, *args, **kwargs) else masked.clone(memory_format=kwargs.get("memory_format", cresset.contiguous_format))


def _to_dense(masked, dtype=None, *, masked_grad=None):
    data = dense(masked.get_data())
    return core.Masked.apply(data if dtype is None else data.to(dtype), dense(masked._mask))


def _to_sparse(masked, sparse_dim=None, *, layout=cresset.sparse_coo, blocksize=None, dense_dim=None):
    layout = cresset.sparse_coo if layout is None else layout
    if layout not in (cresset.sparse_coo, cresset.sparse_csr):
        raise TypeError(f"data layout of {layout} is not supported.")
    if blocksize is not None or dense_dim or sparse_dim not in (None, masked.dim()):
        raise TypeError("a MaskedTensor has no dense dimensions and no blocks")
    if masked.layout is layout:
        return masked
    mask = dense(masked._mask)
    mask = mask.to_sparse_coo().coalesce() if layout is cresset.sparse_coo else mask.to_sparse_csr()
    return core.Masked.apply(dense(masked.get_data()).sparse_mask(mask), mask)


def _where(condition, input, other):
    def parts(x):
        if is_masked_tensor(x):
            return x.get_data(), x._mask
        return x, cresset.ones((), dtype=cresset.bool, device=condition.device)

    if is_masked_tensor(condition):
        raise TypeError("the condition of where must be a plain tensor")
    (a, a_mask), (b, b_mask) = parts(input), parts(other)
    result = cresset.where(condition, a, b)
    return core.Masked.apply(result, cresset.where(condition, a_mask, b_mask).expand(result.shape))


def _any(masked, dim=None, keepdim=False):
    result = reductions.any_true(masked, dim, keepdim)  # False where nothing counts
    return make(result._data, cresset.ones_like(result._data))


def _is_any_true(masked):
    if masked.dtype != cresset.bool:
        raise ValueError(f"_is_any_true expected a boolean tensor, given: {masked.dtype}")
    return _any(masked)


def _part_of_sparse(name):
    def rule(masked):
        data = getattr(masked._data, name)()
        return make(data, getattr(masked._mask, name)() if name.endswith("values") else cresset.ones_like(data, dtype=cresset.bool))

    return rule


@functools.cache
def _functions():
    rules = {
        "is_contiguous": _is_contiguous,
        "contiguous": _contiguous,
        "to_dense": _to_dense,
        "to_sparse": _to_sparse,
        "to_sparse_coo": _to_sparse,
        "to_sparse_csr": functools.partial(_to_sparse, layout=cresset.sparse_csr),
        "where": _where,
        "_is_any_true": _is_any_true,
        **{name: _part_of_sparse(name) for name in ("_values", "values", "_indices", "indices", "crow_indices", "col_indices")},
        **reductions.RULES,
    }
    table = {}
    for name, rule in rules.items():
        for owner in (cresset, cresset.Tensor):
            if hasattr(owner, name):
                table[getattr(owner, name)] = _tensor_where if owner is cresset.Tensor and name == "where" else rule
    return table


def _tensor_where(input, condition, other):
    return _where(condition, input, other)


def function_rule(func):
    """The rule of a function, None where the operators that it calls have theirs."""
    try:
        return _functions().get(func)
    except TypeError:  # not hashable
        return None


# Operators


def _both(op, *args, **kwargs):
    """`op` of the data, and of the masks; beside MaskedTensors, all of a plain tensor counts."""

    def pick(part):
        def one(x):
            if is_masked_tensor(x):
                return getattr(x, part)
            if part == "_mask" and op.__name__ in _JOINS and isinstance(x, cresset.Tensor):
                return cresset.ones_like(x, dtype=cresset.bool)
            return [one(y) for y in x] if isinstance(x, (list, tuple)) else x

        return [one(x) for x in args], {k: one(v) for k, v in kwargs.items()}

    a, k = pick("_data")
    data = op(*a, **k)
    a, k = pick("_mask")
    mask = op(*a, **k)
    if isinstance(data, (list, tuple)):
        return type(data)(map(make, data, mask))
    return make(data, mask)


def _index_put(op, target, indices, values, accumulate=False):
    if not is_masked_tensor(values) and not is_masked_tensor(target):
        raise TypeError("the indices of index_put must be plain tensors")
    data, mask = (target._data, target._mask) if is_masked_tensor(target) else (target, cresset.zeros_like(target, dtype=cresset.bool))
    new, kept = (values._data, values._mask) if is_masked_tensor(values) else (values, cresset.ones_like(values, dtype=cresset.bool))
    data = op(data, indices, new.masked_fill(~kept, 0) if accumulate else new, accumulate)
    if accumulate:
        mask = mask | (op(cresset.zeros_like(mask, dtype=cresset.float32), indices, kept.to(cresset.float32), True) != 0)
    else:
        mask = op(mask, indices, kept, False)
    return make(data, mask)


def _summed(op, *args, **kwargs):
    """`_both` for operators that add elements up, which bools are not: a sum counts where one of its masks does."""
    masked = args[0]
    data = op(masked._data, *args[1:], **kwargs)
    return make(data, op(masked._mask.to(cresset.float32), *args[1:], **kwargs) != 0)


def _on_data(op, masked, *args, **kwargs):
    return make(op(masked._data, *args, **kwargs), masked._mask)


def _softmax(op, masked, dim, half_to_float=False):
    return make(op(masked._data.masked_fill(~masked._mask, -float("inf")), dim, half_to_float), masked._mask)


def _softmax_backward(op, grad, output, dim, dtype):
    if not core._masks_match(grad, output):
        raise ValueError("Input masks must match. If you need support for this, please open an issue on Github.")
    mask = (output if is_masked_tensor(output) else grad)._mask
    plain = [core.to_tensor(x, 0) if is_masked_tensor(x) else x for x in (grad, output)]
    return make(op(*plain, dim, dtype), mask)


def _item(op, masked):
    if not masked._mask.any():
        raise ValueError("__torch_dispatch__, aten._local_scalar_dense: expected a mask tensor")
    return op(masked._data)


def _copy(op, target, source, non_blocking=False):
    if not is_masked_tensor(target):
        raise TypeError("the elements that a mask leaves out cannot be written into a plain tensor")
    source = core.values(source._data) if is_masked_tensor(source) else source
    core.values(target._data).copy_(source, non_blocking)
    return target


def _reduction(name):
    return lambda op, *args, **kwargs: reductions.RULES[name](*args, **kwargs)


_PASSED = (
    "select", "transpose", "t", "split", "split_with_sizes", "slice", "slice_backward", "select_backward", "index", "expand", "view", "_unsafe_view",
    "reshape", "_reshape_alias", "cat", "unsqueeze", "unfold", "im2col", "stack", "permute", "squeeze", "unbind", "chunk", "narrow", "flatten",
    "unflatten", "repeat", "roll", "flip", "diagonal", "movedim", "alias", "as_strided", "expand_as", "view_as",
)  # fmt: skip
_JOINS = ("cat.default", "stack.default")
_DATA_ONLY = ("ones_like", "zeros_like", "empty_like", "full_like", "_to_copy", "_to_dense", "new_empty_strided")


@functools.cache
def _operators():
    table = {
        **dict.fromkeys(_PASSED, _both),
        **dict.fromkeys(("unfold_backward", "col2im"), _summed),
        **dict.fromkeys(_DATA_ONLY, _on_data),
        **dict.fromkeys((*unary.UNARY_NAMES, "isfinite", "isreal"), unary.apply),
        **dict.fromkeys(unary.INPLACE_UNARY_NAMES, unary.apply_),
        **dict.fromkeys((*binary.BINARY_NAMES, "rsub"), binary.apply),
        **dict.fromkeys(binary.INPLACE_BINARY_NAMES, binary.apply_),
        **{name: _reduction(name) for name in reductions.RULES},
        "index_put": _index_put,
        "clone": _clone,
        "detach": _both,
        "_softmax": _softmax,
        "_log_softmax": _softmax,
        "_softmax_backward_data": _softmax_backward,
        "_local_scalar_dense": _item,
        "copy_": _copy,
        "new_zeros": lambda op, masked, *args, **kwargs: op(masked._data, *args, **kwargs),  # plain: what is written into it brings its mask
        "where": lambda op, *args: _where(*args),
        "layout": lambda op, masked: masked._data.layout,
        "is_same_size": lambda op, a, b: a.shape == b.shape,
        "any": lambda op, *args: _any(*args),
        "_is_any_true": lambda op, masked: _is_any_true(masked),
    }
    return table


def _clone(op, masked, *args, **kwargs):
    return make(masked._data.clone(*args, **kwargs), masked._mask.clone(*args, **kwargs))


def operator_rule(func):
    """The rule of an operator: a function of (its overload, its arguments). None where it has none."""
    return _operators().get(func.__name__.partition(".")[0]) if func.namespace in ("aten", "prim", "cresset") else None


core._rules.update(function=function_rule, operator=operator_rule)
