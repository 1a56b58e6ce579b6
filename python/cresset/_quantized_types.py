"""Names of element types that no tensor has, so functions that make tensors refuse them: quantized ones, integers of less than eight bits, pairs of
four-bit floats, bits. Libraries that pack such elements into bytes tell their own tensors by them. `isinstance` takes them for dtypes, as lists of dtypes
want it. And names of quantization's schemes."""

from . import _C

# Integers of so many bits; PyTorch has no limits for them, and says of the signed ones that they are not.
_NARROW_INTEGERS = tuple(f"{kind}{bits}" for kind in ("int", "uint") for bits in range(1, 8))
_BITS = {"bits1x8": 1, "bits2x4": 1, "bits4x2": 1, "bits8": 1, "bits16": 2}
NARROW_TYPES = (*_NARROW_INTEGERS, "float4_e2m1fn_x2", "bit", *_BITS)

__all__ = ["qint8", "quint8", "qint32", "quint4x2", "quint2x4", "qscheme", "per_tensor_affine", "per_channel_affine", "per_tensor_symmetric",
           "per_channel_symmetric", "per_channel_affine_float_qparams", *NARROW_TYPES]  # fmt: skip


class _Name:
    def __init__(self, name):
        self._name = name
        self.__module__ = _C._printed_name()  # where pickles find it

    def __repr__(self):
        return f"torch.{self._name}"

    def __reduce__(self):
        return self._name


class _TypeName(_Name):
    """An element type without tensors: what a dtype tells about itself."""

    is_floating_point = is_complex = False

    def __init__(self, name, itemsize=1):
        super().__init__(name)
        self.itemsize = itemsize

    @property
    def __class__(self):
        return _C.dtype

    def to_real(self):
        """The type itself."""
        return self

    def to_complex(self):
        """Raises RuntimeError: there is none."""
        stem = next((s for s in ("quint", "qint", "uint", "int") if self._name.startswith(s)), self._name[:1])
        name = stem.removesuffix("int").upper() + ("Int" if stem.endswith("int") else "") + self._name[len(stem) :]
        raise RuntimeError(f"Unknown Complex ScalarType for {name}")


class QuantizedType(_TypeName):
    """A quantized element type."""

    @property
    def is_signed(self):
        """Raises RuntimeError: whether numbers are signed is a matter of the scheme."""
        raise RuntimeError("isSignedType not supported for quantized types")

    @property
    def _stored(self):
        """The type of what is in memory: of the whole numbers, or of bytes that hold several."""
        return {"qint8": _C.int8, "qint32": _C.int32}.get(self._name, _C.uint8)


def script_number(value):
    """The whole number that scripts and archives have in place of a quantized type or a scheme; any other value as it is."""
    return _NUMBERS.get(id(value), value)


class _NarrowInteger(_TypeName):
    is_signed = False


class _NarrowFloats(_TypeName):
    is_floating_point = is_signed = True


class _Bits(_TypeName):
    @property
    def is_signed(self):
        """Raises RuntimeError: bits are no numbers."""
        raise RuntimeError("Bits types are undefined")


class qscheme(_Name):
    """How quantized elements stand for numbers."""


qscheme.__module__ = _C._printed_name()
qint8, quint8, qint32, quint4x2, quint2x4 = map(QuantizedType, ("qint8", "quint8", "qint32", "quint4x2", "quint2x4"), (1, 1, 4, 1, 1))
per_tensor_affine, per_channel_affine, per_tensor_symmetric, per_channel_symmetric, per_channel_affine_float_qparams = map(
    qscheme, ("per_tensor_affine", "per_channel_affine", "per_tensor_symmetric", "per_channel_symmetric", "per_channel_affine_float_qparams")
)

_NUMBERS = {id(kind): number for kind, number in ((qint8, 12), (quint8, 13), (qint32, 14), (quint4x2, 16), (quint2x4, 17))}
for _kind in (qint8, quint8, qint32, quint4x2, quint2x4):
    _C._name_dtype(_NUMBERS[id(_kind)], _kind)  # kernels in Python get the object for the number
_NUMBERS |= {id(scheme): number for number, scheme in enumerate(
    (per_tensor_affine, per_channel_affine, per_tensor_symmetric, per_channel_symmetric, per_channel_affine_float_qparams)
)}  # fmt: skip

globals().update({_name: _NarrowInteger(_name) for _name in _NARROW_INTEGERS})
globals().update({_name: _Bits(_name, _size) for _name, _size in _BITS.items()})
for _number, _name in enumerate(_BITS, 18):
    _C._name_dtype(_number, globals()[_name])
float4_e2m1fn_x2 = _NarrowFloats("float4_e2m1fn_x2")
bit = globals()["uint1"]
