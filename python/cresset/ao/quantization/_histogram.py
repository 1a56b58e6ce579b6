"""The observer that clips: it keeps a histogram, and takes the range whose quantization error is least."""

import warnings
from typing import List, Tuple

import cresset
from cresset import Tensor

from ._observer_base import _EPS, UniformQuantizationObserverBase
from .utils import is_per_tensor

__all__ = ["HistogramObserver"]


class HistogramObserver(UniformQuantizationObserverBase):
    """A histogram of all values in `bins` bins; the range loses outer bins as long as the expected square of the error becomes less."""

    histogram: cresset.Tensor
    min_val: cresset.Tensor
    max_val: cresset.Tensor

    def __init__(self, bins=2048, dtype=cresset.quint8, qscheme=cresset.per_tensor_affine, reduce_range=False, quant_min=None, quant_max=None,
                 factory_kwargs=None, eps=_EPS, is_dynamic=False, **kwargs):  # fmt: skip
        if not is_per_tensor(qscheme):
            raise NotImplementedError(
                "HistogramObserver's qscheme only support torch.per_tensor_symmetric                     and torch.per_tensor_affine."
            )
        if is_dynamic:
            raise NotImplementedError("HistogramObserver doesn't support dynamic quantization")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        factory_kwargs = factory_kwargs or {}
        self.bins = bins
        self.register_buffer("histogram", cresset.zeros(bins, **factory_kwargs))
        self.register_buffer("min_val", cresset.tensor(float("inf"), **factory_kwargs))
        self.register_buffer("max_val", cresset.tensor(float("-inf"), **factory_kwargs))
        self.dst_nbins = 2 ** (8 * self.dtype.itemsize)
        self.upsample_rate = 16  # parts of a bin, when it is laid into other bins

    def _get_norm(self, delta_begin: Tensor, delta_end: Tensor, density: Tensor) -> Tensor:
        """The integral of the square over [begin, end], times the density."""
        return density * (delta_end**3 - delta_begin**3) / 3

    def _compute_quantization_error(self, next_start_bin: int, next_end_bin: int) -> float:
        """The expected square of the error when the bins from the first to the last are spread over the whole numbers."""
        bin_width = (float(self.max_val) - float(self.min_val)) / self.bins
        step = bin_width * (next_end_bin - next_start_bin + 1) / self.dst_nbins
        if step == 0.0:
            return 0.0
        begin = (cresset.arange(self.bins) - next_start_bin) * bin_width
        end = begin + bin_width
        first = cresset.div(begin, step, rounding_mode="floor").clamp(0, self.dst_nbins - 1)
        last = cresset.div(end, step, rounding_mode="floor").clamp(0, self.dst_nbins - 1)
        density = self.histogram / bin_width
        half = cresset.ones(self.bins) * (step / 2)
        norm = self._get_norm(begin - (first + 0.5) * step, half, density)
        norm += (last - first - 1) * self._get_norm(cresset.tensor(-step / 2), cresset.tensor(step / 2), density)
        norm += self._get_norm(-half, end - (last + 0.5) * step, density)
        return float(norm.sum())

    def _non_linear_param_search(self) -> Tuple[Tensor, Tensor]:
        """(least, greatest) value of the best range."""
        if self.histogram.size()[0] != self.bins:
            raise AssertionError("bins mismatch")
        bin_width = (self.max_val - self.min_val) / self.bins
        total = float(cresset.sum(self.histogram))
        sums: List[float] = cresset.cumsum(self.histogram, dim=0).tolist()
        step = 1e-5  # the part of the values that each try gives up
        low_part, high_part, first, last, least = 0.0, 1.0, 0, self.bins - 1, float("inf")
        while low_part < high_part:
            next_low, next_high = low_part + step, high_part - step
            left, right = first, last
            while left < last and sums[left] < next_low * total:
                left += 1
            while right > first and sums[right] > next_high * total:
                right -= 1
            next_first, next_last = first, last
            if left - first > last - right:
                next_first, low_part = left, next_low
            else:
                next_last, high_part = right, next_high
            if next_first == first and next_last == last:
                continue
            norm = self._compute_quantization_error(next_first, next_last)
            if norm > least:
                break
            least, first, last = norm, next_first, next_last
        return self.min_val + bin_width * first, self.min_val + bin_width * (last + 1)

    def _upscale_histogram(self, histogram, orig_min, orig_max, update_min, update_max):
        """The histogram of [orig_min, orig_max] in bins of [update_min, update_max]."""
        parts = histogram.repeat_interleave(self.upsample_rate) / self.upsample_rate
        width = (orig_max - orig_min) / (self.bins * self.upsample_rate)
        middles = cresset.linspace(orig_min.item(), orig_max.item(), self.bins * self.upsample_rate + 1)[:-1] + 0.5 * width
        edges = cresset.linspace(update_min.item(), update_max.item(), self.bins + 1)
        to = (cresset.bucketize(middles, edges, right=True) - 1).clamp_max(self.bins - 1)
        return cresset.bincount(to, weights=parts, minlength=self.bins)

    def _combine_histograms(self, orig_hist, orig_min, orig_max, update_hist, update_min, update_max):
        """Both histograms in the bins of the second, which cover those of the first."""
        if update_min == orig_min and update_max == orig_max:
            return orig_hist + update_hist
        if orig_min == orig_max:  # all values were the same
            one = cresset.histc(orig_min.reshape(1), bins=self.bins, min=update_min.item(), max=update_max.item())
            return one * orig_hist.sum() + update_hist
        if update_min > orig_min or update_max < orig_max:
            raise AssertionError("the new range must contain the old one")
        return update_hist + self._upscale_histogram(orig_hist, orig_min, orig_max, update_min, update_max)

    def reset_histogram(self, x, min_val, max_val):
        """Begin again with the values of x."""
        self._keep(cresset.histc(x, self.bins, min=min_val.item(), max=max_val.item()), min_val, max_val)

    def _keep(self, histogram, low, high):
        self.min_val.resize_(low.shape).copy_(low)
        self.max_val.resize_(high.shape).copy_(high)
        if self.min_val.numel() != 1 or self.max_val.numel() != 1:
            raise AssertionError("histogram min/max values must be scalar.")
        self.histogram.resize_(histogram.shape).copy_(histogram)

    def forward(self, x_orig):
        if x_orig.numel() == 0:
            return x_orig
        x = x_orig.detach().to(self.min_val.dtype)
        low, high = cresset.aminmax(x)
        if low == float("-inf") or high == float("inf"):
            warnings.warn("torch.inf detected in input tensor, ignoring input", stacklevel=2)
            x = x[x.abs() != float("inf")]
            if x.numel() == 0:
                return x_orig
            low, high = cresset.aminmax(x)
        if self.min_val == float("inf") or self.max_val == float("-inf"):
            self.reset_histogram(x, low, high)
            return x_orig
        low, high = cresset.minimum(self.min_val, low), cresset.maximum(self.max_val, high)
        seen = cresset.histc(x, self.bins, min=low.item(), max=high.item())
        self._keep(self._combine_histograms(self.histogram, self.min_val, self.max_val, seen, low, high), low, high)
        return x_orig

    @cresset.jit.export
    def calculate_qparams(self):
        if self.min_val == float("inf") and self.max_val == float("-inf"):
            warnings.warn("must run observer before calling calculate_qparams. Returning default values.", stacklevel=2)
            return cresset.tensor([1.0]), cresset.tensor([0])
        if self.bins != len(self.histogram):
            raise AssertionError("The number of bins in histogram should be equal to the number of bins supplied while making this observer")
        low, high = self._non_linear_param_search()
        return self._calculate_qparams(low, high)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        version = local_metadata.get("version", None)
        if version is None or version < 3:  # their shape was [1] once, or they were None before anything was seen
            for name, start in (("min_val", float("inf")), ("max_val", float("-inf"))):
                key = prefix + name
                if key in state_dict and state_dict[key].shape == cresset.Size([0]):
                    state_dict[key] = cresset.tensor(start)
        for name in ("min_val", "max_val"):
            key = prefix + name
            if key in state_dict:
                setattr(self, name, state_dict[key])
            elif strict:
                missing_keys.append(key)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def extra_repr(self):
        return f"min_val={self.min_val}, max_val={self.max_val}"


HistogramObserver.__module__ = UniformQuantizationObserverBase.__module__
