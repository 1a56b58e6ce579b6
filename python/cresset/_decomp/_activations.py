"""Activations and their gradients."""

import math

import cresset

from ._rules import aten, in_float, number, rule

where, mul = aten.where, aten.mul


@rule("silu")
@in_float
def silu(self):
    return self * cresset.sigmoid(self)


@rule("silu_backward")
@in_float
def silu_backward(grad_output, self):
    sigmoid = cresset.sigmoid(self)
    return grad_output * sigmoid * (self * aten.rsub(sigmoid, 1) + 1)


@rule("gelu", core=False, inplace=True)
@in_float
def gelu(self, *, approximate="none"):
    if approximate == "tanh":
        inner = (self + self * self * self * 0.044715) * math.sqrt(2 / math.pi)
        return self * 0.5 * (cresset.tanh(inner) + 1)
    return self * 0.5 * (cresset.erf(self * math.sqrt(0.5)) + 1)


@rule("gelu_backward")
@in_float
def gelu_backward(grad, self, *, approximate="none"):
    if approximate != "tanh":
        cdf = (cresset.erf(self * math.sqrt(0.5)) + 1) * 0.5
        pdf = cresset.exp(self * self * -0.5) * (1 / math.sqrt(2 * math.pi))
        return grad * (cdf + self * pdf)
    beta = math.sqrt(2 / math.pi)
    square = self * self
    tanh = cresset.tanh((self + square * self * 0.044715) * beta)
    left = self * 0.5
    slope = left * (number(1, tanh) - tanh * tanh) * ((square * (3 * 0.044715) + 1) * beta)
    return grad * ((tanh + 1) * 0.5 + slope)


@rule("sigmoid_backward")
@in_float
def sigmoid_backward(grad_output, output):
    return grad_output * (output * aten.rsub(output, 1)).conj_physical() if output.is_complex() else grad_output * (output * aten.rsub(output, 1))


@rule("tanh_backward")
@in_float
def tanh_backward(grad_output, output):
    slope = aten.rsub(output * output, 1)
    return grad_output * (slope.conj_physical() if output.is_complex() else slope)


@rule("threshold")
@in_float
def threshold(self, threshold, value):
    return cresset.where(self <= threshold, value, self)


@rule("threshold_backward")
@in_float
def threshold_backward(grad_output, self, threshold):
    return cresset.where(self <= threshold, 0, grad_output)


@rule("relu", core=False)
@in_float
def relu(self):
    return cresset.where(self <= 0, 0, self)


@rule("leaky_relu", core=False, inplace=True)
@in_float
def leaky_relu(self, negative_slope=0.01):
    return cresset.where(self > 0, self, self * negative_slope)


@rule("leaky_relu_backward")
@in_float
def leaky_relu_backward(grad_output, self, negative_slope, self_is_result):
    return cresset.where(self > 0, grad_output, grad_output * negative_slope)


@rule("hardtanh", core=False, inplace=True)
def hardtanh(self, min_val=-1, max_val=1):
    if not self.is_floating_point():  # as integers, whatever the limits are
        min_val, max_val = int(min_val), int(max_val)
    return cresset.clamp(self, min_val, max_val)


@rule("hardtanh_backward")
@in_float
def hardtanh_backward(grad_output, self, min_val, max_val):
    return cresset.where((self <= min_val) | (self >= max_val), 0, grad_output)


@rule("hardsigmoid")
@in_float
def hardsigmoid(self):
    return cresset.clamp(cresset.clamp(self + 3, min=0), max=6) / 6


@rule("hardsigmoid_backward")
@in_float
def hardsigmoid_backward(grad_output, self):
    return cresset.where((self > -3) & (self < 3), grad_output * (1 / 6), 0)


@rule("hardswish")
@in_float
def hardswish(self):
    return self * cresset.clamp(cresset.clamp(self + 3, min=0), max=6) / 6


@rule("hardswish_backward")
@in_float
def hardswish_backward(grad_output, self):
    inner = cresset.where(self <= 3, grad_output * (self / 3 + 0.5), grad_output)
    return cresset.where(self < -3, 0, inner)


@rule("hardshrink")
@in_float
def hardshrink(self, lambd=0.5):
    return cresset.where(cresset.abs(self) <= lambd, 0, self)


@rule("softshrink")
@in_float
def softshrink(self, lambd=0.5):
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}")
    return cresset.where(cresset.abs(self) > lambd, self - cresset.sign(self) * lambd, self * 0)


@rule("elu", core=False, inplace=True)
@in_float
def elu(self, alpha=1, scale=1, input_scale=1):
    positive = self if scale == 1 else self * scale
    return cresset.where(self > 0, positive, cresset.expm1(self if input_scale == 1 else self * input_scale) * (alpha * scale))


@rule("elu_backward")
@in_float
def elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result):
    if is_result:
        slope = (self_or_result + alpha * scale) * (grad_output * input_scale)
    else:
        slope = grad_output * (input_scale * alpha * scale) * cresset.exp(self_or_result * input_scale)
    return cresset.where(self_or_result <= 0, slope, grad_output * scale)


