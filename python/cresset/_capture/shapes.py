"""Sizes of results in the words of the guards: what an operator's result measures, as an expression of the sizes of a call's inputs.

Code that decides by the size of something computed (`math.sqrt(k.size(-1))`, `if h % 2`) then needs a check of a number or two, not of all inputs'
shapes. A dimension is (expression, its value in this call), or None where no rule here says it; every rule must hold for all sizes with which the
operator does not raise.
"""

import operator

import cresset

from .values import Known, SizeVar, TensorVar

__all__ = ["Dims", "count_checks", "evaluate", "note", "of_input"]

# Results with the sizes of the first operand.
_LIKE_FIRST = frozenset({
    "relu", "relu6", "gelu", "silu", "mish", "elu", "selu", "celu", "leaky_relu", "hardtanh", "hardswish", "hardsigmoid", "sigmoid", "tanh", "softplus", "logsigmoid", "softsign",
    "softmax", "log_softmax", "layer_norm", "group_norm", "batch_norm", "instance_norm", "rms_norm", "dropout", "abs", "neg", "exp", "log", "sqrt", "rsqrt", "square", "sin", "cos",
    "erf", "reciprocal", "floor", "ceil", "round", "clone", "contiguous", "detach", "float", "half", "double", "bfloat16", "long", "int", "bool", "to", "type_as", "cumsum",
    "triu", "tril", "flip", "roll", "normalize", "zeros_like", "ones_like", "empty_like", "full_like", "relu_", "sigmoid_", "tanh_", "add_", "sub_", "mul_", "div_", "masked_fill_",
    "fill_", "zero_", "pos", "invert", "logical_not", "isnan", "isinf",
})  # fmt: skip
_BROADCAST = frozenset({
    "add", "sub", "mul", "div", "truediv", "true_divide", "floordiv", "floor_divide", "mod", "remainder", "pow", "rsub", "eq", "ne", "lt", "le", "gt", "ge", "maximum", "minimum",
    "where", "masked_fill", "lerp", "addcmul", "addcdiv", "atan2", "and_", "or_", "xor", "logical_and", "logical_or", "clamp", "iadd", "isub", "imul", "itruediv",
})  # fmt: skip
_REDUCTIONS = frozenset({"mean", "sum", "amax", "amin", "prod", "var", "std", "logsumexp", "argmax", "argmin", "any", "all"})

_POOLS = frozenset(f"{kind}_pool{n}d" for kind in ("max", "avg", "adaptive_max", "adaptive_avg") for n in (1, 2, 3))

_LONGEST = 200  # characters


class Dims(tuple):
    """One entry for each dimension."""

    __slots__ = ()


def _literal(n):
    return str(int(n)), int(n)


def _is_literal(entry):
    return entry[0].lstrip("-").isdigit()


def _short(entry):
    """None in place of words that are too long for a check at every call."""
    return entry if entry is None or len(entry[0]) <= _LONGEST else None


def _number(v):
    """The entry of a whole number or size; None for others."""
    if isinstance(v, SizeVar):
        return (v.guard, v.value) if v.guard else None
    return _literal(v.obj) if isinstance(v, Known) and type(v.obj) is int else None


def _combine(sign, function, *entries):
    if any(e is None for e in entries):
        return None
    out = entries[0]
    for e in entries[1:]:
        value = function(out[1], e[1])
        out = _literal(value) if _is_literal(out) and _is_literal(e) else (f"({out[0]} {sign} {e[0]})", value)
    return _short(out)


def _product(entries):
    return _combine("*", operator.mul, *entries) if entries else _literal(1)


def of_input(path, tensor):
    """Those of a tensor that is found at a path; without one its sizes are checked elsewhere."""
    return Dims(_literal(n) if path is None else (f"{path}.size({i})", n) for i, n in enumerate(tensor.shape))


def _dims(v):
    return v.dims if isinstance(v, TensorVar) else None


def _broadcast_tensors(args):
    return _broadcast([[None] * a.value.ndim if a.dims is None else a.dims for a in args if isinstance(a, TensorVar)])


def _broadcast(shapes):
    """Several shapes together: of two sizes, a 1 gives way."""
    out = []
    for i in range(max(map(len, shapes), default=0)):
        entries = [s[len(s) - 1 - i] for s in shapes if i < len(s)]
        entry = entries[0]
        for other in entries[1:]:
            if entry is None or other is None:
                entry = None
            elif entry[0] != other[0]:
                entry = _wider(entry, other)
        out.insert(0, entry)
    return out


