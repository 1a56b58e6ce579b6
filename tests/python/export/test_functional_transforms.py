"""Programs that use vmap and gradients of functions, sizes as results, texts beside a program in a file."""

import io

import cresset
import pytest
from cresset import nn
from cresset.export import Dim, export, load, save
from cresset.utils import _pytree as pytree


class Program(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.layer, self.function = nn.Linear(2, 2), function

    def forward(self, x):
        return self.function(self, x)


def outer(m, x):
    return cresset.vmap(cresset.vmap(lambda a, b: cresset.where(a > b, a, b.sin()), (None, 0)), (0, None))(x[:, 0], x[:, 1])


FUNCTIONS = {
    "rows": lambda m, x: cresset.vmap(lambda row: row * 2 + row.sum())(x),
    "layer": lambda m, x: cresset.vmap(m.layer)(x) + 1,
    "columns": lambda m, x: cresset.vmap(lambda c: nn.functional.softmax(c, 0), in_dims=1, out_dims=1)(x),
    "two levels": outer,  # how masks of attention are made
    "made inside": lambda m, x: cresset.vmap(lambda row: cresset.zeros(3) + row.sum())(x),
    "index": lambda m, x: cresset.vmap(lambda i: x[i])(cresset.arange(2)),
    "gradient": lambda m, x: cresset.func.grad(lambda y: m.layer(y).sin().sum())(x),
    "gradient of rows": lambda m, x: cresset.vmap(cresset.func.grad(lambda row: row.sin().sum()))(x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("sizes", [None, ({0: Dim("n")},)])
def test_transforms_are_exported_as_what_they_make(name, sizes):
    module = Program(FUNCTIONS[name])
    program = export(module, (cresset.randn(3, 2),), dynamic_shapes=sizes)
    assert not any("vmap" in str(node.target) or "batch_dim" in str(node.target) for node in program.graph.nodes)
    x = cresset.randn(3 if sizes is None else 5, 2)
    cresset.testing.assert_close(program.module()(x), module(x))
    buffer = io.BytesIO()
    save(program, buffer)
    buffer.seek(0)
    cresset.testing.assert_close(load(buffer).module()(x), module(x))


class Sizes(nn.Module):
    def forward(self, x):
        return x.shape, [x.size()], {"a": x.shape[0]}


def test_sizes_are_results():
    """As in PyTorch, a size is a node of a tree and comes back as a tuple."""
    assert export(Sizes(), (cresset.ones(2, 3),)).module()(cresset.ones(2, 3)) == ((2, 3), [(2, 3)], {"a": 2})
    program = export(Sizes(), (cresset.ones(2, 3),), dynamic_shapes=({0: Dim("n")},))
    assert program.module()(cresset.ones(5, 3)) == ((5, 3), [(5, 3)], {"a": 5})
    leaves, spec = pytree.tree_flatten(cresset.Size([2, 3]))
    assert leaves == [2, 3] and type(pytree.tree_unflatten(leaves, spec)) is tuple
    leaf = '{"type": null, "context": null, "children_spec": []}'
    text = f'[1, {{"type": "torch.Size", "context": "null", "children_spec": [{leaf}, {leaf}]}}]'
    assert pytree.treespec_dumps(spec) == text and pytree.treespec_loads(text) == spec


def test_texts_beside_a_program():
    program, buffer = export(nn.Linear(3, 1), (cresset.ones(2, 3),)), io.BytesIO()
    save(program, buffer, extra_files={"x": "y", "k/l.txt": "hé"})
    buffer.seek(0)
    texts = {"x": "old", "z": "not there", "k/l.txt": ""}
    load(buffer, extra_files=texts)
    assert texts == {"x": "y", "z": "not there", "k/l.txt": "hé"}
    with pytest.raises(AssertionError, match="Expected string but got <class 'bytes'>"):
        save(program, io.BytesIO(), extra_files={"x": b"y"})
