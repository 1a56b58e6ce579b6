"""What modules refuse, in PyTorch's words: masks and projected keys of attention, amounts of pruning, parametrizations of what is parametrized."""

import inspect
import types

import pytest

import cresset as torch
from cresset import nn
from cresset.nn.utils import parametrize, prune

F = nn.functional


def attention(query=None, **changed):
    query = torch.randn(4, 3, 8) if query is None else query
    given = {
        "embed_dim_to_check": 8, "num_heads": 2, "in_proj_weight": torch.randn(24, 8), "in_proj_bias": torch.randn(24), "bias_k": None, "bias_v": None,
        "add_zero_attn": False, "dropout_p": 0.0, "out_proj_weight": torch.randn(8, 8), "out_proj_bias": torch.randn(8),
    }  # fmt: skip
    return F.multi_head_attention_forward(query, query, query, **(given | changed))


BIAS = {"bias_k": torch.randn(1, 1, 8), "bias_v": torch.randn(1, 1, 8)}


@pytest.mark.parametrize(
    ("changed", "kind", "words"),
    [
        ({"attn_mask": torch.zeros(5, 4, 4)}, RuntimeError, "The shape of the 3D attn_mask is torch.Size([5, 4, 4]), but should be (6, 4, 4)."),
        ({"attn_mask": torch.zeros(5, 4)}, RuntimeError, "The shape of the 2D attn_mask is torch.Size([5, 4]), but should be (4, 4)."),
        (
            {"query": torch.randn(4, 8), "attn_mask": torch.zeros(5, 4, 4)},
            AssertionError,
            "Expected `attn_mask` shape to be (2, 4, 4) but got torch.Size([5, 4, 4])",
        ),
        (
            {"attn_mask": torch.zeros(4, 4, 4, 1)},
            AssertionError,
            "For batched (3-D) `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found 4-D tensor instead",
        ),
        ({"key_padding_mask": torch.zeros(5, 4, dtype=torch.bool)}, AssertionError, "Expected key_padded_mask.shape[0] to be 3, but got 5"),
        ({**BIAS, "static_k": torch.randn(6, 5, 4)}, AssertionError, "bias cannot be added to static key."),
        ({**BIAS, "static_v": torch.randn(6, 5, 4)}, AssertionError, "bias cannot be added to static value."),
        ({"static_k": torch.randn(5, 5, 4)}, AssertionError, "expecting static_k.size(0) of 6, but got 5"),
        ({"static_v": torch.randn(6, 5, 3)}, AssertionError, "expecting static_v.size(2) of 4, but got 3"),
        ({"bias_k": BIAS["bias_k"]}, AssertionError, "bias_k is set but bias_v is None"),
    ],
)
def test_attention(changed, kind, words):
    with pytest.raises(kind) as error:
        attention(**changed)
    assert str(error.value).replace("cresset.Size", "torch.Size") == words


def test_amounts():
    for amount, kind in (("text", TypeError), ([1], TypeError), (1.1, ValueError), (-0.1, ValueError), (-10, ValueError)):
        with pytest.raises(kind):
            prune._validate_pruning_amount_init(amount)
    for amount in (0, 1, 1500, 0.0, 0.34, 1.0):
        prune._validate_pruning_amount_init(amount)
    with pytest.raises(ValueError, match="amount=20 should be smaller than the number of parameters to prune=19"):
        prune._validate_pruning_amount(20, 19)
    assert [prune._compute_nparams_toprune(a, n) for a, n in ((0, 15), (1, 15), (1.0, 15), (0.4, 17))] == [0, 1, 15, 7]
    with pytest.raises(IndexError):
        prune._validate_pruning_dim(torch.ones(2, 2), 2)
    assert prune._compute_norm(torch.arange(6.0).view(2, 3), 1, -1).tolist() == [3, 5, 7]


class AddOne(nn.Module):
    def forward(self, x):
        return x + 1


class WithInverse(AddOne):
    def right_inverse(self, x):
        return x - 1


class Wrong(nn.Module):
    def forward(self, x):
        return x, x


def test_a_second_parametrization_does_not_change_the_original():
    module = nn.Linear(2, 2)
    before = module.weight.detach().clone()
    parametrize.register_parametrization(module, "weight", AddOne())
    parametrize.register_parametrization(module, "weight", WithInverse())
    assert module.parametrizations.weight.original.equal(before) and torch.allclose(module.weight, before + 2)
    with pytest.raises(ValueError, match="A parametrization must return a tensor. Got tuple."):
        parametrize.register_parametrization(module, "weight", Wrong())
    assert len(module.parametrizations.weight) == 2


class Returns(nn.Module):
    def __init__(self, inverse):
        super().__init__()
        self.inverse = inverse

    def forward(self, x):
        return x

    def right_inverse(self, x):
        return self.inverse(x)


