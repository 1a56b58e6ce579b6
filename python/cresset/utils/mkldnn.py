"""Modules whose parameters have the layout `_mkldnn`: `to_mkldnn(module)`."""

import cresset
from cresset import nn
from cresset.nn import functional as F

__all__ = ["MkldnnBatchNorm", "MkldnnConv1d", "MkldnnConv2d", "MkldnnConv3d", "MkldnnLinear", "MkldnnPrelu", "to_mkldnn"]


class _Mkldnn(nn.Module):
    """What all have in common: opaque parameters as buffers, and a result in the input's own layout."""

    def _keep(self, dtype, **tensors):
        for name, value in tensors.items():
            self.register_buffer(name, None if value is None else value.detach().to_mkldnn(dtype))

    def forward(self, x):
        """The module's result, in the layout of x."""
        y = self._compute(x if x.is_mkldnn else x.to_mkldnn())
        return y if x.is_mkldnn else y.to_dense()


class MkldnnLinear(_Mkldnn):
    """A Linear in the layout `_mkldnn`; the bias in float32 unless `dtype` is another one."""

    def __init__(self, dense_module, dtype):
        super().__init__()
        self._keep(dtype, weight=dense_module.weight, bias=dense_module.bias)

    def _compute(self, x):
        return F.linear(x, self.weight, self.bias)


class _MkldnnConvNd(_Mkldnn):
    def __init__(self, dense_module, dtype):
        super().__init__()
        self.stride, self.padding, self.dilation, self.groups = dense_module.stride, dense_module.padding, dense_module.dilation, dense_module.groups
        if dense_module.padding_mode != "zeros":
            raise TypeError(f"padding with {dense_module.padding_mode} is not supported by modules in the layout _mkldnn")
        self._keep(dtype, bias=dense_module.bias, weight=dense_module.weight)

    def _compute(self, x):
        function = (F.conv1d, F.conv2d, F.conv3d)[self.weight.dim() - 3]
        return function(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class MkldnnConv1d(_MkldnnConvNd):
    """A Conv1d in the layout `_mkldnn`."""


class MkldnnConv2d(_MkldnnConvNd):
    """A Conv2d in the layout `_mkldnn`."""


class MkldnnConv3d(_MkldnnConvNd):
    """A Conv3d in the layout `_mkldnn`."""


class MkldnnBatchNorm(_Mkldnn):
    """A BatchNorm2d or BatchNorm3d with parameters, in evaluation, in the layout `_mkldnn`. AssertionError in training and without parameters or statistics."""

    def __init__(self, dense_module):
        super().__init__()
        if dense_module.training:
            raise AssertionError("Only support eval mode batchnorm for mkldnn path now")
        if not dense_module.track_running_stats:
            raise AssertionError("Only support track_running_stats=True for mkldnn path now")
        if not dense_module.affine:
            raise AssertionError("Only support affine=True for mkldnn path now")
        self.exponential_average_factor = 0.0 if dense_module.momentum is None else dense_module.momentum
        self.eps = dense_module.eps
        self._keep(None, weight=dense_module.weight, bias=dense_module.bias, running_mean=dense_module.running_mean, running_var=dense_module.running_var)

    def _compute(self, x):
        return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, False, self.exponential_average_factor, self.eps)


class MkldnnPrelu(_Mkldnn):
    """A PReLU in the layout `_mkldnn`."""

    def __init__(self, dense_module, dtype):
        super().__init__()
        self._keep(dtype, weight=dense_module.weight)

    def _compute(self, x):
        return F.prelu(x, self.weight)


_KINDS = ((nn.Linear, MkldnnLinear), (nn.Conv1d, MkldnnConv1d), (nn.Conv2d, MkldnnConv2d), (nn.Conv3d, MkldnnConv3d), (nn.PReLU, MkldnnPrelu))


def to_mkldnn(module, dtype=cresset.float):
    """The module with the Linear, Conv1d to Conv3d, BatchNorm2d, BatchNorm3d and PReLU modules in it replaced by those of this file, whose parameters are in
    `dtype` (float32, bfloat16 or float16; AssertionError for another). They compute in evaluation only: the parameters take no gradient."""
    if dtype not in (cresset.float, cresset.bfloat16, cresset.half):
        raise AssertionError("MKLDNN only support float, bfloat16, and half path now")
    for kind, replacement in _KINDS:
        if isinstance(module, kind):
            return replacement(module, dtype)
    if isinstance(module, (nn.BatchNorm2d, nn.BatchNorm3d)):
        return MkldnnBatchNorm(module)
    for name, child in module.named_children():
        setattr(module, name, to_mkldnn(child, dtype))
    return module
