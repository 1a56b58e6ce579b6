"""Autocast blocks: which operators compute in which type, the cache of cast parameters, custom Functions, errors."""

import threading

import pytest

import cresset as torch
from cresset import amp, nn
from cresset.nn import functional as F
from cresset.utils._python_dispatch import TorchDispatchMode

one = torch.ones(2, 2)
low, half = one.bfloat16(), one.half()
bf16, f32, f64, c64 = torch.bfloat16, torch.float32, torch.float64, torch.complex64

# name: (call, type of the result in a block for the CPU)
CALLS = {
    "mm": (lambda: one @ one, bf16),
    "mm, mixed": (lambda: torch.mm(half, low), bf16),
    "mm, double": (lambda: one.double() @ one.double(), f64),
    "mm, out=": (lambda: torch.mm(one, one, out=torch.empty(2, 2)), f32),
    "bmm": (lambda: torch.bmm(one[None], one[None]), bf16),
    "addmm": (lambda: one.addmm(one, low), bf16),
    "baddbmm": (lambda: one[None].baddbmm(one[None], one[None]), bf16),
    "linear": (lambda: F.linear(one, one), bf16),
    "conv1d": (lambda: F.conv1d(one[None], one[None]), bf16),
    "conv_transpose1d": (lambda: F.conv_transpose1d(one[None], one[:, None]), bf16),
    "einsum": (lambda: torch.einsum("ij,jk", one, one), bf16),
    "attention": (lambda: F.scaled_dot_product_attention(one, one, one), bf16),
    "prelu": (lambda: F.prelu(one, one[0]), bf16),
    "matrix_power": (lambda: torch.linalg.matrix_power(one, 2), bf16),
    "lstm": (lambda: nn.LSTM(2, 2)(one)[0], bf16),
    "mv": (lambda: one.mv(one[0]), f32),
    "inner": (lambda: torch.inner(one, one), bf16),
    "inner of vectors": (lambda: torch.inner(one[0], one[0]), f32),
    "tensordot": (lambda: torch.tensordot(one, one, 1), bf16),
    "tensordot over all": (lambda: torch.tensordot(one, one, 2), f32),
    "bilinear": (lambda: F.bilinear(one, one, torch.ones(3, 2, 2)), f32),
    "outer": (lambda: torch.outer(one[0], one[0]), f32),
    "prod": (lambda: low.prod(), f32),
    "mse_loss": (lambda: F.mse_loss(low, low), f32),
    "cross_entropy": (lambda: F.cross_entropy(low, torch.tensor([0, 1])), f32),
    "nll_loss": (lambda: F.nll_loss(low, torch.tensor([0, 1])), f32),
    "l1_loss": (lambda: F.l1_loss(half, half), f32),
    "kl_div": (lambda: F.kl_div(low, low), f32),
    "binary_cross_entropy": (lambda: F.binary_cross_entropy(low, low), f32),
    "inv": (lambda: torch.linalg.inv(low + torch.eye(2)), f32),
    "cholesky": (lambda: torch.linalg.cholesky(torch.eye(2).bfloat16()), f32),
    "fft": (lambda: torch.fft.fft(low), c64),
    "polar": (lambda: torch.polar(low, low), c64),
    "quantile": (lambda: low.quantile(0.5), f32),
    "adaptive_avg_pool3d": (lambda: F.adaptive_avg_pool3d(low[None, None], 1), f32),
    "layer_norm": (lambda: F.layer_norm(one, (2,)), f32),
    "cat, mixed": (lambda: torch.cat([one, low]), f32),
    "cat, low": (lambda: torch.cat([low, low]), bf16),
    "cat, double": (lambda: torch.cat([one, one.double()]), f64),
    "cat, integers": (lambda: torch.cat([one.int(), one.int()]), torch.int32),
    "stack": (lambda: torch.stack([low, one]), f32),
    "index_copy": (lambda: one.index_copy(0, torch.tensor([0]), low[:1]), f32),
    "softmax": (lambda: low.softmax(0), bf16),
    "add": (lambda: low + one, f32),
    "chain": (lambda: ((one @ one) @ one).logsumexp(0), bf16),
}