@rule("softplus")
@in_float
def softplus(self, beta=1, threshold=20):
    if beta == 1:
        return cresset.where(self > threshold, self, cresset.log1p(cresset.exp(self)))
    scaled = self * beta
    return cresset.where(scaled > threshold, self, cresset.log1p(cresset.exp(scaled)) / beta)


@rule("softplus_backward")
@in_float
def softplus_backward(grad_output, self, beta, threshold):
    z = cresset.exp(self * beta)
    return cresset.where(self * beta > threshold, grad_output, grad_output * z / (z + 1.0))


@rule("mish")
@in_float
def mish(self):
    return self * cresset.tanh(aten.softplus(self))


@rule("mish_backward")
@in_float
def mish_backward(grad_output, self):
    tanh = cresset.tanh(aten.softplus(self))
    return grad_output * (tanh + self * cresset.sigmoid(self) * aten.rsub(tanh * tanh, 1))


@rule("log_sigmoid_forward")
@in_float
def log_sigmoid_forward(self):
    smallest = cresset.minimum(self.new_zeros(()), self)
    z = cresset.exp(-cresset.abs(self))
    return smallest - cresset.log1p(z), self.new_zeros((0,))


@rule("log_sigmoid_backward")
@in_float
def log_sigmoid_backward(grad_output, self, buffer):
    negative = self < 0
    z = cresset.exp(-cresset.abs(self))
    return grad_output * (cresset.where(negative, 1, 0) - cresset.where(negative, 1, -1) * (z / (z + 1)))


@rule("_prelu_kernel")
def _prelu_kernel(self, weight):
    return cresset.where(self > 0, self, weight * self)


@rule("_prelu_kernel_backward")
def _prelu_kernel_backward(grad_output, self, weight):
    return cresset.where(self > 0, grad_output, weight * grad_output), cresset.where(self > 0, 0.0, self * grad_output)


@rule("_softmax", core=False)
def _softmax(self, dim, half_to_float):
    self, dtype = self.contiguous(), self.dtype  # so are the results of the operator
    x = self.to(cresset.float32) if dtype in (cresset.float16, cresset.bfloat16) else self
    if self.numel() == 0:
        exp = cresset.exp(x)
    else:
        exp = cresset.exp(x - cresset.amax(x, [dim], keepdim=True))
    result = exp / cresset.sum(exp, [dim], keepdim=True)
    return result if half_to_float else result.to(dtype)


@rule("_log_softmax", core=False)
def _log_softmax(self, dim, half_to_float):
    self, dtype = self.contiguous(), self.dtype  # so are the results of the operator
    x = self.to(cresset.float32) if dtype in (cresset.float16, cresset.bfloat16) else self
    shifted = x if self.numel() == 0 else x - cresset.amax(x, [dim], keepdim=True)
    result = shifted - cresset.log(cresset.sum(cresset.exp(shifted), [dim], keepdim=True))
    return result if half_to_float else result.to(dtype)


@rule("_safe_softmax")
def _safe_softmax(self, dim, dtype=None):
    out = cresset.softmax(self, dim, dtype=dtype)
    masked = cresset.all(self.eq(float("-inf")), dim=dim, keepdim=True)
    return cresset.where(masked, cresset.zeros_like(out), out)


@rule("_scaled_dot_product_flash_attention_for_cpu")
def _flash_attention(query, key, value, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None):
    out = aten._scaled_dot_product_attention_math.default(query, key, value, attn_mask, dropout_p, is_causal, scale=scale)[0]
    scores = cresset.matmul(query, key.mT) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        scores = scores.masked_fill(cresset.ones(scores.shape[-2:], dtype=cresset.bool, device=query.device).triu(1), -math.inf)
    if attn_mask is not None:
        scores = scores + attn_mask
    return out, cresset.logsumexp(scores, -1)


@rule("_softmax_backward_data")
@in_float
def _softmax_backward_data(grad_output, output, dim, input_dtype):
    product = grad_output * output
    result = product - output * cresset.sum(product, [dim], keepdim=True)
    return result if result.dtype == input_dtype else result.to(input_dtype)


@rule("_log_softmax_backward_data")
@in_float
def _log_softmax_backward_data(grad_output, output, dim, input_dtype):
    result = grad_output - cresset.exp(output) * cresset.sum(grad_output, [dim], keepdim=True)
    return result if result.dtype == input_dtype else result.to(input_dtype)


@rule("native_dropout", core=False)
def native_dropout(input, p, train):
    if train is False or p == 0:
        return input, cresset.ones_like(input, dtype=cresset.bool)
    if p == 1:
        return cresset.zeros_like(input), cresset.zeros_like(input, dtype=cresset.bool)
    kept = cresset.rand_like(input) > p
    return kept * input * (1 / (1 - p)), kept


@rule("native_dropout_backward")
def native_dropout_backward(grad_output, mask, scale):
    return grad_output * (mask.to(grad_output.dtype) * scale)