def _wider(a, b):
    """Of two sizes that are broadcast."""
    for one, other in ((a, b), (b, a)):
        if _is_literal(one):
            return other if one[1] == 1 else one  # another size than a literal's raises, unless it is 1
    return _short((f"({b[0]} if {a[0]} == 1 else {a[0]})", b[1] if a[1] == 1 else a[1]))


def _list_of(args):
    """A list of sizes that is given as one argument or as several."""
    return list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)


def _reshaped(x, sizes):
    entries = [_number(s) for s in sizes]
    left = [i for i, e in enumerate(entries) if e is not None and e[0] == "-1"]
    if len(left) == 1:
        rest = _product([e for i, e in enumerate(entries) if i != left[0]])
        total = _product(x.dims)
        entries[left[0]] = _combine("//", operator.floordiv, total, rest) if rest is not None and rest[1] else None
    return entries


def _known(v, default=None):
    """A Python value that the code has; `default` where it gave none; raises LookupError for others."""
    if v is None:
        return default
    if isinstance(v, Known):
        return v.obj
    if isinstance(v, (list, tuple)):
        return [_known(one) for one in v]
    raise LookupError


def _permuted(x, order):
    return [x.dims[i] for i in order]


def _swapped(x, i, j):
    order = list(range(len(x.dims)))
    order[i], order[j] = order[j], order[i]
    return _permuted(x, order)


def _flattened(x, start=0, end=-1):
    n = len(x.dims)
    if n == 0:
        return [_literal(1)]
    start, end = start % n, end % n
    return [*x.dims[:start], _product(x.dims[start : end + 1]), *x.dims[end + 1 :]]


def _expanded(x, sizes):
    new = len(sizes) - len(x.dims)
    entries = [_number(s) for s in sizes]
    return [x.dims[i - new] if e is not None and e[0] == "-1" else e for i, e in enumerate(entries)]


def _product_of_matrices(a, b):
    if len(a.dims) < 2 or len(b.dims) < 2:
        return None
    return [*_broadcast([a.dims[:-2], b.dims[:-2]]), a.dims[-2], b.dims[-1]]


def _joined(parts, dim):
    if not all(isinstance(p, TensorVar) and p.dims is not None and len(p.dims) == len(parts[0].dims) for p in parts):
        return None
    out = list(parts[0].dims)
    out[dim] = _combine("+", operator.add, *(p.dims[dim] for p in parts))
    return out


def _sliced(entry, s):
    ends = [("None", None) if p is None or isinstance(p, Known) and p.obj is None else _number(p) for p in (s.start, s.stop, s.step)]
    if all(e is not None and e[1] is None for e in ends):
        return entry
    if entry is None or any(e is None for e in ends):
        return None
    words, values = zip(*ends)
    length = len(range(*slice(*values).indices(entry[1])))
    if all(w == "None" or w.lstrip("-").isdigit() for w in words) and _is_literal(entry):
        return _literal(length)
    return _short((f"len(range(*slice({', '.join(words)}).indices({entry[0]})))", length))


def _indexed(x, index):
    index = list(index) if isinstance(index, tuple) else [index]
    taken = sum(not (isinstance(i, Known) and (i.obj is None or i.obj is ...)) for i in index)
    out, at = [], 0
    for one in index:
        obj = one.obj if isinstance(one, Known) else one
        if obj is ...:
            step = len(x.dims) - taken
            out += x.dims[at : at + step]
            at += step
        elif obj is None:
            out.append(_literal(1))
        elif isinstance(obj, slice):
            out.append(_sliced(x.dims[at], obj))
            at += 1
        elif type(obj) is int or isinstance(one, SizeVar):
            at += 1
        else:
            return None
    return [*out, *x.dims[at:]]


def _reduced(x, dim, keepdim):
    if dim is None:
        return [_literal(1)] * len(x.dims) if keepdim else []
    dims = {d % len(x.dims) for d in (dim if isinstance(dim, (list, tuple)) else [dim])} if x.dims else set()
    return [_literal(1) if i in dims else e for i, e in enumerate(x.dims) if keepdim or i not in dims]


