"""`assert_close`: are two values, or two nests of values, as close as their dtypes allow?"""

import cmath
import collections.abc
import math
import warnings

import cresset

__all__ = ["assert_close", "assert_allclose", "default_tolerances", "Options", "compare"]

# dtype -> (rtol, atol). Everything else is compared exactly.
_TOLERANCES = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    "complex32": (1e-3, 1e-5), "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip
_NUMBER_DTYPES = {int: "int64", float: "float64", complex: "complex128"}


def _dtype_name(dtype):
    return str(dtype).rpartition(".")[2]


def default_tolerances(*values, overrides=None):
    """(rtol, atol) for tensors or dtypes: the loosest of their dtypes. `overrides` maps dtypes to (rtol, atol)."""
    pairs = []
    for value in values:
        dtype = value.dtype if isinstance(value, cresset.Tensor) else value
        pairs.append((overrides or {}).get(dtype) or _TOLERANCES.get(_dtype_name(dtype), (0.0, 0.0)))
    rtols, atols = zip(*pairs)
    return max(rtols), max(atols)


class Options:
    """How strict a comparison is. `relaxed` is what TestCase.assertEqual adds: numbers beside tensors, strings and other objects."""

    def __init__(self, *, rtol=None, atol=None, equal_nan=False, check_device=True, check_dtype=True, check_layout=True, check_stride=False,
                 allow_subclasses=True, relaxed=None, least_rtol=0.0, least_atol=0.0):
        if (rtol is None) != (atol is None):
            missing = "rtol" if rtol is None else "atol"
            raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
        self.rtol, self.atol, self.equal_nan = rtol, atol, equal_nan
        self.check_device, self.check_dtype, self.check_layout, self.check_stride = check_device, check_dtype, check_layout, check_stride
        self.allow_subclasses, self.relaxed = allow_subclasses, relaxed
        self.least_rtol, self.least_atol = least_rtol, least_atol

    def tolerances(self, *dtypes):
        """(rtol, atol), given or by dtype, but at least the least ones."""
        rtol, atol = (self.rtol, self.atol) if self.rtol is not None else default_tolerances(*dtypes)
        return max(rtol, self.least_rtol), max(atol, self.least_atol)


def _at(path):
    return "\n\nThe failure occurred for item " + "".join(f"[{step!r}]" for step in path) if path else ""


def _is_array(value):
    return type(value).__module__ == "numpy" and hasattr(value, "__array__") and hasattr(value, "shape")


def _is_number(value):
    return isinstance(value, (int, float, complex)) and not isinstance(value, bool)


def _is_sequence(value):
    return isinstance(value, collections.abc.Sequence) and not isinstance(value, (str, bytes))


def compare(actual, expected, options, path=()):
    """The text of the first difference, or None. TypeError when the two are of kinds that cannot be compared."""
    if isinstance(actual, collections.abc.Mapping) and isinstance(expected, collections.abc.Mapping):
        missing, additional = sorted(set(expected) - set(actual), key=str), sorted(set(actual) - set(expected), key=str)
        if missing or additional:
            return (f"The keys of the mappings do not match:\nMissing keys in the actual mapping: {missing}\n"
                    f"Additional keys in the actual mapping: {additional}" + _at(path))
        return _first(((actual[key], expected[key], key) for key in actual), options, path)
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}" + _at(path)
        return _first(((a, e, i) for i, (a, e) in enumerate(zip(actual, expected))), options, path)
    problem = _compare_leaves(actual, expected, options, path)
    return None if problem is None else problem + _at(path)


def _first(items, options, path):
    return next((problem for a, e, step in items if (problem := compare(a, e, options, (*path, step))) is not None), None)


def _compare_leaves(actual, expected, options, path):
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    if not options.allow_subclasses and type(actual) is not type(expected):
        related = False
    elif actual is None or expected is None:
        if (actual is None) == (expected is None):
            return None
        return f"None mismatch: {actual} is not {expected}"
    tensors = [isinstance(v, cresset.Tensor) or _is_array(v) for v in (actual, expected)]
    if all(tensors) and (related or options.relaxed):
        return _compare_tensors(_tensor(actual), _tensor(expected), options)
    if isinstance(actual, bool) and isinstance(expected, bool):
        return None if actual is expected else f"Booleans mismatch: {actual} is not {expected}"
    if _is_number(actual) and _is_number(expected):
        return _compare_numbers(actual, expected, options)
    if options.relaxed:
        return _compare_relaxed(actual, expected, options, tensors)
    raise TypeError(f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}." + _at(path))


