"""Linear layers with weights in int8 or float16."""

import cresset
from cresset import nn
from cresset.ao.nn import intrinsic as nni
from cresset.ao.nn.quantized.modules import linear as nnq
from cresset.ao.nn.quantized.modules.utils import _quantize_weight

__all__ = ["Linear"]


class Linear(nnq.Linear):
    """nn.Linear whose weights are int8 (`dtype=cresset.qint8`) or float16 and whose input is quantized to seven bits for each call.

    `weight()` and `bias()` are methods: the quantized weights (or the float16 numbers in float32), and the bias.
    """

    _version = 4  # of its part of state dicts; since then inputs have seven bits
    _FLOAT_MODULE = nn.Linear

    def __init__(self, in_features, out_features, bias_=True, dtype=cresset.qint8):
        super().__init__(in_features, out_features, bias_, dtype=dtype)
        self.version = 4
        if dtype is cresset.qint8:
            weight = cresset._make_per_tensor_quantized_tensor(cresset.zeros(out_features, in_features, dtype=cresset.int8), 1.0, 0)
            self.set_weight_bias(weight, self.bias())

    def forward(self, x):
        return self._product(x)

    def _product(self, x):
        packed = self._packed_params._packed_params
        if self._packed_params._whole:
            version = self.version
            reduced = version is not None and version >= 4
            return cresset.ops.quantized.linear_dynamic(x, packed, reduce_range=reduced).to(x.dtype)
        return cresset.ops.quantized.linear_dynamic_fp16(x, packed).to(x.dtype)

    def _get_name(self):
        return "DynamicQuantizedLinear"

    def extra_repr(self):
        text = f"in_features={self.in_features}, out_features={self.out_features}, dtype={self._packed_params.dtype}"
        return text if self._packed_params.dtype is not cresset.qint8 else text + f", qscheme={self.weight().qscheme()}"

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        self.version = local_metadata.get("version", None)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    @classmethod
    def _of(cls, linear, observer, kind):
        made = cls(linear.in_features, linear.out_features, linear.bias is not None, dtype=observer.dtype)
        weight = linear.weight.detach().float()
        made.set_weight_bias(_quantize_weight(weight, observer) if kind is cresset.qint8 else weight, linear.bias)
        made.training = linear.training
        return made

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantized form of a float layer, by its `qconfig` where it has one. AssertionError for dtypes other than qint8 and float16."""
        from cresset.ao.nn.qat import dynamic as nnqatd
        from cresset.nn.modules.linear import NonDynamicallyQuantizableLinear

        known = [nn.Linear, NonDynamicallyQuantizableLinear, nni.LinearReLU, nnqatd.Linear]
        if type(mod) not in known:
            raise AssertionError(f"nn.quantized.dynamic.Linear.from_float only works for one of {[k.__name__ for k in known]}; got {type(mod)}")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        if mod.qconfig is not None and mod.qconfig.weight is not None:
            observer = mod.weight_fake_quant if hasattr(mod, "weight_fake_quant") else mod.qconfig.weight()
        else:
            observer = cresset.ao.quantization.default_dynamic_qconfig.weight()
        if observer.dtype not in (cresset.qint8, cresset.float16):
            raise AssertionError(f"The only supported dtypes for dynamic quantized linear are qint8 and float16, got: {observer.dtype}")
        source = mod[0] if type(mod) is nni.LinearReLU else mod
        observer(source.weight)
        return cls._of(source, observer, observer.dtype)

    @classmethod
    def from_reference(cls, ref_qlinear):
        """Of a layer that computes with real numbers what quantized ones stand for."""
        made = cls(ref_qlinear.in_features, ref_qlinear.out_features, dtype=ref_qlinear.weight_dtype)
        made.set_weight_bias(ref_qlinear.get_quantized_weight(), ref_qlinear.bias)
        return made
