"""Scaling of gradients by factors that are tensors, as PyTorch's operators of these names do it: nothing waits for a device."""

import cresset

__all__ = ["_amp_foreach_non_finite_check_and_unscale_", "_amp_update_scale_"]


@cresset.no_grad()
def _amp_foreach_non_finite_check_and_unscale_(self, found_inf, inv_scale):
    """Multiply each tensor of a list by the one element of `inv_scale`; `found_inf`, one element, becomes 1 where a number of them is not finite."""
    for name, value in (("found_inf", found_inf), ("inv_scale", inv_scale)):
        if value.numel() != 1:
            raise RuntimeError(f"{name} must be a 1-element tensor.")
        if value.dtype != cresset.float32:
            raise RuntimeError(f"{name} must be a float tensor.")
    for tensor in self:
        bad = tensor.isfinite().logical_not().any()
        # One that is distributed is not finite where a part of it is not; each rank multiplies its own part.
        bad, part = (bad.full_tensor(), tensor.to_local()) if hasattr(tensor, "to_local") else (bad, tensor)
        found_inf.copy_(cresset.maximum(found_inf, bad.to(found_inf)))
        part.mul_(inv_scale.reshape(()).to(part.device))


@cresset.no_grad()
def _amp_update_scale_(self, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, growth_interval):
    """The next factor, in place of `self`, one element; returns it.

    Where `found_inf` is not 0 it is multiplied by `scale_backoff_factor`, and `growth_tracker` (int32) begins at 0 again; otherwise that counts,
    and the factor grows by `scale_growth_factor` when it comes to `growth_interval`, unless it would be infinite.
    """
    for name, value, dtype in (("growth_tracker", growth_tracker, cresset.int32), ("current_scale", self, cresset.float32), ("found_inf", found_inf, cresset.float32)):
        if value.numel() != 1:
            raise RuntimeError(f"{name} must be a 1-element tensor.")
        if value.dtype != dtype:
            raise RuntimeError(f"{name} must be {'an int' if dtype == cresset.int32 else 'a float'} tensor.")
    found, counted = found_inf.reshape(self.shape) != 0, growth_tracker.reshape(self.shape) + 1
    grows = counted == growth_interval
    grown = self * scale_growth_factor
    self.copy_(cresset.where(found, self * scale_backoff_factor, cresset.where(grows & grown.isfinite(), grown, self)))
    growth_tracker.copy_(cresset.where(found | grows, cresset.zeros_like(counted), counted).reshape(growth_tracker.shape))
    return self
