"""The text of a tensor: values in columns, summarised when there are many, then device, dtype and gradient."""

import contextlib
import math

import cresset

__all__ = ["set_printoptions", "get_printoptions", "printoptions"]


class __PrinterOptions:
    def __init__(self):
        self.precision, self.threshold, self.edgeitems, self.linewidth, self.sci_mode = 4, 1000, 3, 80, None

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


PRINT_OPTS = __PrinterOptions()

_PROFILES = {
    "default": (4, 1000, 3, 80),
    "short": (2, 1000, 2, 80),
    "full": (4, math.inf, 3, 80),
}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """Set how tensors are printed.

    precision: digits after the point; threshold: number of elements above which the text is summarised; edgeitems: elements
    shown at each end of a summarised dimension; linewidth: characters a line; profile: "default", "short" or "full";
    sci_mode: True or False to force scientific notation on or off, None to decide for each tensor.
    """
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"set_printoptions: profile must be one of {list(_PROFILES)}; got {profile!r}")
        PRINT_OPTS.precision, PRINT_OPTS.threshold, PRINT_OPTS.edgeitems, PRINT_OPTS.linewidth = _PROFILES[profile]
    if precision is not None:
        PRINT_OPTS.precision = precision
    if threshold is not None:
        PRINT_OPTS.threshold = threshold
    if edgeitems is not None:
        PRINT_OPTS.edgeitems = edgeitems
    if linewidth is not None:
        PRINT_OPTS.linewidth = linewidth
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions():
    """The options as a dictionary of set_printoptions's arguments."""
    return {
        name: getattr(PRINT_OPTS, name) for name in ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")
    }


@contextlib.contextmanager
def printoptions(**kwargs):
    """set_printoptions for the length of a `with` block."""
    old = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**old)


class _FloatFormatter:
    """Chooses one notation for all of `values` (a flat list of floats): integers with a point, fixed, or scientific.

    zero: what the type of the values has in the place of zero (float8_e8m0fnu: its smallest number); it does not choose."""

    def __init__(self, values, zero=0.0):
        self.width = 1
        self.integers = True
        self.scientific = False
        precision = PRINT_OPTS.precision
        finite = [v for v in values if v not in (0, zero) and math.isfinite(v)]
        if finite:
            sizes = [abs(v) for v in finite]
            low, high = min(sizes), max(sizes)
            self.integers = all(v == math.floor(v) for v in finite)
            self.scientific = high / low > 1000.0 or high > 1.0e8 or (not self.integers and low < 1.0e-4)
            if PRINT_OPTS.sci_mode is not None:
                self.scientific = PRINT_OPTS.sci_mode
            spec = f".{precision}e" if self.scientific else ".0f" if self.integers else f".{precision}f"
            # Without exponents all have as many digits after the point, so the smallest or the largest is the longest.
            longest = finite if self.scientific else (min(finite), max(finite))
            self.width = max(len(format(v, spec)) for v in longest)
            if self.integers and not self.scientific:
                self.width += 1
        if self.scientific:
            self._spec = f".{precision}e"
        elif self.integers:
            self._spec = ".0f"
        else:
            self._spec = f".{precision}f"

    def __call__(self, value):
        text = format(value, self._spec)
        if self.integers and not self.scientific and math.isfinite(value):
            text += "."
        return text.rjust(self.width)


class _PlainFormatter:
    """Integers and bools, as wide as the widest."""

    def __init__(self, values):
        self.width = max((len(str(v)) for v in (values if len(values) < 3 else _extremes(values))), default=1)

    def __call__(self, value):
        return str(value).rjust(self.width)


def _extremes(values):
    # The longest integer is the smallest or the largest; of bools, False is the longer word.
    return (min(values), max(values))


class _ComplexFormatter:
    """Real and imaginary parts, each in a notation of its own."""

    def __init__(self, values):
        self._real = _FloatFormatter([v.real for v in values])
        self._imag = _FloatFormatter([v.imag for v in values])
        self.width = self._real.width + self._imag.width + 1

    def __call__(self, value):
        imag = self._imag(value.imag).lstrip() + "j"
        sign = "" if imag[0] in "+-" else "+"
        return self._real(value.real) + sign + imag


def _flatten(data, dim):
    for _ in range(dim - 1):
        data = [x for part in data for x in part]
    return data if dim else [data]


