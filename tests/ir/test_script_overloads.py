"""Functions and methods declared for several types, and recurrent layers on packed sequences."""
# ruff: noqa: F811 (declarations share the name of the implementation)

from typing import List, Optional, Tuple

import pytest

import cresset as torch
from cresset import nn
from cresset.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence, pad_sequence

jit = torch.jit


@jit._overload
def describe(x: int, times: int = 2) -> str: ...


@jit._overload
def describe(x: str, times: int = 3) -> str: ...


def describe(x, times=0):
    return str(x) * times


@jit._overload  # noqa: F811
def longer(x, times):  # noqa: F811
    # type: (List[int], int) -> List[int]  # noqa
    pass


@jit._overload  # noqa: F811
def longer(x, times=3):  # noqa: F811
    # type: (str, Optional[int]) -> str
    pass


def longer(x, times):
    if isinstance(x, str):
        return x + str(times)
    return x + [times]


@jit._overload
def lonely(x: int) -> int: ...


class Adder(nn.Module):
    @jit._overload_method
    def add(self, x: int) -> int: ...

    @jit._overload_method
    def add(self, x: torch.Tensor) -> torch.Tensor: ...

    @jit._overload_method
    def add(self, x: List[int]) -> List[int]: ...

    def add(self, x):
        return x + x

    def forward(self, a: int, b: torch.Tensor):
        return self.add(a), self.add(b)


def test_the_first_that_fits_is_called():
    @jit.script
    def f(a: int, b: str):
        return describe(a), describe(b), describe(b, 1)

    assert f(7, "x") == ("77", "xxx", "x")


def test_types_in_comments():
    @jit.script
    def f(a: List[int], b: str):
        return longer(a, 1), longer(b), longer(b, None)

    assert f([0], "x") == ([0, 1], "x3", "xNone")


def test_no_overload_fits():
    def f(x: float):
        return describe(x)

    with pytest.raises(RuntimeError, match="Could not find any matching overload") as error:
        jit.script(f)
    assert "Expected a value of type 'int'" in str(error.value) and "Expected a value of type 'str'" in str(error.value)


def test_without_implementation():
    def f(x: int):
        return lonely(x)

    with pytest.raises(RuntimeError, match='Implementation for the function ".*lonely" is missing. Please make sure a definition is provided and defined after'):
        jit.script(f)


def test_methods():
    module = jit.script(Adder())
    number, tensor = module(2, torch.tensor([1.5]))
    assert number == 4 and tensor.item() == 3.0
    assert sorted(module.get_methods()) == ["add__0", "add__1", "forward"]  # what nobody calls is not compiled


class Packed(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, packed: PackedSequence):
        output, state = self.layer(packed)
        return output, state


class PackedWithState(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, packed: PackedSequence, state: Optional[torch.Tensor]):
        return self.layer(packed, state)


class Padded(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor):
        return self.layer(x)[0]


LAYERS = [
    nn.LSTM(4, 3, 2), nn.LSTM(4, 3, bidirectional=True, proj_size=2), nn.GRU(4, 3, bidirectional=True), nn.RNN(4, 3, 2),
    nn.RNN(4, 3, nonlinearity="relu", bias=False),
]  # fmt: skip


def batch(sort=True):
    x = torch.arange(40.0).reshape(5, 2, 4).sin()
    return x, pack_padded_sequence(x, torch.tensor([3, 5] if sort else [5, 3]), enforce_sorted=not sort)


def close(a, b):
    if b is None:
        return a is None
    if isinstance(b, torch.Tensor):
        return torch.allclose(a, b)
    return len(a) == len(b) and all(map(close, a, b))


@pytest.mark.parametrize("sort", [False, True])
@pytest.mark.parametrize("layer", LAYERS, ids=repr)
def test_packed_sequences(layer, sort):
    x, packed = batch(sort)
    output, state = jit.script(Packed(layer))(packed)
    expected, expected_state = layer(packed)
    assert isinstance(output, PackedSequence) and close(output, expected) and close(state, expected_state)
    assert close(jit.script(Padded(layer))(x), layer(x)[0])


