"""Frozen modules whose weights took in what follows their layers: the answers stay, and so does what is not the same up to rounding."""

import itertools

import pytest

import cresset
from cresset import _C, jit, nn, rand, tensor

CONVOLUTIONS = {1: (nn.Conv1d, nn.BatchNorm1d), 2: (nn.Conv2d, nn.BatchNorm2d), 3: (nn.Conv3d, nn.BatchNorm3d)}


def sized(rank, channels=3):
    return rand(2, channels, *[5] * rank)


def frozen(module, example, traced, **options):
    module = module.eval()
    script = jit.trace(module, example) if traced else jit.script(module)
    return jit.freeze(script, **options)


def kinds(module):
    return {n.kind() for n in module.graph.nodes()}


def same(a, b):
    return cresset.allclose(a, b, atol=1e-5)


def worn(norm):
    """Statistics and weights that are not those of a new module."""
    with cresset.no_grad():
        for t in (norm.running_mean, norm.running_var, norm.weight, norm.bias):
            if t is not None:
                t.uniform_(0.5, 2)
    return norm


@pytest.mark.parametrize("rank, bias, affine, tracked, traced", itertools.product((1, 2, 3), *[(True, False)] * 4))
def test_batch_norm_behind_convolutions(rank, bias, affine, tracked, traced):
    conv, norm = CONVOLUTIONS[rank]
    module = nn.Sequential(conv(3, 4, 3, bias=bias), worn(norm(4, eps=0.01, affine=affine, track_running_stats=tracked)))
    f = frozen(module, sized(rank), traced)
    assert ("aten::batch_norm" in kinds(f)) != tracked
    x = sized(rank)
    assert same(f(x), module(x))


# (what follows, is it folded)
FOLLOWING = [
    ("a number", lambda y: y + 2.0, True),
    ("an integer", lambda y: y * 3, True),
    ("minus", lambda y: y - 0.5, True),
    ("divided", lambda y: y / 4, True),
    ("from the left", lambda y: 2.0 * y, True),
    ("a channel's number", lambda y: y * PER_CHANNEL, True),
    ("divided by a channel's number", lambda y: y / PER_CHANNEL, True),
    ("a tensor of one element", lambda y: y - tensor([[2]], dtype=cresset.int32), True),
    ("of another dtype", lambda y: y + PER_CHANNEL.double(), False),
    ("alpha", lambda y: cresset.add(y, 1, alpha=2), False),
    ("subtracted from", lambda y: 1 - y, False),
    ("no channel's number", lambda y: y + NOT_PER_CHANNEL, False),
    ("by zero", lambda y: y / 0, False),
    ("rounded", lambda y: cresset.div(y, 2, rounding_mode="floor"), False),
]
PER_CHANNEL, NOT_PER_CHANNEL = rand(4, 1, 1) + 1, rand(4, 1, 3)


class Followed(nn.Module):
    def __init__(self, bias, what):
        super().__init__()
        self.conv, self.what = nn.Conv2d(3, 4, 3, bias=bias), what

    def forward(self, x):
        return self.what(self.conv(x))


@pytest.mark.filterwarnings("ignore::cresset.jit.TracerWarning")
@pytest.mark.parametrize("what, folded", [c[1:] for c in FOLLOWING], ids=[c[0] for c in FOLLOWING])
@pytest.mark.parametrize("bias", [True, False])
def test_arithmetic_behind_convolutions(what, folded, bias):
    module = Followed(bias, what)
    f = frozen(module, sized(2), True)
    # 1 - y is rsub; what is left besides the convolution
    assert (kinds(f) - {"prim::Constant"} == {"aten::_convolution"}) == folded
    x = sized(2)
    assert cresset.allclose(f(x), module(x), atol=1e-5, equal_nan=True)


def test_several_in_a_row():
    class Row(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 4, 3), worn(nn.BatchNorm2d(4))
            self.a, self.b = tensor(2.2), tensor(2)

        def forward(self, x):
            return self.norm(cresset.add(cresset.mul(self.conv(x), self.a), self.b))

    for traced in (True, False):
        module, x = Row(), sized(2)
        f = frozen(module, x, traced)
        assert not kinds(f) & {"aten::batch_norm", "aten::add", "aten::mul"}
        assert same(f(x), module(x))


@pytest.mark.parametrize("traced", [True, False])
def test_batch_norm_behind_linear_layers(traced):
    """Features are the last dimension, channels the second: of matrices the same, which nobody knows before the run."""
    new, used = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm2d(6)), nn.Sequential(nn.Linear(6, 6), worn(nn.BatchNorm2d(6)))
    x = rand(2, 6, 6, 6)
    for module, folded in ((new, True), (used, False)):
        f = frozen(module, x, traced)
        assert ("aten::batch_norm" not in kinds(f)) == folded
        assert same(f(x), module(x))


def test_what_stays():
    """A result that others see, weights that are written, training, and numerics that are not to be touched."""

    class Seen(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 4, 3), worn(nn.BatchNorm2d(4))

        def forward(self, x):
            y = self.conv(x)
            return self.norm(y), y

    x = sized(2)
    f = frozen(Seen(), x, False)
    assert "aten::batch_norm" in kinds(f)
    module = nn.Sequential(nn.Conv2d(3, 4, 3), worn(nn.BatchNorm2d(4)))
    f = frozen(module, x, False, optimize_numerics=False)
    assert "aten::batch_norm" in kinds(f)
    assert f(x).equal(module(x))
    script = jit.script(module)
    graph = script.inlined_graph
    assert not _C._jit_pass_fold_frozen_conv_bn(graph) and "aten::batch_norm" in str(graph)
    assert "aten::batch_norm" not in kinds(jit.optimize_for_inference(script))


def test_preserved_methods_and_halves():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 4, 3), worn(nn.BatchNorm2d(4))

        def forward(self, x):
            return self.norm(self.conv(x))

        @jit.export
        def predict(self, x):
            return self.forward(x) + 3.2

    module = Two().eval()
    f = jit.freeze(jit.script(module), ["predict"])
    x = sized(2)
    assert "aten::batch_norm" not in str(f.predict.graph) and same(f.predict(x), module.predict(x))
    half = nn.Sequential(nn.Conv2d(3, 4, 3).half(), worn(nn.BatchNorm2d(4)))
    f = frozen(half, x.half(), False)
    assert "aten::batch_norm" not in kinds(f)
    assert f(x.half()).dtype is cresset.float16 and cresset.allclose(f(x.half()), half(x.half()), atol=2e-2, rtol=1e-2)
