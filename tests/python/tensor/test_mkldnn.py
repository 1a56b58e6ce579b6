"""Tensors of the layout _mkldnn: what is computed on them, their gradients, and what is refused. Words and kinds of results are PyTorch 2.13's."""

import copy

import pytest

import cresset
from cresset import nn
from cresset.autograd import gradcheck
from cresset.nn import functional as F
from cresset.utils import mkldnn

X = cresset.arange(24.0).view(1, 2, 3, 4).sin()
M = X.to_mkldnn()
W = cresset.arange(36.0).view(3, 2, 2, 3).cos()

SAME = {
    "relu": lambda x: x.relu(),
    "gelu": F.gelu,
    "sigmoid": cresset.sigmoid,
    "softmax": lambda x: x.softmax(1),
    "add": lambda x: cresset.add(x, x, alpha=2),
    "mul": lambda x: x * x * 3,
    "pool": lambda x: F.max_pool2d(x, 2),
    "average": lambda x: F.avg_pool2d(x, 2, 1),
    "adaptive": lambda x: F.adaptive_avg_pool2d(x, 1),
    "reshape": lambda x: x.reshape(4, -1),
    "transpose": lambda x: x.transpose(1, 3),
    "conv": lambda x: F.conv2d(x, W),
    "prelu": lambda x: F.prelu(x, cresset.tensor([0.25])),
    "norm": lambda x: F.batch_norm(x, cresset.ones(2), cresset.ones(2), cresset.ones(2), cresset.zeros(2)),
}


@pytest.mark.parametrize("name", SAME)
def test_computes_what_the_dense_tensor_computes(name):
    dense, opaque = X.clone().requires_grad_(), X.to_mkldnn().requires_grad_()
    expected, got = SAME[name](dense), SAME[name](opaque)
    assert got.is_mkldnn and got.layout is cresset._mkldnn and got.shape == expected.shape
    assert cresset.equal(got.to_dense(), expected)
    (expected.square().sum()).backward()
    (got.to_dense().square().sum()).backward()
    assert opaque.grad.is_mkldnn and cresset.equal(opaque.grad.to_dense(), dense.grad)
    (gradient,) = cresset.autograd.grad(SAME[name](opaque).to_dense().square().sum(), opaque)
    assert gradient.is_mkldnn and cresset.equal(gradient.to_dense(), dense.grad)


def test_dense_weights_are_read_in_the_dtype_of_the_input():
    got = F.conv2d(X.to_mkldnn(cresset.bfloat16), W, cresset.ones(3))
    assert got.dtype is cresset.bfloat16 and cresset.allclose(got.to_dense(cresset.float32), F.conv2d(X, W, cresset.ones(3)), atol=0.05)


def test_conversions_copy():
    opaque = X.to_mkldnn(cresset.bfloat16)
    assert (opaque.dtype, opaque.element_size(), opaque.size(), opaque.numel()) == (cresset.bfloat16, 2, X.size(), 24)
    assert opaque.to_dense(cresset.float32).dtype is cresset.float32 and not X.is_mkldnn
    other = M.clone()
    dense = other.to_dense()
    other.zero_()
    assert dense.equal(X) and M.to_dense().equal(X) and not other.to_dense().any()
    assert copy.deepcopy(M).to_dense().equal(X) and M.detach().to_dense().equal(X)
    assert cresset.empty(2, 3, layout=cresset._mkldnn).is_mkldnn and cresset.zeros(2, layout=cresset._mkldnn).to_dense().tolist() == [0, 0]
    leaf = X.clone().requires_grad_()
    leaf.to_mkldnn().relu().to_dense().sum().backward()
    assert leaf.grad.equal((X > 0).float())


def test_writes_in_place():
    a, b = X.to_mkldnn(), X.to_mkldnn()
    same = a
    a += b
    assert a is same and a.to_dense().equal(X + X)
    assert cresset.mul(a, b, out=b) is b and b.to_dense().equal((X + X) * X)
    assert a.copy_(b) is a and a.to_dense().equal(b.to_dense())


def test_text():
    assert str(cresset.arange(3.0).to_mkldnn()) == f"tensor([0., 1., 2.], layout={cresset._mkldnn})"


