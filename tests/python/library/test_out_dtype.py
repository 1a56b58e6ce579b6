"""out_dtype: operators whose result has a wider type than their operands. Expected values, words and graphs are PyTorch 2.13's."""

import re

import pytest

import cresset as torch
from cresset._higher_order_ops.out_dtype import out_dtype
from cresset.fx.experimental.proxy_tensor import make_fx

aten = torch.ops.aten
X = torch.tensor([[1, -7], [3, 100]], dtype=torch.int8)


@pytest.mark.parametrize("call, expected", [
    (lambda: out_dtype(aten.mm.default, torch.int32, X, X), torch.tensor([[-20, -707], [303, 9979]], dtype=torch.int32)),
    (lambda: out_dtype(aten.mul.Scalar, torch.int32, X, 3.5), torch.tensor([[3, -24], [10, 350]], dtype=torch.int32)),
    (lambda: out_dtype(aten.div.Tensor, torch.int32, X, X * 2), torch.tensor([[0, 0], [0, -1]], dtype=torch.int32)),
    (lambda: out_dtype(aten.div.Scalar, torch.int64, X, 2), torch.tensor([[0, -3], [1, 50]])),
    (lambda: out_dtype(aten.mul.Tensor, torch.int8, X.float() * 1.5, X), torch.tensor([[1, 73], [13, -104]], dtype=torch.int8)),
    (lambda: out_dtype(aten.linear.default, torch.float64, X.half(), X.half()), torch.tensor([[50, -697], [-697, 10009]], dtype=torch.float64)),
])  # fmt: skip
def test_values(call, expected):
    found = call()
    assert found.dtype is expected.dtype and found.tolist() == expected.tolist()


@pytest.mark.parametrize("call, words", [
    (lambda: out_dtype(torch.add, torch.int32, X, X), "out_dtype's first argument must be an OpOverload"),
    (lambda: out_dtype(aten.add_.Tensor, torch.int32, X, X), "out_dtype's first argument needs to be a functional operator"),
    (lambda: out_dtype(aten.topk.default, torch.int32, X, 2), "out_dtype's can only apply to ops that return a single tensor"),
    (lambda: out_dtype(aten.split_copy.Tensor, torch.int32, X, 2), "out_dtype's can only apply to ops that return a single tensor"),
    (lambda: out_dtype(aten.add.Tensor, torch.int32, X, X), "out_dtype only allows the following operators: [<OpOverload(op='aten.linear'"),
])  # fmt: skip
def test_refusals(call, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        call()


class Product(torch.nn.Module):
    def forward(self, x):
        return out_dtype(aten.mm.default, torch.int32, x, x)


LINE = "out_dtype = torch.ops.higher_order.out_dtype(torch.ops.aten.mm.default, torch.int32, {0}, {0});  {0} = None"


def product(x):
    return out_dtype(aten.mm.default, torch.int32, x, x)


@pytest.mark.parametrize("function, options", [(product, {}), (torch.func.functionalize(product), {}), (product, {"pre_dispatch": True})])
def test_traces_keep_it(function, options):
    traced = make_fx(function, **options)(X)
    assert LINE.format("x_1") in traced.code
    node = next(n for n in traced.graph.nodes if n.target is out_dtype)
    assert node.meta["val"].dtype is torch.int32 and node.args[2].meta["val"].dtype is torch.int8
    assert traced(X).equal(product(X))


def test_programs_keep_it():
    program = torch.export.export(Product(), (X,))
    assert LINE.format("x") in program.graph_module.code and program.module()(X).equal(Product()(X))
