"""`with autocast(...)` in scripts. Types are those that PyTorch 2.13's scripts give."""

import pytest
import cresset
from cresset import jit, nn

F32, BF16, F16 = cresset.float32, cresset.bfloat16, cresset.float16
X = cresset.arange(4.0).reshape(2, 2)


@jit.script
def nested(x):
    a = x @ x
    with cresset.autocast("cpu", dtype=cresset.bfloat16):
        b = x @ x
        with cresset.autocast("cpu", enabled=False):
            c = x @ x
        d = x @ x
    e = x @ x
    return a, b, c, d, e


@jit.script
def default(x, on: bool):
    with cresset.amp.autocast(device_type="cpu", enabled=on):
        y = x @ x
    return y


@jit.script
def half(x):
    with cresset.autocast("cpu", dtype=cresset.float16):
        y = x @ x
    return y


@jit.script
def raises(x):
    with cresset.autocast("cpu", dtype=cresset.bfloat16):
        y = x @ cresset.ones(3, 3)
    return y


@jit.script
def early(x):
    with cresset.autocast("cpu", dtype=cresset.bfloat16):
        if bool(x.sum() > 0):
            return x @ x
        y = x + x
    return y


@jit.script
def unseen(x):
    a = (x * 2).sum()
    with cresset.no_grad():
        b = (x * 2).sum()
    c = (x * 2).sum()
    return a, b, c


class Weights(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.l = nn.Parameter(cresset.ones(2, 2)), nn.Linear(2, 2)

    def forward(self, x):
        with cresset.autocast("cpu", dtype=cresset.bfloat16):
            y = self.w @ self.w
            z = self.l(x)
        return y, z, self.w @ self.w


def is_off():
    return not cresset.is_autocast_enabled("cpu") and (X @ X).dtype == F32


def test_blocks_begin_and_end():
    for _ in range(3):  # the first runs profile
        found = nested(X)
        assert [t.dtype for t in found] == [F32, BF16, F32, BF16, F32] and is_off()
        assert all(t.float().tolist() == [[2.0, 3.0], [6.0, 11.0]] for t in found)
    assert default(X, True).dtype == BF16 and default(X, False).dtype == F32 and half(X).dtype == F16
    assert cresset.get_autocast_dtype("cpu") == BF16 and is_off()


def test_errors_and_returns_end_blocks():
    with pytest.raises(RuntimeError):
        raises(X)
    assert is_off()
    assert early(X).dtype == BF16 and early(-X).dtype == F32 and is_off()


def test_equal_operators_inside_and_outside_are_not_merged():
    x = cresset.ones(2, requires_grad=True)
    graph = unseen.graph.copy()
    cresset._C._jit_pass_inline(graph)
    cresset._C._jit_pass_cse(graph)
    assert str(graph).count("aten::mul(") == 3
    for _ in range(3):
        assert [t.requires_grad for t in unseen(x)] == [True, False, True]


def test_constants_are_not_computed_outside_of_the_block():
    script = jit.script(Weights().eval())
    for module in (script, jit.freeze(script)):
        assert [t.dtype for t in module(X)] == [BF16, BF16, F32] and is_off()


def test_archives_have_the_class_of_torch(tmp_path):
    jit.script(Weights()).save(tmp_path / "w.pt")
    again = jit.load(tmp_path / "w.pt")
    assert [t.dtype for t in again(X)] == [BF16, BF16, F32] and is_off()
    assert "__torch__.torch.amp.autocast_mode.autocast" in str(again.graph)


def test_other_dtypes_switch_it_off_with_a_warning():
    @jit.script
    def f(x):
        with cresset.autocast("cpu", dtype=cresset.float64):
            y = x @ x
        return y

    with pytest.warns(UserWarning, match="In CPU autocast, but the target dtype is not supported. Disabling autocast."):
        assert f(X).dtype == F32
