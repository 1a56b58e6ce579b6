"""Layers call the function of nn.functional that stands there when they run, so programs that count or replace functions see each call. The calls
are PyTorch 2.13's for the same layers."""

import inspect

import cresset
import pytest
from cresset import nn
from cresset.nn import functional

SIZES = {1: (2, 4, 8), 2: (2, 4, 8, 8), 3: (2, 4, 6, 6, 6)}
LAYERS = {
    f"{make}{d}d": (getattr(nn, f"{make}{d}d"), arguments, d, f"{function}{d}d")
    for d in (1, 2, 3)
    for make, function, arguments in (
        ("Conv", "conv", (4, 4, 3)), ("ConvTranspose", "conv_transpose", (4, 4, 3)), ("LazyConv", "conv", (4, 3)),
        ("LazyConvTranspose", "conv_transpose", (4, 3)), ("MaxPool", "max_pool", (2,)), ("AvgPool", "avg_pool", (2,)), ("LPPool", "lp_pool", (2, 2)),
        ("AdaptiveAvgPool", "adaptive_avg_pool", (2,)), ("AdaptiveMaxPool", "adaptive_max_pool", (2,)), ("BatchNorm", "batch_norm", (4,)),
        ("InstanceNorm", "instance_norm", (4,)), ("ReflectionPad", "pad", (1,)), ("ConstantPad", "pad", (1, 0.0)), ("Dropout", "dropout", ()), ("ZeroPad", "pad", (1,)),
    )
}  # fmt: skip


@pytest.fixture
def called(monkeypatch):
    """Names of the functions that are called, in order."""
    names = []

    def recorded(name, function):
        def call(*args, **kwargs):
            names.append(name)
            return function(*args, **kwargs)

        return call

    for name, function in list(vars(functional).items()):
        if name[0] != "_" and "torch_function" not in name and callable(function) and not inspect.isclass(function):
            monkeypatch.setattr(functional, name, recorded(name, function))
    return names


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_calls_its_function(called, name):
    make, arguments, d, function = LAYERS[name]
    make(*arguments)(cresset.randn(SIZES[d]))
    plain = function.removesuffix(f"{d}d")
    assert called[0] == (plain if plain in ("batch_norm", "instance_norm", "pad") else function)


def test_unpooling_and_fractional_pooling(called):
    x = cresset.randn(2, 4, 8, 8)
    y, indices = nn.MaxPool2d(2, return_indices=True)(x)
    nn.MaxUnpool2d(2)(y, indices)
    nn.FractionalMaxPool2d(2, 2)(x)
    assert [name for name in called if "with_indices" not in name] == ["max_pool2d", "max_unpool2d", "fractional_max_pool2d"]


def test_attention_calls_its_parts(called):
    x = cresset.randn(2, 4, 8)
    nn.MultiheadAttention(8, 2)(x, x, x)
    assert called == ["multi_head_attention_forward", "linear", "softmax", "linear"]
    called.clear()
    nn.MultiheadAttention(8, 2, dropout=0.5)(x, x, x)
    assert called == ["multi_head_attention_forward", "linear", "softmax", "dropout", "linear"]
    called.clear()
    nn.TransformerEncoderLayer(8, 2, 16)(x)
    assert called == ["multi_head_attention_forward", "linear", "scaled_dot_product_attention", "linear", "dropout", "layer_norm", "linear", "dropout",
                      "linear", "dropout", "layer_norm"]  # fmt: skip


def test_a_function_put_in_its_place_computes_the_layer(monkeypatch):
    monkeypatch.setattr(functional, "conv2d", lambda input, weight, bias, *rest: input.sum() * weight.numel())
    assert nn.Conv2d(1, 2, 3)(cresset.ones(1, 1, 4, 4)).item() == 16 * 18


def test_compiled_layers_follow(monkeypatch):
    layer, x = nn.Sequential(nn.Conv2d(1, 2, 3), nn.MaxPool2d(2), nn.ConvTranspose2d(2, 1, 2)), cresset.randn(1, 1, 6, 6)
    fast = cresset.compile(layer, fullgraph=True)
    assert fast(x).allclose(layer(x), atol=1e-6)
    monkeypatch.setattr(functional, "max_pool2d", lambda input, *rest: functional.avg_pool2d(input, 2))
    assert fast(x).allclose(layer(x), atol=1e-6)
