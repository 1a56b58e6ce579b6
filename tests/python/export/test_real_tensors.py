"""Programs that are exported by the values of their example inputs (`fake_tensor_propagate_real_tensors`), and what is said of operators that do not do what they say."""

import pytest

import cresset as torch
from cresset._functorch import config
from cresset._subclasses.fake_tensor import MetadataMismatchError
from cresset.export import export
from cresset.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode


@pytest.fixture(autouse=True)
def _by_values():
    with config.patch(fake_tensor_propagate_real_tensors=True):
        yield


class Truth(torch.nn.Module):
    def forward(self, x):
        return torch.is_nonzero(x)


@pytest.mark.parametrize("value", [0, 3])
@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.bool])
def test_truths(value, dtype):
    x = torch.full((), value).to(dtype)
    program = export(Truth(), (x,))
    assert program.module()(x) is bool(value)
    with pytest.raises(RuntimeError, match="Runtime assertion failed for expression"):
        program.module()(torch.full((), 0 if value else 1).to(dtype))


def test_sizes():
    class Most(torch.nn.Module):
        def forward(self, x):
            return x[x > 0] * 2 if bool(x.sum() > 3) else x

    x = torch.tensor([1.0, -1.0, 4.0])
    assert export(Most(), (x,)).module()(torch.tensor([5.0, 2.0, -1.0])).tolist() == [10.0, 4.0]


def test_without_values_branches_are_refused():
    with config.patch(fake_tensor_propagate_real_tensors=False), pytest.raises(GuardOnDataDependentSymNode):
        export(Truth(), (torch.tensor(1.0),))


def operator(name, body, fake=None, **options):
    made = torch.library.custom_op(f"real_test::{name}", body, **{"mutates_args": (), **options})
    if fake is not None:
        made.register_fake(fake)

    class Call(torch.nn.Module):
        def forward(self, x, y):
            return made(x, y)

    return Call()


def test_operators_without_a_fake_implementation_are_tried():
    def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x * y

    program = export(operator("product", product), (torch.ones(1, 3), torch.ones(2, 1)))
    assert program.graph_module.meta is not None and program.module()(torch.ones(1, 3), torch.ones(2, 1)).shape == (2, 3)

    def offset(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.expand(32, 3).contiguous()[4]

    def diagonal(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.ones(3, 3).diagonal()

    for body, words in ((offset, "non-zero storage offset"), (diagonal, "not dense in memory")):
        with pytest.raises(RuntimeError, match=words):
            export(operator(body.__name__, body), (torch.ones(1, 3), torch.ones(2, 1)))


def test_what_operators_say_is_compared_with_what_they_do():
    def writes(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        y.add_(1)
        return x.clone()

    def copied(x, y):
        return x.clone()

    def total(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y

    inputs = torch.ones(4, 8), torch.ones(4, 8)
    with pytest.raises(RuntimeError, match="for argument 'y'"):
        export(operator("writes", writes, copied), inputs)
    export(operator("writes_and_says_so", writes, copied, mutates_args=("y",)), inputs)
    assert inputs[1].sum() == 32
    for name, fake, words in [
        ("size", lambda x, y: x.new_empty(8, 4), r"output size mismatch between fake shape 8 and real shape 4, at output\.size\(0\), for func: real_test.size.default"),
        ("dtype", lambda x, y: torch.empty(4, 8, dtype=torch.int32), "metadata mismatch between fake tensor .* and real tensor"),
        ("alias", lambda x, y: x, "aliasing mismatch between fake output"),
    ]:
        with pytest.raises(MetadataMismatchError, match=words):
            export(operator(name, total, fake), inputs)
