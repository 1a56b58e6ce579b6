"""Batch normalisation, and what instance normalisation shares with it."""

from typing import Optional

import cresset
from cresset._scripting import is_scripting
from cresset import Tensor
from cresset.nn import functional as F

from ._parameters import register_affine, reset_affine, tensors_of_norm
from .lazy import LazyModuleMixin
from .module import Module

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d",
]  # fmt: skip


class _NormBase(Module):
    momentum: Optional[float]

    # Version 2 added num_batches_tracked.
    _version = 2

    def __init__(self, num_features, eps, momentum, affine, track_running_stats, device, dtype, bias):
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        register_affine(self, num_features, affine, bias, device, dtype)
        if track_running_stats:
            self.register_buffer("running_mean", cresset.zeros(num_features, device=device, dtype=dtype))
            self.register_buffer("running_var", cresset.ones(num_features, device=device, dtype=dtype))
            self.register_buffer("num_batches_tracked", cresset.tensor(0, dtype=cresset.long, device=device))
        else:
            self.register_buffer("running_mean", None)
            self.register_buffer("running_var", None)
            self.register_buffer("num_batches_tracked", None)
        self.reset_parameters()

    def reset_running_stats(self):
        """Running mean 0, variance 1, no batches seen."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        """Weight 1, bias 0, and reset_running_stats."""
        self.reset_running_stats()
        reset_affine(self)

    def extra_repr(self):
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        version = local_metadata.get("version", None)
        if (version is None or version < 2) and self.track_running_stats:
            key = prefix + "num_batches_tracked"
            if key not in state_dict:
                tracked = self.num_batches_tracked
                known = tracked is not None and not tracked.is_meta
                state_dict[key] = tracked if known else cresset.tensor(0, dtype=cresset.long)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    __constants__ = ["_dims"]
    _dims = ()

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def _check_input_dim(self, input: Tensor):
        if input.dim() not in self._dims:
            expected = " or ".join([f"{d}D" for d in self._dims])
            raise ValueError(f"expected {expected} input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        given = self.momentum
        momentum = 0.0 if given is None else given
        weight, bias, running_mean, running_var = tensors_of_norm(self)
        batch_statistics = self.training or (running_mean is None and running_var is None)
        if self.training:
            if not self.track_running_stats:
                return F.batch_norm(input, None, None, weight, bias, batch_statistics, momentum, self.eps)
            tracked = self.num_batches_tracked
            if tracked is not None:
                tracked.add_(1)
                if given is None:  # cumulative average
                    momentum = 1.0 / float(tracked)
        return F.batch_norm(input, running_mean, running_var, weight, bias, batch_statistics, momentum, self.eps)


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of (N, C) or (N, C, L)."""

    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of (N, C, H, W)."""

    _dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of (N, C, D, H, W)."""

    _dims = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation of (N, C, ...) over the batches of all ranks of `process_group` (None: all); in a single process that is BatchNorm.

    Ranks may have different N, even none. The gradient cannot be differentiated again where there are several ranks.
    """

    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, process_group=None, device=None,
        dtype=None, *, bias=True,
    ):  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor):
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def _several_ranks(self):
        from cresset import distributed

        of_batch = self.training or (self.running_mean is None and self.running_var is None)
        return of_batch and distributed.is_initialized() and distributed.get_world_size(self.process_group) > 1

    def forward(self, input: Tensor) -> Tensor:
        if is_scripting():  # scripts know nothing of other ranks
            return self._forward_alone(input)
        else:
            return self._forward_of_ranks(input) if self._several_ranks() else self._forward_alone(input)

    _forward_alone = _BatchNorm.forward

    def _forward_of_ranks(self, input):
        from ._sync_batchnorm import SyncBatchNormFunction

        self._check_input_dim(input)
        weight, bias, running_mean, running_var = tensors_of_norm(self)
        if not (self.training and self.track_running_stats):
            running_mean = running_var = None
        momentum = 0.0 if self.momentum is None else self.momentum
        if running_mean is not None and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # cumulative average
                momentum = 1.0 / float(self.num_batches_tracked)
        return SyncBatchNormFunction.apply(input, weight, bias, running_mean, running_var, self.eps, momentum, self.process_group)

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """`module` with every batch normalisation in it replaced by a SyncBatchNorm around the same tensors."""
        result = module
        if isinstance(module, _BatchNorm):
            result = cls(
                module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats, process_group,
                bias=module.bias is not None,
            )  # fmt: skip
            if module.affine:
                with cresset.no_grad():
                    result.weight, result.bias = module.weight, module.bias
            result.running_mean, result.running_var = module.running_mean, module.running_var
            result.num_batches_tracked = module.num_batches_tracked
            result.training = module.training
            if hasattr(module, "qconfig"):
                result.qconfig = module.qconfig
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """The normalisations whose number of features is the first input's number of channels."""

    def __init__(
        self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *, bias=True
    ):  # fmt: skip
        # Built without parameters of its own; they take their size from the first input.
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=bias)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = self._lazy_parameter(device, dtype)
            if bias:
                self.bias = self._lazy_parameter(device, dtype)
        if track_running_stats:
            self.running_mean = self._lazy_buffer(device, dtype)
            self.running_var = self._lazy_buffer(device, dtype)
            self.num_batches_tracked = cresset.tensor(0, dtype=cresset.long, device=device)

    def reset_parameters(self):
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input):
        if not self.has_uninitialized_params():
            return
        self.num_features = input.size(input.dim() - self._ndim if self._ndim else 1)
        for tensor in (self.weight, self.bias, self.running_mean, self.running_var):
            if tensor is not None:
                tensor.materialize((self.num_features,))
        self.reset_parameters()

    _ndim = 0  # of an unbatched input; 0 when the batch is always there


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """BatchNorm1d that takes num_features from the first input."""

    cls_to_become = BatchNorm1d
    _dims = BatchNorm1d._dims


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """BatchNorm2d that takes num_features from the first input."""

    cls_to_become = BatchNorm2d
    _dims = BatchNorm2d._dims


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """BatchNorm3d that takes num_features from the first input."""

    cls_to_become = BatchNorm3d
    _dims = BatchNorm3d._dims
