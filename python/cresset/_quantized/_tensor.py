"""The class of quantized tensors."""

from typing import NamedTuple

import cresset

from .. import _C, _quantized_types
from .._recorded import in_traces
from .._tensor_str import _add_suffixes, _prefix, _values

__all__ = ["PerChannel", "PerTensor", "QuantizedTensor"]

Tensor = _C.Tensor
# dtype → (dtype of the whole numbers, smallest, largest, name of its tensors' type)
KINDS = {
    _quantized_types.quint8: (_C.uint8, 0, 255, "QUInt8"),
    _quantized_types.qint8: (_C.int8, -128, 127, "QInt8"),
    _quantized_types.qint32: (_C.int32, -(2**31), 2**31 - 1, "QInt32"),
}


class PerTensor(NamedTuple):
    """One scale and zero point."""

    dtype: object
    scale: float
    zero_point: int

    qscheme = _quantized_types.per_tensor_affine


class PerChannel(NamedTuple):
    """A scale and a zero point for each index of the dimension `axis`; floating zero points are added before rounding."""

    dtype: object
    scales: object
    zero_points: object
    axis: int

    @property
    def qscheme(self):
        if self.zero_points.is_floating_point():
            return _quantized_types.per_channel_affine_float_qparams
        return _quantized_types.per_channel_affine

    def along(self, values, dim):
        """`values` in the form that broadcasts over the tensor."""
        shape = [1] * dim
        shape[self.axis] = -1
        return values.view(shape)


