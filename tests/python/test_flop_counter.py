"""Counts of operations and the modules they are in: numbers recorded from PyTorch 2.13."""

import cresset
import pytest
from cresset import nn
from cresset.utils.flop_counter import FlopCounterMode, register_flop_formula
from cresset.utils.module_tracker import ModuleTracker

MLP = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Sequential(nn.Linear(8, 2)))


def counts(call):
    with FlopCounterMode(display=False) as counter:
        call()
    return {str(m): {str(op): n for op, n in c.items()} for m, c in counter.get_flop_counts().items()}, counter


def test_modules():
    found, counter = counts(lambda: MLP(cresset.ones(3, 4)).sum().backward())
    assert found == {
        "Global": {"aten.addmm": 288, "aten.mm": 384}, "Sequential": {"aten.addmm": 288, "aten.mm": 384}, "Sequential.0": {"aten.addmm": 192, "aten.mm": 192},
        "Sequential.2": {"aten.addmm": 96, "aten.mm": 192}, "Sequential.2.0": {"aten.addmm": 96, "aten.mm": 192},
    }  # fmt: skip
    assert counter.get_total_flops() == 672 and "Sequential.2   288.000     42.86%" in counter.get_table()
    found, _ = counts(lambda: MLP(cresset.ones(3, 4, requires_grad=True)).sum().backward())
    assert found["Sequential.0"] == {"aten.addmm": 192, "aten.mm": 384}


def test_convolutions():
    conv, transposed = nn.Conv2d(3, 6, 3, padding=1, stride=2, groups=3), nn.ConvTranspose2d(6, 4, 3)
    x = cresset.ones(2, 3, 8, 8, requires_grad=True)
    found, _ = counts(lambda: transposed(conv(x)).sum().backward())
    assert found["Conv2d"] == {"aten.convolution": 3456, "aten.convolution_backward": 13824}
    assert found["ConvTranspose2d"] == {"aten.convolution": 13824, "aten.convolution_backward": 27648}
    found, _ = counts(lambda: conv(x.detach()).sum().backward())
    assert found["Conv2d"] == {"aten.convolution": 3456, "aten.convolution_backward": 10368}


def test_products_and_attention():
    found, _ = counts(lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)(cresset.ones(2, 3, 8)).sum().backward())
    assert found["Global"] == {"aten.mm": 12288, "aten.bmm": 1728, "aten.addmm": 3840}
    assert counts(lambda: cresset.ones(2, 3, 4) @ cresset.ones(4, 5))[1].get_total_flops() == 240

    def inference():
        with cresset.inference_mode():
            MLP(cresset.ones(3, 4))

    assert counts(inference)[0]["Global"] == {"aten.addmm": 288}


def test_own_formulas():
    with FlopCounterMode(display=False, custom_mapping={cresset.ops.aten.mul: lambda a, b, out_shape=None: out_shape.numel()}) as counter:
        cresset.ones(3, 3) * 2
    assert counter.get_total_flops() == 9
    with pytest.raises(ValueError, match="expected each target to be OpOverloadPacket"):
        register_flop_formula(cresset.ops.aten.mm.default)(lambda: 0)
    with pytest.raises(RuntimeError, match="duplicate registrations for aten.mm"):
        register_flop_formula(cresset.ops.aten.mm)(lambda: 0)


def test_tracker():
    seen, tracker = [], ModuleTracker()

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, x):
            seen.append((set(tracker.parents), tracker.is_bw))
            return self.inner(x)

    with tracker:
        y = Outer()(cresset.ones(2, 2, requires_grad=True))
        y.register_hook(lambda g: seen.append((set(tracker.parents), tracker.is_bw)))
        y.sum().backward()
    assert seen == [({"Global", "Outer"}, False), ({"Global", "Outer", "Outer.inner"}, True)]
    assert tracker.parents == {"Global"}