@pytest.mark.parametrize("name", CALLS)
def test_types(name):
    call, expected = CALLS[name]
    with torch.autocast("cpu"):
        assert call().dtype is expected


def test_states_and_nesting():
    assert not torch.is_autocast_enabled("cpu") and not torch.is_autocast_enabled() and torch.get_autocast_dtype("cpu") is bf16
    assert torch.get_autocast_dtype("cuda") is torch.float16 and torch.is_autocast_cache_enabled()
    with torch.autocast("cpu", dtype=torch.float16, cache_enabled=False) as block:
        assert isinstance(block, amp.autocast) and (one @ one).dtype is torch.float16 and not torch.is_autocast_cache_enabled()
        with torch.autocast("cpu", enabled=False):
            assert (one @ one).dtype is f32 and not torch.is_autocast_cpu_enabled()
        with torch.autocast("cpu", dtype=bf16):
            assert (one @ one).dtype is bf16
        with block:
            assert (one @ one).dtype is torch.float16
        assert (one @ one).dtype is torch.float16 and torch.get_autocast_cpu_dtype() is torch.float16
    assert not torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") is bf16 and torch.is_autocast_cache_enabled()
    with pytest.raises(ZeroDivisionError), torch.autocast("cpu"):
        raise ZeroDivisionError
    assert (one @ one).dtype is f32


def test_decorator_and_threads():
    @torch.autocast("cpu")
    def product():
        other = []
        thread = threading.Thread(target=lambda: other.append((one @ one).dtype))
        thread.start()
        thread.join()
        return (one @ one).dtype, other[0]

    assert product() == (bf16, f32) and product.__name__ == "product"