def _compare_relaxed(actual, expected, options, tensors):
    numbers = [_is_number(v) or isinstance(v, bool) for v in (actual, expected)]
    if any(tensors) and any(numbers):
        sides = [_tensor(v) if is_tensor else v for v, is_tensor in zip((actual, expected), tensors)]
        tensor = sides[0] if tensors[0] else sides[1]
        if tensor.numel() == 1 and tensor.device.type != "meta":
            a, e = (v.item() if isinstance(v, cresset.Tensor) else v for v in sides)
            return _compare_numbers(a, e, options, dtype=tensor.dtype)
    elif all(numbers):
        return _compare_numbers(actual, expected, options)
    elif any(tensors) and any(_is_sequence(v) for v in (actual, expected)):
        like = _tensor(actual if tensors[0] else expected)
        a, e = (_tensor(v) if t else cresset.tensor(v, dtype=like.dtype, device=like.device) for v, t in zip((actual, expected), tensors))
        return _compare_tensors(a, e, options)
    return options.relaxed(actual, expected)


def _tensor(value):
    return value if isinstance(value, cresset.Tensor) else cresset.as_tensor(value)


def _compare_numbers(actual, expected, options, dtype=None):
    if dtype is None and options.check_dtype and type(actual) is not type(expected):
        return f"The (d)types do not match: {type(actual)} != {type(expected)}."
    names = [_NUMBER_DTYPES.get(type(v), "bool") for v in (actual, expected)]
    rtol, atol = options.tolerances(*([dtype] if dtype is not None else names))
    if actual == expected or (options.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
        return None
    finite = cmath.isfinite(actual) and cmath.isfinite(expected)
    if finite and abs(actual - expected) <= atol + rtol * abs(expected):
        return None
    return _scalar_text(actual, expected, rtol, atol)


def _scalar_text(actual, expected, rtol, atol):
    difference = abs(actual - expected)
    relative = difference / abs(expected) if expected != 0 else math.inf
    exact = rtol == 0 and atol == 0
    allowed = ("", "") if exact else (f" (up to {atol} allowed)", f" (up to {rtol} allowed)")
    return (f"Scalars are not {'equal' if exact else 'close'}!\n\nExpected {expected} but got {actual}.\n"
            f"Absolute difference: {difference}{allowed[0]}\nRelative difference: {relative}{allowed[1]}")


def _compare_tensors(actual, expected, options):
    facts = [("shape", actual.shape, expected.shape, True), ("layout", actual.layout, expected.layout, options.check_layout),
             ("is_quantized", actual.is_quantized, expected.is_quantized, True),
             ("device", actual.device, expected.device, options.check_device), ("dtype", actual.dtype, expected.dtype, options.check_dtype)]
    if options.check_stride and actual.layout == expected.layout == cresset.strided:
        facts.append(("stride()", actual.stride(), expected.stride(), True))
    for name, have, want, checked in facts:
        if checked and have != want:
            return f"The values for attribute '{name}' do not match: {have} != {want}."
    if actual.device.type == "meta" or expected.device.type == "meta":
        return None  # no values
    if actual.is_quantized:
        if actual.qscheme() != expected.qscheme():
            return f"The values for attribute 'qscheme()' do not match: {actual.qscheme()} != {expected.qscheme()}."
        problem = _compare_tensors(actual.dequantize(), expected.dequantize(), options)
        return None if problem is None else "Quantized " + problem[0].lower() + problem[1:]
    if actual.layout != expected.layout:
        actual, expected = (t if t.layout == cresset.strided else t.to_dense() for t in (actual, expected))
    elif actual.layout in _SPARSE_PARTS:
        return _compare_sparse(actual, expected, options)
    return _compare_elements(actual, expected, options)


# layout -> the methods that give its tensors of places.
_SPARSE_PARTS = {cresset.sparse_coo: ("_indices",), cresset.sparse_csr: ("crow_indices", "col_indices"),
                 cresset.sparse_csc: ("ccol_indices", "row_indices"), cresset.sparse_bsr: ("crow_indices", "col_indices"),
                 cresset.sparse_bsc: ("ccol_indices", "row_indices")}  # fmt: skip


def _compare_sparse(actual, expected, options):
    """Part by part, as they are stored: places must be equal, values as close as those of other tensors."""
    kind = "Sparse " + _dtype_name(actual.layout).removeprefix("sparse_").upper()
    if actual._nnz() != expected._nnz():
        return f"The number of specified values in s{kind[1:]} tensors does not match: {actual._nnz()} != {expected._nnz()}"
    exact = Options(rtol=0, atol=0, check_dtype=False)
    values = "_values" if actual.layout == cresset.sparse_coo else "values"
    for name, how in [*((name, exact) for name in _SPARSE_PARTS[actual.layout]), (values, options)]:
        problem = _compare_elements(getattr(actual, name)(), getattr(expected, name)(), how)
        if problem is not None:
            return problem.replace("Tensor-likes", f"{kind} {name.removeprefix('_')}", 1)
    return None


def _compare_elements(actual, expected, options):
    rtol, atol = options.tolerances(actual.dtype, expected.dtype)
    # On the CPU: a device may lack the operators of a comparison, and must not judge itself.
    actual, expected = (t.detach().resolve_conj().resolve_neg().cpu() for t in (actual, expected))
    if actual.dtype != expected.dtype:
        dtype = cresset.promote_types(actual.dtype, expected.dtype)
        actual, expected = actual.to(dtype), expected.to(dtype)
    close = cresset.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=options.equal_nan)
    if bool(close.all()):
        return None
    return _tensor_text(actual, expected, close, rtol, atol)