def _vector(data, size, indent, formatter):
    """One row; `data` holds only the edges when it is shorter than `size`."""
    per_line = max(1, (PRINT_OPTS.linewidth - indent) // (formatter.width + 2))
    words = [formatter(v) for v in data]
    if len(data) < size:
        edge = PRINT_OPTS.edgeitems
        words[edge:edge] = [" ..."]
    lines = [", ".join(words[i : i + per_line]) for i in range(0, len(words), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _nested(data, sizes, indent, formatter):
    if not sizes:
        return formatter(data)
    if len(sizes) == 1:
        return _vector(data, sizes[0], indent, formatter)
    parts = [_nested(part, sizes[1:], indent + 1, formatter) for part in data]
    if len(data) < sizes[0]:
        edge = PRINT_OPTS.edgeitems
        parts[edge:edge] = ["..."]
    return "[" + ("," + "\n" * (len(sizes) - 1) + " " * (indent + 1)).join(parts) + "]"


def _edges(tensor):
    """`tensor` with only the first and last `edgeitems` of each long dimension."""
    edge = PRINT_OPTS.edgeitems
    for d, size in enumerate(tensor.shape):
        if size > 2 * edge:
            tensor = cresset.cat([tensor.narrow(d, 0, edge), tensor.narrow(d, size - edge, edge)], d)
    return tensor


def tensor_totype(t):
    """The tensor in the type in which its numbers are printed."""
    return t.double()


def _values(tensor, indent):
    """The bracketed values of a plain tensor."""
    sizes = tuple(tensor.shape)
    if tensor.numel() == 0:
        return "[]"
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
    if tensor.numel() > PRINT_OPTS.threshold:
        tensor = _edges(tensor)
    data = tensor.tolist() if sizes else tensor.item()
    flat = _flatten(data, len(sizes))
    if tensor.is_complex():
        formatter = _ComplexFormatter(flat)
    elif tensor.is_floating_point():
        formatter = _FloatFormatter(flat, cresset.zeros((), dtype=tensor.dtype).item())
    else:
        formatter = _PlainFormatter(flat)
    return _nested(data, sizes, indent, formatter)


def _grad_suffix(tensor):
    try:
        node = tensor.grad_fn
    except RuntimeError:  # a view whose base was changed in a way that leaves it without a node
        return "grad_fn=<Invalid>"
    if node is not None:
        name = type(node).__name__
        if name == "CppFunction":
            name = node.name().rsplit("::", 1)[-1]
        return f"grad_fn=<{name}>"
    return "requires_grad=True" if tensor.requires_grad else None


def _prefix(tensor):
    kind = type(tensor)
    if kind is cresset.Tensor or kind.__name__ == "Parameter":
        return "tensor("
    return kind.__name__ + "("


def _add_suffixes(text, suffixes, indent, force_newline):
    """`text` with suffixes and the closing bracket, on its last line while there is room, or from a line of their own on."""
    parts = [text]
    used = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if force_newline or used + len(suffix) + 2 > PRINT_OPTS.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            used, force_newline = indent + len(suffix), False
        else:
            parts.append(", " + suffix)
            used += len(suffix) + 2
    return "".join(parts) + ")"


def _tensor_str(self, indent):
    """The bracketed values of a tensor, whose lines begin at the column `indent`."""
    with cresset.no_grad():
        return _values(self.detach(), indent)


def _str_intern(inp, *, tensor_contents=None):
    """The repr of a tensor; see _str."""
    return _str(inp, tensor_contents=tensor_contents)


def _str(self, *, tensor_contents=None):
    """The repr of a tensor; `tensor_contents` replaces the values. Modes do not see how it is made."""
    if cresset._C._len_torch_dispatch_stack():
        from cresset.utils._python_dispatch import _disable_current_modes

        with _disable_current_modes():
            return _str(self, tensor_contents=tensor_contents)
    if cresset._C._is_batched(self):
        import textwrap

        value, dim, level = cresset._C._batch_parts(self)
        return f"BatchedTensor(lvl={level}, bdim={dim}, value=\n{textwrap.indent(repr(value), '    ')}\n)"
    with cresset.no_grad(), cresset._C.DisableTorchFunctionSubclass():
        prefix = _prefix(self)
        indent = len(prefix)
        suffixes = []
        dtype = self.dtype
        default = cresset.get_default_dtype()
        if self.device.type != "cpu":
            suffixes.append(f"device='{self.device}'")
        if self.is_meta or getattr(self, "_has_no_values", False):
            text = "..."
            suffixes.append(f"size={tuple(self.shape)}")
            show_dtype = dtype != default
        elif self.numel() == 0:
            text = "[]"
            if self.dim() != 1:
                suffixes.append(f"size={tuple(self.shape)}")
            show_dtype = dtype != default
        else:
            # A class that answers operators itself is asked for its list, and for nothing else.
            plain = self if type(self).__torch_dispatch__ is not cresset.Tensor.__torch_dispatch__ else self.detach()
            text = _values(plain, indent) if tensor_contents is None else None
            show_dtype = dtype not in (default, cresset.int64, cresset.bool) and not (
                dtype.is_complex and dtype == _COMPLEX_OF.get(str(default).rpartition(".")[2])
            )
        if show_dtype:
            suffixes.append(f"dtype={dtype}")
        if tensor_contents is not None:
            text = tensor_contents
        grad = _grad_suffix(self)
        if grad is not None:
            suffixes.append(grad)
        if cresset._C._current_dual_level() >= 0:
            tangent = cresset._C._unpack_dual(self, None)[1]
            if tangent is not None:
                suffixes.append(f"tangent={tangent}")
    text = _add_suffixes(prefix + text, suffixes, indent, False)
    # A parameter of a class of its own, or that keeps the type of what it was made from.
    # Plain tensors do not ask, which would load cresset.nn.
    named = type(self) is not cresset.Tensor and type(self).__name__ != "Parameter" and isinstance(self, cresset.nn.Parameter)
    return f"Parameter({text})" if named else text


_COMPLEX_OF = {"float32": cresset.complex64, "float64": cresset.complex128}