class QuantizedTensor(Tensor):
    """A tensor of whole numbers and what they stand for."""

    __torch_function__ = _C._disabled_torch_function_impl
    is_quantized = True
    _apply = None  # what operators do: _rules.py

    def __new__(cls, numbers, quantizer):
        self = Tensor._make_wrapper_subclass(
            cls, tuple(numbers.shape), strides=tuple(numbers.stride()), storage_offset=numbers.storage_offset(), dtype=numbers.dtype, device=numbers.device
        )
        self._numbers, self._quantizer = numbers, quantizer
        return self

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return cls._apply(func, args, kwargs or {})

    @property
    def dtype(self):
        return self._quantizer.dtype

    def new(self, *args, **kwargs):
        """Raises RuntimeError: the older constructor does not know how to quantize."""
        raise RuntimeError("new(): expected key in DispatchKeySet(CPU, CUDA, HIP, XLA, MPS, IPU, XPU, HPU, Lazy, PrivateUse1, Meta) but got: QuantizedCPU")

    def _uniform(self, words="Expected quantizer->qscheme() == kPerTensorAffine to be true, but got false."):
        if not isinstance(self._quantizer, PerTensor):
            raise RuntimeError(words)
        return self._quantizer

    def _channels(self):
        if not isinstance(self._quantizer, PerChannel):
            raise RuntimeError(
                "Expected quantizer->qscheme() == kPerChannelAffine || quantizer->qscheme() == kPerChannelAffineFloatQParams to be true, but got false."
            )
        return self._quantizer

    @in_traces
    def int_repr(self):
        """The whole numbers, a copy in uint8, int8 or int32."""
        return self._numbers.clone()

    def qscheme(self):
        """per_tensor_affine, per_channel_affine or per_channel_affine_float_qparams."""
        return self._quantizer.qscheme

    def q_scale(self):
        """The scale; RuntimeError of a tensor with several."""
        return self._uniform().scale

    def q_zero_point(self):
        """The zero point; RuntimeError of a tensor with several."""
        return self._uniform().zero_point

    @in_traces
    def q_per_channel_scales(self):
        """The scales (float64, or float32 beside floating zero points); RuntimeError of a tensor with one."""
        return self._channels().scales

    @in_traces
    def q_per_channel_zero_points(self):
        """The zero points; RuntimeError of a tensor with one."""
        return self._channels().zero_points

    def q_per_channel_axis(self):
        """The dimension that scales belong to; RuntimeError of a tensor with one."""
        return self._channels().axis

    @in_traces
    def dequantize(self):
        """The real numbers, float32."""
        q = self._quantizer
        if isinstance(q, PerTensor):
            return (self._numbers.float() - q.zero_point) * q.scale
        zero, scale = (q.along(v.to(self.device), self.dim()) for v in (q.zero_points, q.scales))
        return ((self._numbers.to(scale.dtype) - zero) * scale).float()  # scales of float64 round once

    def _with(self, numbers, quantizer=None):
        return QuantizedTensor(numbers, quantizer or self._quantizer)

    def to(self, *args, **kwargs):
        # The parser knows dtypes of plain tensors only; the tensor's own asks nothing.
        if kwargs.get("dtype") is self.dtype:
            del kwargs["dtype"]
        return super().to(*(a for a in args if a is not self.dtype), **kwargs)

    def element_size(self):
        return self._numbers.element_size()

    def data_ptr(self):
        return self._numbers.data_ptr()

    def untyped_storage(self):
        return self._numbers.untyped_storage()

    def storage(self):
        return cresset.storage.TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype, _internal=True)

    _typed_storage = storage

    def is_floating_point(self):
        return False

    def is_signed(self):
        """Raises RuntimeError, as the dtype does."""
        return self.dtype.is_signed

    def is_contiguous(self, memory_format=_C.contiguous_format):
        return self._numbers.is_contiguous(memory_format=memory_format)

    def type(self, dtype=None, non_blocking=False, **kwargs):
        if dtype is not None:
            raise RuntimeError("Creation of quantized tensor requires quantized dtype like torch.quint8")
        return f"torch.quantized.{KINDS[self.dtype][3]}Tensor"

    def requires_grad_(self, requires_grad=True):
        if requires_grad:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        return self

    def numpy(self, *, force=False):
        raise TypeError(f"Got unsupported ScalarType {KINDS[self.dtype][3]}")

    def __array__(self, dtype=None):
        return self.numpy()

    def tolist(self):
        raise RuntimeError("load_scalar: invalid type")

    def item(self):
        return self.dequantize().item()

    __float__ = item

    def __setitem__(self, index, value):
        # A number is one of those that the elements stand for, not one of the integers that are kept.
        super().__setitem__(index, cresset.tensor(float(value)) if isinstance(value, (bool, int, float)) else value)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = self.clone()
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        q = self._quantizer
        facts = (q.qscheme, q.scale, q.zero_point) if isinstance(q, PerTensor) else (q.qscheme, q.scales, q.zero_points, q.axis)
        numbers = self._numbers
        from collections import OrderedDict

        return cresset._utils._rebuild_qtensor, (
            self.storage(), numbers.storage_offset(), tuple(numbers.shape), tuple(numbers.stride()), facts, False, OrderedDict(),
        )  # fmt: skip

    def __repr__(self, *, tensor_contents=None):
        q = self._quantizer
        prefix = _prefix(cresset.empty(0))
        suffixes = [f"size={tuple(self.shape)}", f"dtype={self.dtype}", f"quantization_scheme={q.qscheme}"]
        if self.device.type != "cpu":
            suffixes.insert(0, f"device='{self.device}'")
        if isinstance(q, PerTensor):
            suffixes += [f"scale={q.scale}", f"zero_point={q.zero_point}"]
        else:
            suffixes += [f"scale={q.scales}", f"zero_point={q.zero_points}", f"axis={q.axis}"]
        text = _values(self.dequantize(), len(prefix)) if tensor_contents is None else tensor_contents
        lead = "Parameter containing:\n" if getattr(self, "_is_param", False) else ""
        return lead + _add_suffixes(prefix + text, suffixes, len(prefix), False)

    __str__ = __repr__

    def __format__(self, spec):
        return object.__format__(self, spec)