def _tensor_text(actual, expected, close, rtol, atol):
    if close.dim() == 0:
        return _scalar_text(actual.item(), expected.item(), rtol, atol)
    if not actual.dtype.is_floating_point and not actual.dtype.is_complex:
        actual, expected = actual.to(cresset.int64), expected.to(cresset.int64)
    difference = (actual - expected).abs()
    relative = difference / expected.abs()
    # Elements that match do not count, whatever rounding says about them.
    difference, relative = (cresset.where(close, cresset.zeros_like(t), t) for t in (difference, relative))
    exact = rtol == 0 and atol == 0
    wrong, total = int((~close).sum()), close.numel()
    lines = [f"Tensor-likes are not {'equal' if exact else 'close'}!\n", f"Mismatched elements: {wrong} / {total} ({wrong / total:.1%})"]
    for name, values, allowed in (("absolute", difference, atol), ("relative", relative, rtol)):
        flat = values.reshape(-1)
        at = int(flat.argmax())
        text = f"Greatest {name} difference: {flat[at].item()} at index {_index(at, close.shape)}"
        lines.append(text + ("" if exact else f" (up to {allowed} allowed)"))
    return "\n".join(lines)


def _index(flat, shape):
    index = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return tuple(reversed(index))


def assert_close(actual, expected, *, allow_subclasses=True, rtol=None, atol=None, equal_nan=False, check_device=True, check_dtype=True,
                 check_layout=True, check_stride=False, msg=None):
    """Raises AssertionError unless |actual - expected| <= atol + rtol * |expected| for all elements.

    Tensors, NumPy arrays, numbers, and sequences and mappings of them. Without rtol and atol both follow from the dtypes. msg is a text
    in the place of the generated one, or a function of it. Values of meta tensors are not compared, everything else of them is.
    """
    options = Options(rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=check_device, check_dtype=check_dtype,
                      check_layout=check_layout, check_stride=check_stride, allow_subclasses=allow_subclasses)
    problem = compare(actual, expected, options)
    if problem is not None:
        raise AssertionError(msg(problem) if callable(msg) else msg or problem)


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg=""):
    """The older form of assert_close: converts both sides to tensors and looks at values only."""
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. Please use `torch.testing.assert_close()` "
        "instead. You can find detailed upgrade instructions in https://github.com/pytorch/pytorch/issues/61844.",
        FutureWarning,
        stacklevel=2,
    )
    actual, expected = _tensor(actual), _tensor(expected)
    if rtol is None and atol is None:
        loose = {cresset.float16: (1e-3, 1e-3), cresset.float32: (1e-4, 1e-5), cresset.float64: (1e-5, 1e-8)}
        rtol, atol = default_tolerances(actual, expected, overrides=loose)
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True, check_dtype=False, check_stride=False,
                 msg=msg or None)