def _padded(x, pads):
    out = list(x.dims)
    for i in range(len(pads) // 2):
        out[-1 - i] = _combine("+", operator.add, out[-1 - i], _number(pads[2 * i]), _number(pads[2 * i + 1]))
    return out


def _given(args, kwargs, place, name, default=None):
    return args[place] if len(args) > place else kwargs.get(name, Known(default))


def _each(v, count):
    """Entries of one number for all dimensions, or of one for each; None where they are not given."""
    if isinstance(v, Known) and type(v.obj) in (list, tuple):
        v = [Known(one) for one in v.obj]
    if isinstance(v, (list, tuple)):
        return [_number(one) for one in v] * (count if len(v) == 1 else 1) if len(v) in (1, count) else None
    return None if isinstance(v, Known) and v.obj is None else [_number(v)] * count


def _windows(n, kernel, stride, padding, dilation):
    """How many windows there are, without those that begin in the padding (ceil_mode)."""
    if any(e is None for e in (n, kernel, stride, padding, dilation)):
        return None
    (a, b), (k, l), (s, t), (p, q), (d, e) = n, kernel, stride, padding, dilation
    count = (b + 2 * q - e * (l - 1) - 1) // t + 1
    if all(map(_is_literal, (kernel, stride, padding, dilation))):
        return _short((f"(({a} - {e * (l - 1) + 1 - 2 * q}) // {s} + 1)", count))
    return _short((f"(({a} + 2 * {p} - {d} * ({k} - 1) - 1) // {s} + 1)", count))


def _moved(x, count, channels, kernel, stride, padding, dilation):
    """Batch, channels and windows of a convolution or pool."""
    lead = len(x.dims) - count - 1
    if lead < 0:
        return None
    parts = [_each(v, count) for v in (stride, padding, dilation)]
    kernel = kernel if isinstance(kernel, list) else _each(kernel, count)
    parts = [kernel, parts[0] or kernel, *parts[1:]]  # pools move by their kernel
    sizes = [_windows(*e) for e in zip(x.dims[lead + 1 :], *parts)] if all(parts) else [None] * count
    return [*x.dims[:lead], channels or x.dims[lead], *sizes]


def _convolution(x, weight, args, kwargs, count):
    options = [_given(args, kwargs, 2 + i, name, default) for i, (name, default) in enumerate((("stride", 1), ("padding", 0), ("dilation", 1)))]
    return _moved(x, count, weight.dims[0], list(weight.dims[2:]), *options)


def _pool(name, x, args, kwargs, count):
    if name.startswith("adaptive_"):
        sizes = _each(_given(args, kwargs, 0, "output_size"), count)
        return [*x.dims[:-count], *sizes] if sizes else None
    of_max = name.startswith("max")
    options = [_given(args, kwargs, i, word, default) for i, (word, default) in enumerate((("kernel_size", None), ("stride", None), ("padding", 0)))]
    rounds_up = _given(args, kwargs, 4 if of_max else 3, "ceil_mode", False)
    if not isinstance(rounds_up, Known) or rounds_up.obj:
        return [*x.dims[:-count], *[None] * count]
    return _moved(x, count, None, *options, _given(args, kwargs, 3, "dilation", 1) if of_max else Known(1))


def _interpolated(x, args, kwargs):
    count = len(x.dims) - 2
    sizes, factors = _each(_given(args, kwargs, 0, "size"), count), _each(_given(args, kwargs, 1, "scale_factor"), count)
    if sizes is None and factors is not None:
        sizes = [_combine("*", operator.mul, e, f) for e, f in zip(x.dims[2:], factors)]
    return [*x.dims[:2], *sizes] if sizes else None


def _rule(name, args, kwargs):
    """Entries of the result's dimensions; None where no rule says any."""
    x = args[0] if args else None
    if name in _BROADCAST:
        return _broadcast_tensors([*args, *kwargs.values()])
    if name in ("zeros", "ones", "empty", "randn", "rand", "full"):
        sizes = _list_of(args[:1] if name == "full" else args)
        return [_number(s) for s in sizes]
    if name == "arange" and not {"start", "end", "step"} & kwargs.keys():
        return [_number(x)] if len(args) == 1 else [_combine("-", operator.sub, _number(args[1]), _number(x))] if len(args) == 2 else None
    if name in ("cat", "concat") and isinstance(x, (list, tuple)):
        return _joined(x, _known(args[1] if len(args) > 1 else kwargs.get("dim"), 0))
    if name == "stack" and isinstance(x, (list, tuple)) and isinstance(x[0], TensorVar) and x[0].dims is not None:
        at = _known(args[1] if len(args) > 1 else kwargs.get("dim"), 0) % (len(x[0].dims) + 1)
        return [*x[0].dims[:at], _literal(len(x)), *x[0].dims[at:]]
    return _rule_of_tensor(name, x, args[1:], kwargs) if isinstance(x, TensorVar) and x.dims is not None else None


def _rule_of_tensor(name, x, args, kwargs):
    y = args[0] if args else None
    if name in _LIKE_FIRST:
        return x.dims
    if name in ("view", "reshape") and not (isinstance(y, Known) and isinstance(y.obj, cresset.dtype)):
        return _reshaped(x, _list_of(args))
    if name == "linear" and _dims(y) is not None:
        return [*x.dims[:-1], y.dims[0]]
    if name == "embedding" and _dims(y) is not None:
        return [*x.dims, y.dims[1]]
    if name == "embedding_bag" and _dims(y) is not None:
        offsets = args[1] if len(args) > 1 else kwargs.get("offsets")
        return [x.dims[0] if len(x.dims) == 2 else None if _dims(offsets) is None else offsets.dims[0], y.dims[1]]
    if name in ("matmul", "bmm", "mm") and _dims(y) is not None:
        return _product_of_matrices(x, y)
    if name in ("transpose", "swapaxes", "swapdims") and len(args) == 2:
        return _swapped(x, _known(y), _known(args[1]))
    if name == "permute":
        return _permuted(x, _known(_list_of(args)))
    if name == "getattr":
        return {"T": lambda: x.dims[::-1], "mT": lambda: _swapped(x, -1, -2)}.get(_known(y), lambda: None)()
    if name == "t":
        return x.dims[::-1]
    if name == "unsqueeze" and args:
        at = _known(y) % (len(x.dims) + 1)
        return [*x.dims[:at], _literal(1), *x.dims[at:]]
    if name == "squeeze":  # the sizes of 1 are checked (count_checks)
        dim = y if args else kwargs.get("dim")
        chosen = range(len(x.dims)) if dim is None else [d % len(x.dims) for d in _places(dim)] if x.dims else []
        return [e for i, e in enumerate(x.dims) if i not in chosen or x.value.size(i) != 1]
    if name == "flatten":
        return _flattened(x, *map(_known, args), **{k: _known(v) for k, v in kwargs.items()})
    if name == "expand":
        return _expanded(x, _list_of(args))
    if name == "getitem":
        return _indexed(x, y)
    if name in _REDUCTIONS:
        dim = y if args else kwargs.get("dim")
        return _reduced(x, _known(dim), bool(_known(args[1] if len(args) > 1 and name in ("mean", "sum", "amax", "amin") else kwargs.get("keepdim"), False)))
    if name == "pad" and isinstance(y, (list, tuple)):
        return _padded(x, y)
    if name == "scaled_dot_product_attention" and len(args) > 1 and all(_dims(a) is not None for a in args[:2]):
        return [*_broadcast([x.dims[:-2], y.dims[:-2], args[1].dims[:-2]]), x.dims[-2], args[1].dims[-1]]
    if name in ("conv1d", "conv2d", "conv3d") and _dims(y) is not None:
        return _convolution(x, y, args, kwargs, int(name[-2]))
    if name in _POOLS:
        return _pool(name, x, args, kwargs, int(name[-2]))
    return _interpolated(x, args, kwargs) if name == "interpolate" else None


def _name(target):
    """An operator's name; nothing for functions that are not the library's."""
    if isinstance(target, str):
        return target
    module = getattr(target, "__module__", None) or ""
    ours = module in ("_operator", "builtins", "") or module.partition(".")[0] in ("cresset", "torch")
    return getattr(target, "__name__", "") if ours and type(target).__module__ != "cresset._ops" else ""


def note(result, target, args, kwargs):
    """Gives a result its dimensions, as far as a rule says them and they are what this call has."""
    out = kwargs.get("out")
    for one in out if isinstance(out, (list, tuple)) else (out,):
        if isinstance(one, TensorVar):
            one.dims = None
    try:
        if isinstance(result, (list, tuple)):
            _note_parts(result, _name(target), args, kwargs)
        elif out is None:
            _give(result, _rule(_name(target), args, kwargs))
    except (LookupError, TypeError, ValueError, ZeroDivisionError):
        return  # arguments that no rule here is for


def _note_parts(parts, name, args, kwargs):
    if name in ("gru", "lstm", "rnn_tanh", "rnn_relu"):
        return _note_recurrent(parts, args)
    x = args[0] if args else None
    if name not in ("unbind", "chunk", "split") or _dims(x) is None or not all(isinstance(one, TensorVar) for one in parts):
        return
    amount, dim = _amount_and_dim(name, args, kwargs)
    dim = _known(dim, 0)
    entry = x.dims[dim]
    for i, one in enumerate(parts):
        dims = list(x.dims)
        if name == "unbind":
            del dims[dim]
        else:
            dims[dim] = _part(entry, name, amount, i)
        _give(one, dims)


def _part(entry, name, amount, i):
    """The size of the i-th part: as large as the others, or what is left."""
    step = _number(amount)
    if entry is None or step is None or step[1] <= 0:
        return None
    (n, size), (k, number) = entry, step
    if name == "chunk":
        k, number = f"max(1, -(-{n} // {k}))", max(1, -(-size // number))
    value = min(number, size - i * number)
    return _literal(value) if _is_literal(entry) and _is_literal(step) else _short((f"min({k}, {n} - {i} * {k})", value))


def _note_recurrent(parts, args):
    """(output, states): the output has the size of a state for each direction. The arguments of padded batches: input, states, weights, has_biases,
    layers, dropout, train, bidirectional, batch_first."""
    x, states = args[:2]
    states = list(states) if isinstance(states, (list, tuple)) else [states]
    if len(args) != 9 or any(_dims(one) is None for one in (x, *states)) or not isinstance(args[7], Known):
        return
    last = _combine("*", operator.mul, states[0].dims[-1], _literal(2 if args[7].obj else 1))
    for one, dims in zip(parts, [[*x.dims[:-1], last], *(s.dims for s in states)]):
        _give(one, dims)


def _give(var, entries):
    if isinstance(var, TensorVar) and entries is not None and len(entries) == var.value.ndim:
        var.dims = Dims(e if e is not None and e[1] == n else None for e, n in zip(entries, var.value.shape))


def _amount_and_dim(name, args, kwargs):
    """What split and chunk are given for the parts, and the dimension; None where they are not given."""
    rest = list(args[1:])
    amount = None
    if name != "unbind":
        amount = rest.pop(0) if rest else kwargs.get("chunks", kwargs.get("split_size_or_sections", kwargs.get("split_size")))
    return amount, rest[0] if rest else kwargs.get("dim", kwargs.get("axis"))


def count_checks(target, args, kwargs):
    """What must be the same for a result to have as many dimensions or parts: (dimension, expression of its size {n}) pairs, where None is the size
    itself. LookupError where that is not known."""
    name = (target if isinstance(target, str) else getattr(target, "__name__", "")).partition(".")[0].removeprefix("unsafe_").removesuffix("_copy")
    if name not in ("squeeze", "unbind", "chunk", "split") or not args or not isinstance(args[0], TensorVar):
        return []
    amount, dim = _amount_and_dim("unbind" if name == "squeeze" else name, args, kwargs)
    if name == "squeeze":
        ndim = args[0].value.ndim
        dims = range(ndim) if dim is None else _places(dim)
        return [(d, "({n} == 1)") for d in dims] if ndim else []
    places = _places(dim if dim is not None else Known(0))
    if name == "unbind":
        return [(d, None) for d in places]
    if isinstance(amount, (list, tuple)) or isinstance(amount, Known) and isinstance(amount.obj, (list, tuple)):
        return []  # as many as are asked for
    if not (isinstance(amount, Known) and type(amount.obj) is int and amount.obj > 0):
        return [(d, None) for d in places]
    k = amount.obj
    count = f"-(-{{n}} // {k})" if name == "split" else f"-(-{{n}} // max(1, -(-{{n}} // {k})))"
    return [(d, f"({{n}} and {count})") for d in places]


def _places(dim):
    found = _known(dim)
    return found if isinstance(found, (list, tuple)) else [found]


def evaluate(text, n):
    """An expression of count_checks for a size."""
    return eval(text.format(n=n), {"max": max})