@pytest.mark.parametrize(
    ("inverse", "words"),
    [
        (lambda x: None, "right_inverse must return a tensor. Got: NoneType"),
        (lambda x: (x, x), "right_inverse must return a tensor. Got: tuple"),
        (lambda x: x.bool(), "must have the same dtype as module.weight, unless the `unsafe` flag is enabled"),
        (lambda x: x[0], "must have the same shape as module.weight, unless the `unsafe` flag is enabled"),
    ],
)
def test_inverses_of_a_second_parametrization(inverse, words):
    module = nn.Linear(2, 2)
    parametrize.register_parametrization(module, "weight", AddOne())
    with pytest.raises(ValueError) as error:
        parametrize.register_parametrization(module, "weight", Returns(inverse))
    assert words in str(error.value) and len(module.parametrizations.weight) == 1


def test_one_cycle_of_an_older_state():
    def scheduler():
        return torch.optim.lr_scheduler.OneCycleLR(torch.optim.SGD([nn.Parameter(torch.ones(1))], 0.1), 0.1, total_steps=10)

    kind = torch.optim.lr_scheduler.OneCycleLR
    assert kind._annealing_cos(1.0, 2.0, 0.3) == pytest.approx(1.2061073738537633) and kind._annealing_linear(1.0, 2.0, 0.3) == pytest.approx(1.3)
    old, new = scheduler(), scheduler()
    state = {k: v for k, v in old.state_dict().items() if k != "_anneal_func_type"} | {"anneal_func": kind._annealing_cos}
    del new._anneal_func_type
    new.load_state_dict(state)
    for s in (old, new):
        s.optimizer.step()
        s.step()
    assert new.get_last_lr() == old.get_last_lr()


def test_adaptive_pools_of_integers():
    for n in (1, 2, 3):
        x = torch.ones((2, 3) + (4,) * n, dtype=torch.int64)
        for kind in ("avg", "max"):
            with pytest.raises(NotImplementedError, match=f"adaptive_{kind}_pool.* not implemented for 'Long'"):
                getattr(F, f"adaptive_{kind}_pool{n}d")(x, 2)


def test_operators_are_built_in_functions():
    for f in (torch.add, torch.transpose_copy, torch.linalg.det, torch.special.i0e, F.linear):
        assert inspect.isbuiltin(f) and isinstance(f, types.BuiltinFunctionType)
    assert type(torch.add) is not types.BuiltinFunctionType and not inspect.isbuiltin(torch.Tensor.add)


def test_modules_without_such_a_device():
    module = nn.Linear(2, 2)
    for move in (module.cuda, module.xpu):
        with pytest.raises((AssertionError, RuntimeError)):
            move()
    assert module.weight.device.type == "cpu"
    module.compile(backend="eager")
    x = torch.randn(3, 2)
    assert module(x).equal(F.linear(x, module.weight, module.bias))


def cell_calls(cell, input, state):
    state = torch.zeros(*state)
    return cell(torch.ones(*input), (state, state) if isinstance(cell, nn.LSTMCell) else state)


@pytest.mark.parametrize("kind", [nn.RNNCell, nn.LSTMCell, nn.GRUCell])
def test_states_of_cells(kind):
    cell = kind(3, 2)
    name = "hx[0]" if kind is nn.LSTMCell else "hidden"
    for input, state, error, words in (
        ((1, 3), (1, 2, 2, 2), ValueError, f"{kind.__name__}: Expected {name} to be 1D or 2D, got 4D instead"),
        ((3,), (1, 2), RuntimeError, "hidden0 has inconsistent hidden_size: got 1, expected 2"),
        ((1, 3), (2,), RuntimeError, "Input batch size 1 doesn't match hidden0 batch size 2"),
        ((1, 3), (2, 2), RuntimeError, "Input batch size 1 doesn't match hidden0 batch size 2"),
    ):
        with pytest.raises(error) as caught:
            cell_calls(cell, input, state)
        assert str(caught.value).startswith(words)
    batched, single = cell_calls(cell, (1, 3), (1, 2)), cell_calls(cell, (3,), (2,))
    assert torch.equal(batched[0][0] if kind is nn.LSTMCell else batched[0], single[0] if kind is nn.LSTMCell else single)


def test_the_second_state_of_lstm_cells():
    with pytest.raises(ValueError, match=r"^LSTMCell: Expected hx\[1\] to be 1D or 2D, got 3D instead$"):
        nn.LSTMCell(3, 2)(torch.ones(1, 3), (torch.ones(1, 2), torch.ones(1, 2, 3)))


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [(("cpu",), {"copy": True}), (("cpu",), {"copy": False}), (("cpu", None, False, True), {}), ((torch.float64, False, False), {}), ((torch.ones(1), False, True), {})],
)
def test_modules_are_not_copied_by_to(args, kwargs):
    with pytest.raises(RuntimeError, match=r"^\.to\(\) does not accept copy argument$"):
        nn.Linear(2, 2).to(*args, **kwargs)
