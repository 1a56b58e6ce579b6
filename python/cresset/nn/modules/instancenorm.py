"""Instance normalisation."""

import warnings

from cresset import Tensor
from cresset.nn import functional as F

from .batchnorm import _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d",
]  # fmt: skip


class _InstanceNorm(_NormBase):
    _ndim = 0  # of an unbatched input

    def _get_no_batch_dim(self):
        """Number of dimensions of an unbatched input."""
        return self._ndim

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=False,
        track_running_stats=False,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        # Archives without versions are older than layers without statistics: these are a mistake of their own there.
        if local_metadata.get("version") is None and not self.track_running_stats:
            kept = [key for key in (prefix + name for name in ("running_mean", "running_var")) if key in state_dict]
            if kept:
                kind, names = type(self).__name__, " and ".join(f'"{key}"' for key in kept)
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {names} for {kind} with track_running_stats=False. If "
                    f"state_dict is a checkpoint saved before 0.4.0, this may be expected because {kind} does not track running stats by default "
                    "since 0.4.0. Please remove these keys from state_dict. If the running stats are actually needed, instead set "
                    f"track_running_stats=True in {kind} to enable them. See the documentation of {kind} for details."
                )
                for key in kept:
                    state_dict.pop(key)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def _apply_instance_norm(self, input: Tensor) -> Tensor:
        momentum = self.momentum
        return F.instance_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, self.training or not self.track_running_stats,
            0.0 if momentum is None else momentum, self.eps,
        )  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        n = self._ndim
        if input.dim() != n and input.dim() != n + 1:
            raise ValueError(f"expected {n}D or {n + 1}D input (got {input.dim()}D input)")
        feature_dim = input.dim() - n
        if input.size(feature_dim) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={feature_dim} to match num_features ({self.num_features}), but got: "
                    f"{input.size(feature_dim)}."
                )
            warnings.warn(
                f"input's size at dim={feature_dim} does not match num_features. You can silence this warning by not passing in "
                "num_features, which is not used because affine=False",
                stacklevel=2,
            )
        if feature_dim == 0:
            return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)
        return self._apply_instance_norm(input)


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of (N, C, L) or (C, L)."""

    _ndim = 2


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of (N, C, H, W) or (C, H, W)."""

    _ndim = 3


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of (N, C, D, H, W) or (C, D, H, W)."""

    _ndim = 4


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """InstanceNorm1d that takes num_features from the first input."""

    cls_to_become = InstanceNorm1d
    _ndim = InstanceNorm1d._ndim


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """InstanceNorm2d that takes num_features from the first input."""

    cls_to_become = InstanceNorm2d
    _ndim = InstanceNorm2d._ndim


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """InstanceNorm3d that takes num_features from the first input."""

    cls_to_become = InstanceNorm3d
    _ndim = InstanceNorm3d._ndim
