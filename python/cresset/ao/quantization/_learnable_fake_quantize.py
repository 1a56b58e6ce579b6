"""A fake quantizer whose scale and zero point are learnt."""

import cresset
from cresset._fake_quantize import Learnt
from cresset.nn import Parameter

from .fake_quantize import FakeQuantizeBase
from .utils import is_per_channel, is_per_tensor, is_symmetric

__all__ = []


class _LearnableFakeQuantize(FakeQuantizeBase):
    """Begins with the scale and zero point that an observer finds, or with those given, and learns them."""

    def __init__(self, observer, quant_min=0, quant_max=255, scale=1.0, zero_point=0.0, channel_len=-1, use_grad_scaling=False, **observer_kwargs):
        super().__init__()
        if quant_min >= quant_max:
            raise AssertionError("quant_min must be strictly less than quant_max.")
        self.quant_min, self.quant_max, self.use_grad_scaling = quant_min, quant_max, use_grad_scaling
        observer_kwargs.update({"quant_min": quant_min, "quant_max": quant_max})
        length = 1 if channel_len == -1 else channel_len
        if channel_len != -1 and (not isinstance(channel_len, int) or channel_len <= 0):
            raise AssertionError("Channel size must be a positive integer.")
        self.scale = Parameter(cresset.tensor([scale] * length))
        self.zero_point = Parameter(cresset.tensor([zero_point] * length))
        self.activation_post_process = observer(**observer_kwargs)
        watching = self.activation_post_process
        self.dtype, self.qscheme, self.ch_axis = watching.dtype, watching.qscheme, getattr(watching, "ch_axis", -1)
        self.register_buffer("fake_quant_enabled", cresset.tensor([1], dtype=cresset.uint8))
        self.register_buffer("static_enabled", cresset.tensor([1], dtype=cresset.uint8))
        self.register_buffer("learning_enabled", cresset.tensor([0], dtype=cresset.uint8))
        if not (is_per_tensor(self.qscheme) or is_per_channel(self.qscheme)):
            raise AssertionError(f"a scheme by tensor or by channel was required; got {self.qscheme}")
        self.bitwidth = int((quant_max - quant_min + 1).bit_length() - 1)
        self.register_buffer("eps", cresset.tensor([cresset.finfo(cresset.float32).eps]))

    def enable_param_learning(self):
        """Learn scale and zero point; the observer rests."""
        self.toggle_qparam_learning(enabled=True).toggle_fake_quant(enabled=True).toggle_observer_update(enabled=False)
        return self

    def enable_static_estimate(self):
        """Take scale and zero point of the observer."""
        self.toggle_qparam_learning(enabled=False).toggle_fake_quant(enabled=True).toggle_observer_update(enabled=True)

    def enable_static_observation(self):
        """Watch, and round nothing."""
        self.toggle_qparam_learning(enabled=False).toggle_fake_quant(enabled=False).toggle_observer_update(enabled=True)

    def toggle_observer_update(self, enabled=True):
        """Watch, or not."""
        self.static_enabled[0] = int(enabled)
        return self

    def enable_observer(self, enabled=True):
        """Watch, or not."""
        self.toggle_observer_update(enabled)

    def toggle_qparam_learning(self, enabled=True):
        """Learn, or not."""
        self.learning_enabled[0] = int(enabled)
        self.scale.requires_grad = self.zero_point.requires_grad = enabled
        return self

    def toggle_fake_quant(self, enabled=True):
        """Round, or not."""
        self.fake_quant_enabled[0] = int(enabled)
        return self

    def observe_quant_params(self):
        """Print scale and zero point."""
        print(f"_LearnableFakeQuantize Scale: {self.scale.detach()}")
        print(f"_LearnableFakeQuantize Zero Point: {self.zero_point.detach()}")

    def calculate_qparams(self):
        self.scale.data.clamp_(min=self.eps.item())
        return self.scale.detach(), self.zero_point.detach().round().clamp(self.quant_min, self.quant_max).long()

    def forward(self, X):
        if self.static_enabled[0] == 1:
            self.activation_post_process(X.detach())
            scale, zero_point = self.activation_post_process.calculate_qparams()
            self.scale.data.copy_(scale)
            self.zero_point.data.copy_(zero_point)
        else:
            self.scale.data.clamp_(min=self.eps.item())
        if self.fake_quant_enabled[0] != 1:
            return X
        if is_symmetric(self.qscheme):
            self.zero_point.data.zero_()
        factor = 1.0 / (X.numel() * self.quant_max) ** 0.5 if self.use_grad_scaling else 1.0
        shape = [-1 if d == self.ch_axis else 1 for d in range(X.dim())] if is_per_channel(self.qscheme) else [1] * X.dim()
        return Learnt.apply(X, self.scale, self.zero_point, shape, self.quant_min, self.quant_max, factor)
