"""Convolutions and transposed convolutions in 1 to 3 spatial dimensions."""

from typing import List, Optional

import cresset
from cresset import Tensor
from cresset.nn import functional as F
from cresset.nn._functional._common import ntuple
from cresset.nn.parameter import Parameter

from ._by_name import ByName
from ._parameters import reset_linear, weight_and_bias
from .lazy import LazyModuleMixin
from .module import Module
from .utils import _pair, _reverse_repeat_tuple, _single, _triple  # noqa: F401  (layers of others import them from here)

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d", "LazyConv2d", "LazyConv3d",
    "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
]  # fmt: skip

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    __constants__ = ["padding_mode"]

    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, dilation, transposed, output_padding, groups, bias,
        padding_mode, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"padding_mode must be one of {{{', '.join(map(repr, _PADDING_MODES))}}}, but got padding_mode='{padding_mode}'"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        # What F.pad needs for the other padding modes: last dimension first, before and after.
        if isinstance(padding, str):
            around = [0, 0] * len(kernel_size)
            if padding == "same":
                for d, (step, taps) in enumerate(zip(dilation, kernel_size)):
                    total, last = step * (taps - 1), 2 * (len(kernel_size) - 1 - d)
                    around[last], around[last + 1] = total // 2, total - total // 2
        else:
            around = [amount for amount in reversed(padding) for _ in range(2)]
        self._reversed_padding_repeated_twice = around
        shape = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(cresset.empty((*shape, *kernel_size), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(cresset.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw weight and bias from the uniform distribution on ±1/sqrt(fan_in)."""
        reset_linear(self)

    def extra_repr(self):
        s = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * len(self.padding):
            s += f", padding={self.padding}"
        if self.dilation != (1,) * len(self.dilation):
            s += f", dilation={self.dilation}"
        if self.output_padding != (0,) * len(self.output_padding):
            s += f", output_padding={self.output_padding}"
        if self.groups != 1:
            s += f", groups={self.groups}"
        if self.bias is None:
            s += ", bias=False"
        if self.padding_mode != "zeros":
            s += f", padding_mode={self.padding_mode}"
        return s


class _Conv(_ConvNd):
    _ndim = 0

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros",
        device=None, dtype=None,
    ):  # fmt: skip
        n = self._ndim
        super().__init__(
            in_channels, out_channels, ntuple(kernel_size, n), ntuple(stride, n),
            padding if isinstance(padding, str) else ntuple(padding, n), ntuple(dilation, n), False, (0,) * n, groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
        if self.padding_mode != "zeros":
            padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            return self._function(padded, weight, bias, self.stride, [0] * self._ndim, self.dilation, self.groups)
        return self._function(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        weight, bias = weight_and_bias(self)
        return self._conv_forward(input, weight, bias)


class Conv1d(_Conv):
    """Convolution of (N, C, L) or (C, L); `padding` may be "same" or "valid"."""

    _ndim, _function = 1, ByName("conv1d")


class Conv2d(_Conv):
    """Convolution of (N, C, H, W) or (C, H, W); `padding` may be "same" or "valid"."""

    _ndim, _function = 2, ByName("conv2d")


class Conv3d(_Conv):
    """Convolution of (N, C, D, H, W) or (C, D, H, W); `padding` may be "same" or "valid"."""

    _ndim, _function = 3, ByName("conv3d")


class _ConvTransposeNd(_ConvNd):
    _ndim = 0

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1,
        padding_mode="zeros", device=None, dtype=None,
    ):  # fmt: skip
        n = self._ndim
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels, out_channels, ntuple(kernel_size, n), ntuple(stride, n), ntuple(padding, n), ntuple(dilation, n), True,
            ntuple(output_padding, n), groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def _output_padding(self, input: Tensor, output_size: Optional[List[int]]) -> List[int]:
        """The output padding that gives `output_size`; ValueError when none does."""
        if output_size is None:
            return list(self.output_padding)
        n = self._ndim
        extra = 2 if input.dim() == n + 2 else 1
        wanted = output_size[extra:] if len(output_size) == n + extra else output_size
        if len(wanted) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or {n + extra} elements (got {len(wanted)})"
            )
        stride, padding, dilation, kernel_size = list(self.stride), list(self.padding), list(self.dilation), list(self.kernel_size)
        smallest = [
            (input.size(d + extra) - 1) * stride[d] - 2 * padding[d] + dilation[d] * (kernel_size[d] - 1) + 1 for d in range(n)
        ]
        largest = [low + step - 1 for low, step in zip(smallest, stride)]
        for d in range(n):
            if not smallest[d] <= wanted[d] <= largest[d]:
                raise ValueError(
                    f"requested an output size of {wanted}, but valid sizes range from {smallest} to {largest} "
                    f"(for an input of {input.shape[extra:]})"
                )
        return [size - low for size, low in zip(wanted, smallest)]

    def forward(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
        weight, bias = weight_and_bias(self)
        return self._function(
            input, weight, bias, self.stride, self.padding, self._output_padding(input, output_size), self.groups,
            self.dilation,
        )  # fmt: skip


_ConvTransposeMixin = _ConvTransposeNd  # its older name


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution of (N, C, L) or (C, L)."""

    _ndim, _function = 1, ByName("conv_transpose1d")


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution of (N, C, H, W) or (C, H, W)."""

    _ndim, _function = 2, ByName("conv_transpose2d")


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution of (N, C, D, H, W) or (C, D, H, W)."""

    _ndim, _function = 3, ByName("conv_transpose3d")


class _LazyConvXdMixin(LazyModuleMixin):
    """The convolutions whose in_channels is the first input's number of channels."""

    def _make_lazy(self, out_channels, bias, device, dtype):
        self.out_channels = out_channels
        self.weight = self._lazy_parameter(device, dtype)
        if bias:
            self.bias = self._lazy_parameter(device, dtype)

    def reset_parameters(self):
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input, *args, **kwargs):
        if not self.has_uninitialized_params():
            return
        n = self._ndim
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {type(self).__name__}, but got input of size: "
                f"{input.shape}"
            )
        self.in_channels = input.shape[-n - 1]
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if self.transposed:
            shape = (self.in_channels, self.out_channels // self.groups)
        else:
            shape = (self.out_channels, self.in_channels // self.groups)
        self.weight.materialize((*shape, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


class _LazyConv(_LazyConvXdMixin, _Conv):
    def __init__(
        self, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros", device=None,
        dtype=None,
    ):  # fmt: skip
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._make_lazy(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvXdMixin, _ConvTransposeNd):
    def __init__(
        self, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1,
        padding_mode="zeros", device=None, dtype=None,
    ):  # fmt: skip
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode)
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """Conv1d that takes in_channels from the first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """Conv2d that takes in_channels from the first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """Conv3d that takes in_channels from the first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """ConvTranspose1d that takes in_channels from the first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """ConvTranspose2d that takes in_channels from the first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """ConvTranspose3d that takes in_channels from the first input."""

    cls_to_become = ConvTranspose3d