def test_gradients_and_the_cache():
    layer = nn.Linear(2, 2)
    casts = []

    class Count(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is torch.ops.aten._to_copy.default and args[0].shape == (2, 2):
                casts.append(func)
            return func(*args, **(kwargs or {}))

    def run(**options):
        casts.clear()
        with Count(), torch.autocast("cpu", **options):
            y = layer(layer(one[:1]))
        return y

    y = run()
    assert y.dtype is bf16 and len(casts) == 1  # the weight, once
    y.sum().backward()
    assert layer.weight.grad.dtype is f32 and layer.weight.grad.abs().sum() > 0
    run(cache_enabled=False)
    assert len(casts) == 2
    with torch.autocast("cpu"):
        with torch.no_grad():
            layer(one)
        assert layer(one).requires_grad  # what was cast without recording is not taken
        before = layer(one)
        with torch.no_grad():
            layer.weight.zero_()
        assert not torch.equal(layer(one), before)  # nor what was cast before the parameter was written


def test_custom_functions():
    seen = []

    def product(**options):
        class Product(torch.autograd.Function):
            @staticmethod
            @amp.custom_fwd(device_type="cpu", **options)
            def forward(ctx, a, b):
                ctx.save_for_backward(a, b)
                seen.append((torch.is_autocast_enabled("cpu"), a.dtype))
                return a @ b

            @staticmethod
            @amp.custom_bwd(device_type="cpu")
            def backward(ctx, grad):
                a, b = ctx.saved_tensors
                seen.append((torch.is_autocast_enabled("cpu"), grad.dtype))
                return grad @ b.t(), a.t() @ grad

        return Product.apply

    x = torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu"):
        y = product()(x, x)
    y.sum().backward()
    assert y.dtype is bf16 and x.grad.dtype is f32 and seen == [(True, f32), (True, bf16)]
    seen.clear()
    with torch.autocast("cpu"):
        y = product(cast_inputs=torch.float64)(x, x)
    y.sum().backward()
    assert y.dtype is f64 and seen == [(False, f64), (False, f64)]
    seen.clear()
    product(cast_inputs=torch.float64)(x, x)
    assert seen == [(False, f32)]


@pytest.mark.filterwarnings("ignore:Overriding a previously registered kernel")
def test_rules_for_any_operator():
    from cresset.library import _scoped_library, register_autocast

    seen = []
    with _scoped_library("amplib", "DEF") as lib:
        lib.define("f(Tensor x, Tensor[] ys, *, int n=1) -> Tensor")
        lib.impl("f", lambda x, ys, n=1: seen.append((x.dtype, ys[0].dtype, torch.is_autocast_enabled("cpu"))) or x.clone(), "CPU")
        register_autocast("amplib::f", "cpu", bf16, lib=lib)
        torch.ops.amplib.f(one, [one])
        with torch.autocast("cpu"):
            torch.ops.amplib.f(one, [one.double()], n=2)
        assert seen == [(f32, f32, False), (bf16, f64, True)]
    with _scoped_library("aten", "FRAGMENT") as lib:
        register_autocast("aten::tanh", "cpu", bf16, lib=lib)
        register_autocast(torch.ops.aten.mm.default, "cpu", f32, lib=lib)  # in the place of the table's, which warns
        with torch.autocast("cpu"):
            assert one.tanh().dtype is bf16 and torch.mm(one, one).dtype is f32
        assert one.tanh().dtype is f32
    with torch.autocast("cpu"):
        assert one.tanh().dtype is f32 and torch.mm(one, one).dtype is bf16
    for wrong, error, words in (
        (3, ValueError, "Expected `device_type` of type `str`"),
        ("nowhere", RuntimeError, "device type at start of device string: nowhere"),
    ):
        with pytest.raises(error, match=words):
            register_autocast("aten::tanh", wrong, bf16)


@pytest.mark.filterwarnings("ignore:Overriding a previously registered kernel")
def test_kernels_of_the_user_come_first():
    from cresset.library import _scoped_library

    with _scoped_library("aten", "IMPL") as lib:
        lib.impl("prod", lambda x, dtype=None: torch.full((), 42.0), "AutocastCPU")
        assert one.prod() == 1
        with torch.autocast("cpu"):
            assert one.prod() == 42


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: torch.autocast(3), ValueError, "Expected `device_type` of type `str`, got: `<class 'int'>`"),
        (lambda: torch.autocast("nowhere"), RuntimeError, "device type at start of device string: nowhere"),
        (lambda: torch.autocast("meta"), RuntimeError, "User specified an unsupported autocast device_type 'meta'"),
        (lambda: torch.autocast("privateuseone"), AssertionError, "`get_amp_supported_dtype\\(\\) -> List\\[torch.dtype\\]`"),
        (lambda: amp.custom_fwd(lambda ctx: 1, device_type=3), ValueError, "Expected `device_type` of type `str`"),
        (lambda: amp.custom_bwd(lambda ctx: 1, device_type=3), ValueError, "Expected `device_type` of type `str`"),
        (lambda: torch.is_autocast_enabled("nowhere"), RuntimeError, "device type at start of device string"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_what_cannot_be_is_off():
    with pytest.warns(UserWarning, match="In CPU autocast, but the target dtype is not supported. Disabling autocast.\nCPU Autocast only supports dtypes of"):
        block = torch.autocast("cpu", dtype=f32)
    with block:
        assert (one @ one).dtype is f32
    with pytest.warns(UserWarning, match="CUDA is not available"), torch.autocast("cuda"):
        assert not torch.is_autocast_enabled("cuda") and (one @ one).dtype is f32
    assert amp.is_autocast_available("cpu") and amp.is_autocast_available("privateuseone") and not amp.is_autocast_available("meta")


def test_another_devices_block_leaves_the_cpu_alone():
    torch.set_autocast_enabled("privateuseone", True)
    try:
        assert (one @ one).dtype is f32 and torch._C._is_any_autocast_enabled()
    finally:
        torch.set_autocast_enabled("privateuseone", False)
    assert not torch._C._is_any_autocast_enabled()


def test_settings_take_keywords():
    assert torch.get_autocast_dtype(device_type="cpu") is torch.bfloat16 and torch.is_autocast_enabled(device_type="cpu") is False
    torch.set_autocast_dtype(device_type="cpu", dtype=torch.float16)
    try:
        assert torch.get_autocast_dtype("cpu") is torch.float16
    finally:
        torch.set_autocast_dtype("cpu", torch.bfloat16)
    torch.set_autocast_enabled(device_type="cpu", enabled=False)
    torch.set_autocast_enabled(False)
    for function in (torch.get_autocast_dtype, torch.is_autocast_enabled):
        with pytest.raises(TypeError, match=r"argument 'device_type' \(position 1\) must be str, not int"):
            function(3)