def test_packed_sequences_with_a_state():
    layer, (_, packed) = nn.GRU(4, 3), batch()
    module = jit.script(PackedWithState(layer))
    state = torch.ones(1, 2, 3)
    assert close(module(packed, state), layer(packed, state)) and close(module(packed, None), layer(packed))
    with pytest.raises(RuntimeError, match=r"Expected hidden size \(1, 2, 3\), got \[1, 2, 5\]"):
        module(packed, torch.ones(1, 2, 5))


def test_both_kinds_of_input_in_one_module():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.LSTM(4, 3)

        def forward(self, x: torch.Tensor, packed: PackedSequence) -> Tuple[torch.Tensor, torch.Tensor]:
            return self.layer(x)[0], self.layer(packed)[0].data

    module, (x, packed) = Both(), batch()
    assert close(jit.script(module)(x, packed), module(x, packed))


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("total_length", [None, 7])
def test_packing_and_padding_in_scripts(batch_first, total_length):
    def there_and_back(x, lengths, batch_first: bool, total_length: Optional[int]):
        packed = pack_padded_sequence(x, lengths, batch_first, enforce_sorted=False)
        return packed, pad_packed_sequence(packed, batch_first, -1.0, total_length)

    x, lengths = torch.arange(24.0).reshape(3, 4, 2), torch.tensor([2, 4, 1] if batch_first else [2, 3, 1, 3])
    arguments = (x, lengths, batch_first, total_length)
    assert close(jit.script(there_and_back)(*arguments), there_and_back(*arguments))


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_lists_in_scripts(side):
    def padded(parts: List[torch.Tensor], side: str):
        return pad_sequence(parts, True, 5.0, side), pad_sequence(parts)

    parts = [torch.ones(3, 2), torch.zeros(1, 2), torch.full((2, 2), 7.0)]
    assert close(jit.script(padded)(parts, side), padded(parts, side))
    with pytest.raises(RuntimeError, match="Expected padding_side to be one of left or right, but got up"):
        jit.script(padded)(parts, "up")


def test_a_declaration_has_no_body():
    words = "Only `pass` statement or `...` can be the body of overload declaration"
    with pytest.raises(RuntimeError, match=words):

        @jit._overload
        def wrong(x: str) -> str:
            return x + "0"

    with pytest.raises(RuntimeError, match=words):

        class Wrong(nn.Module):
            @jit._overload_method
            def forward(self, x: int):
                """A text is a statement, too."""


# What PyTorch 2.13 chooses where several overloads of an operator fit.
CHOSEN = {
    "std(x, [1])": "dim", "var(x, [1], keepdim=True)": "dim", "std_mean(x, [1])": "dim", "var_mean(x, [1])": "dim", "std(x, [1], correction=0)": "correction",
    "std(x)": "", "max(x, 0)": "dim", "max(x, x)": "other", "add(x, 1)": "Scalar", "add(x, x)": "Tensor",
    "where(x > 0, x, 1.0)": "ScalarOther", "where(x > 0, x, x)": "self", "clamp(x, 0, 1)": "", "split(x, 1)": "Tensor", "sum(x, [0])": "dim_IntList",
    "pow(x, 2)": "Tensor_Scalar", "pow(2, x)": "Scalar", "index_fill(x, 0, torch.tensor([0]), 1.0)": "int_Scalar", "masked_fill(x, x > 0, 1.0)": "Scalar",
    "cumsum(x, 0)": "", "sort(x, 0, True)": "", "median(x, 0)": "dim", "any(x, 0)": "dim", "argsort(x, 0)": "", "div(x, 2, rounding_mode='floor')": "Scalar_mode",
}  # fmt: skip


@pytest.mark.parametrize("call", CHOSEN)
def test_overload_that_a_script_chooses(call):
    unit = jit.CompilationUnit(f"def f(x: Tensor):\n    return torch.{call}\n")
    last = [n for n in unit.f.graph.nodes() if n.kind().startswith("aten::")][-1]
    assert last.schema().split("(")[0].partition(".")[2] == CHOSEN[call]
