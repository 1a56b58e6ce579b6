"""What reports are made of: ranges of batches and epochs, ranges of channels, and how far the largest values are from the others."""

import cresset
from cresset.ao.quantization.observer import ObserverBase

__all__ = ["ModelReportObserver"]


class ModelReportObserver(ObserverBase):
    """Looks at data, and gives it back. comp_percentile: with which quantile of a channel its greatest value is compared."""

    def __init__(self, ch_axis=1, comp_percentile=0.9):
        super().__init__(cresset.qint8)
        self.num_batches_tracked, self.average_batch_activation_range, self.ch_axis = 0, cresset.tensor(0.0), ch_axis
        self.register_buffer("epoch_activation_min", cresset.tensor(float("inf")))
        self.register_buffer("epoch_activation_max", cresset.tensor(float("-inf")))
        self.register_buffer("min_val", cresset.tensor([]))
        self.register_buffer("max_val", cresset.tensor([]))
        self.register_buffer("comp_percentile", cresset.tensor([comp_percentile]))
        self.register_buffer("average_percentile_ratio", cresset.tensor([]))
        self.register_buffer("percentile_batches_tracked", cresset.tensor([]))
        self.register_buffer("constant_channels", cresset.tensor([]))

    def forward(self, x):
        """The data as it came."""
        values = x.detach().to(self.epoch_activation_min.dtype)
        low, high = cresset.aminmax(values)
        self.epoch_activation_min.copy_(cresset.min(self.epoch_activation_min, low))
        self.epoch_activation_max.copy_(cresset.max(self.epoch_activation_max, high))
        batches = self.num_batches_tracked
        self.average_batch_activation_range = (self.average_batch_activation_range * batches + (high - low)) / (batches + 1)
        self.num_batches_tracked += 1
        channels = values.movedim(self.ch_axis, 0).flatten(start_dim=1)
        self._note_ranges(channels)
        self._note_percentiles(channels)
        return x

    def _note_ranges(self, channels):
        low, high = cresset.aminmax(channels, dim=1)
        known = self.min_val.numel() > 0
        self.min_val, self.max_val = (cresset.min(self.min_val, low), cresset.max(self.max_val, high)) if known else (low, high)

    def _note_percentiles(self, channels):
        """Channels whose values are all 0 have no ratio; where the quantile alone is 0 the ratio is the greatest number."""
        levels = cresset.tensor([float(self.comp_percentile), 1.0], dtype=channels.dtype)
        reference, greatest = cresset.quantile(channels, levels, dim=1, interpolation="lower")
        ratio = greatest / reference
        counts = ~ratio.isnan()
        if self.average_percentile_ratio.numel() == 0:
            self.average_percentile_ratio = cresset.zeros_like(ratio)
            self.percentile_batches_tracked = cresset.zeros_like(ratio, dtype=cresset.int32)
            self.constant_channels = cresset.zeros_like(ratio, dtype=cresset.int32)
        tracked = self.percentile_batches_tracked
        average = (self.average_percentile_ratio * tracked + cresset.nan_to_num(ratio)) / (tracked + 1)
        self.average_percentile_ratio = cresset.where(counts, average, self.average_percentile_ratio)
        self.percentile_batches_tracked = tracked + counts.to(cresset.int32)
        self.constant_channels = self.constant_channels + (channels.amax(1) == channels.amin(1)).to(cresset.int32)

    def get_batch_to_epoch_ratio(self):
        """The average range of a batch, of that of the epoch. ValueError where that is 0."""
        whole = self.epoch_activation_max - self.epoch_activation_min
        if whole == 0:
            raise ValueError("Range for Epoch is 0")
        return self.average_batch_activation_range / whole

    def reset_batch_and_epoch_values(self):
        """Begin a new epoch."""
        device = self.max_val.device
        self.num_batches_tracked, self.average_batch_activation_range = 0, cresset.tensor(0.0, device=device)
        self.epoch_activation_min, self.epoch_activation_max = cresset.tensor(float("inf"), device=device), cresset.tensor(float("-inf"), device=device)
        for name in ("min_val", "max_val", "average_percentile_ratio", "percentile_batches_tracked", "constant_channels"):
            setattr(self, name, cresset.tensor([], device=device))

    def calculate_qparams(self):
        """Exception: these observers choose no parameters."""
        raise Exception("calculate_qparams should not be called for ModelReportObserver")
