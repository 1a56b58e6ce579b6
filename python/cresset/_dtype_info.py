"""finfo and iinfo: limits of the dtypes; what else is known of them by name."""

from . import _C

NUMBER_DTYPES = {float: _C.float64, complex: _C.complex128, int: _C.int64, bool: _C.bool}  # what Python's types stand for

# The names of C++, in errors and in the legacy tensor types.
DTYPE_WORDS = {
    _C.float64: "Double", _C.float32: "Float", _C.float16: "Half", _C.bfloat16: "BFloat16", _C.int64: "Long", _C.int32: "Int", _C.int16: "Short",
    _C.int8: "Char", _C.uint8: "Byte", _C.bool: "Bool", _C.complex64: "ComplexFloat", _C.complex128: "ComplexDouble",
}  # fmt: skip


def word_of(dtype):
    """ "Float" of float32; Python's name without its module for dtypes that have no such word."""
    return DTYPE_WORDS.get(dtype) or str(dtype).rpartition(".")[2]


def _dtype_of(given, name):
    dtype = NUMBER_DTYPES.get(given, given)
    if not isinstance(dtype, _C.dtype):
        raise TypeError(f"{name}(): argument 'type' (position 1) must be torch.dtype, not {dtype.__class__.__name__}")
    if type(dtype) is not _C.dtype:  # a name of a type that no tensor has
        wanted, other = ("a floating point", "iinfo") if name == "finfo" else ("an integer", "finfo")
        raise TypeError(f"torch.{name}() requires {wanted} input type. Use torch.{other} to handle 'torch.{name}'")
    return dtype


class finfo:
    """Limits of a floating dtype (of the real part, for complex ones): bits, eps, max, min, tiny, resolution."""

    def __init__(self, type=None):
        self._dtype = _C.get_default_dtype() if type is None else _dtype_of(type, "finfo")
        self.bits, self.eps, self.max, self.min, self.tiny, self.smallest_subnormal, self.resolution = _C._finfo(self._dtype)
        self.smallest_normal = self.tiny

    @property
    def dtype(self):
        """Name of the dtype the limits belong to."""
        return str(self._dtype.to_real() if self._dtype.is_complex else self._dtype).rpartition(".")[2]

    def __eq__(self, other):
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self):
        return hash(self.dtype)

    def __repr__(self):
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.tiny:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """Limits of an integral dtype: bits, min, max."""

    def __init__(self, type):
        plain = {"qint8": "int8", "quint8": "uint8", "qint32": "int32", "quint4x2": "uint8", "quint2x4": "uint8"}.get(getattr(type, "_name", None))
        self._dtype, self._quantized = _dtype_of(type if plain is None else getattr(_C, plain), "iinfo"), plain is not None
        if self._dtype == _C.bool:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        self.bits, self.min, self.max = _C._iinfo(self._dtype)

    @property
    def dtype(self):
        """Name of the dtype; NotImplementedError of a quantized one."""
        if self._quantized:
            raise NotImplementedError("iinfo.dtype: not implemented for quantized element types.")
        return str(self._dtype).rpartition(".")[2]

    def __eq__(self, other):
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self):
        return hash(self.dtype)

    def __repr__(self):
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