REFUSED = [
    (lambda: X.double().to_mkldnn(), RuntimeError, "dense_to_mkldnn expects float, bfloat16, half, uint8, int8 tensor input"),
    (lambda: X.to_mkldnn(cresset.double), RuntimeError, "cpu tensor only can be converted to be a float, bfloat16, half, uint8, int8 mkldnn tensor"),
    (lambda: X.to(cresset.uint8).to_mkldnn(cresset.float), RuntimeError, "For int8, uint8 cpu_tensor input, we should not change the data type."),
    (lambda: M.data_ptr(), RuntimeError, "Cannot access data pointer of Tensor that doesn't have storage"),
    (lambda: M.numpy(), TypeError, "can't convert Mkldnn layout tensor to numpy"),
    (lambda: M.storage(), NotImplementedError, "Cannot access storage of OpaqueTensorImpl"),
    (lambda: M.view(-1), RuntimeError, "Change to use reshape"),
    (lambda: M + X, RuntimeError, "itensor_from_mkldnn expects MKL-DNN tensor input"),
    (lambda: M + 1, RuntimeError, "itensor_from_mkldnn expects MKL-DNN tensor input"),
    (lambda: X.clone().copy_(M), RuntimeError, "Found self type = torch.FloatTensor and src type = Mkldnntorch.FloatTensor"),
    (lambda: M.clone().copy_(M.reshape(24)), RuntimeError, "copy_mkldnn_: only support same size tensor."),
    (lambda: F.max_pool2d(M, 2, dilation=2), RuntimeError, "mkldnn_max_pool2d does not support dilation case"),
    (lambda: M.sum(), NotImplementedError, "Could not run 'aten::sum' with arguments from the 'MkldnnCPU' backend"),
    (lambda: M.to_mkldnn(), NotImplementedError, "Could not run 'aten::to_mkldnn'"),
    (lambda: M.new([6]), RuntimeError, "but got: MkldnnCPU"),
    (lambda: cresset.mkldnn_max_pool2d(X, 2), NotImplementedError, "Could not run 'aten::mkldnn_max_pool2d' with arguments from the 'CPU' backend"),
    (lambda: cresset.empty(2, dtype=cresset.double, layout=cresset._mkldnn), RuntimeError, "get_mkldnn_dtype: unsupported data type"),
]


@pytest.mark.parametrize("i", range(len(REFUSED)))
def test_refused(i):
    call, error, words = REFUSED[i]
    with pytest.raises(error, match=words):
        call()


def test_modules_answer_in_the_layout_of_their_input():
    cresset.manual_seed(0)
    dense = nn.Sequential(nn.Conv2d(2, 4, 2), nn.BatchNorm2d(4), nn.PReLU(), nn.Flatten(), nn.Linear(24, 5)).eval()
    opaque = mkldnn.to_mkldnn(copy.deepcopy(dense))
    assert [type(m).__name__ for m in opaque] == ["MkldnnConv2d", "MkldnnBatchNorm", "MkldnnPrelu", "Flatten", "MkldnnLinear"]
    assert all(buffer.is_mkldnn for buffer in opaque.buffers()) and not list(opaque.parameters())
    expected = dense(X)
    assert cresset.allclose(opaque(M).to_dense(), expected) and cresset.allclose(opaque(X), expected) and opaque(M).is_mkldnn
    with pytest.raises(AssertionError, match="Only support eval mode batchnorm"):
        mkldnn.to_mkldnn(nn.BatchNorm2d(2))


def test_scripts_convert():
    @cresset.jit.script
    def convert(x):
        if not x.is_mkldnn:
            x = x.to_mkldnn()
        return x

    assert convert(X).is_mkldnn and convert(M).is_mkldnn
    assert cresset.backends.mkldnn.is_available() and cresset.ops.mkldnn._is_mkldnn_bf16_supported()
    assert not cresset.ops.mkldnn._is_mkldnn_acl_supported()  # Arm's library of kernels


@pytest.mark.parametrize(
    "shape, transposed, dilation, opaque, expected",
    [
        ((2, 4, 7), False, 1, False, "Slow2d"),
        ((2, 4, 7, 7, 7), False, 1, False, "Slow3d"),
        ((2, 4, 7, 7), False, 2, False, "SlowDilated2d"),
        ((2, 4, 7, 7), True, 1, False, "SlowTranspose2d"),
        ((0, 4, 7, 7), False, 1, False, "Empty"),
        ((0, 4, 7, 7), False, 1, True, "MkldnnEmpty"),
        ((2, 4, 7, 7), False, 1, True, "Mkldnn"),
    ],
)
def test_kinds_of_convolutions(shape, transposed, dilation, opaque, expected):
    x, rank = cresset.ones(shape), len(shape) - 2
    weight = cresset.ones(4, 4, *[2] * rank, requires_grad=True)
    x = x.to_mkldnn() if opaque else x
    arguments = (x, weight, None, [1] * rank, [0] * rank, [dilation] * rank, transposed, [0] * rank, 1)
    with cresset.backends.mkldnn.flags(enabled=False):
        assert cresset._C._select_conv_backend(*arguments) is cresset._C._ConvBackend[expected]
    if expected.startswith("Slow"):
        enabled = cresset._C._select_conv_backend(*arguments)
        assert enabled is cresset._C._ConvBackend["MkldnnTranspose" if transposed else "Mkldnn"]
    result = cresset.ops.aten.convolution(*arguments)
    assert result.is_mkldnn == opaque
    result.backward(result.detach())
    assert weight.grad.shape == weight.shape and not weight.grad.is_mkldnn


@pytest.mark.filterwarnings("ignore:Input #0 requires gradient")
def test_gradcheck_takes_them():
    options = {"eps": 1e-2, "atol": 4e-2, "rtol": 1e-2}  # (float32)
    for fast in (False, True):
        assert gradcheck(lambda x: x.to_dense().sin(), X.to_mkldnn().requires_grad_(), fast_mode=fast, **options)
    with pytest.raises(ValueError, match="MKLDNN output is not supported at gradcheck yet"):
        gradcheck(lambda x: x.to_mkldnn(), X.clone().requires_grad_(), **options)
