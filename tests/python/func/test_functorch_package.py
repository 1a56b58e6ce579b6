"""The package functorch: older names that warn, and modules as functions of tuples."""

import subprocess
import sys

import cresset as torch
import pytest
from cresset import functorch, nn
from cresset.functorch import experimental


@pytest.mark.parametrize("name", ["grad", "jacrev", "jacfwd", "grad_and_value", "hessian", "functionalize"])
def test_transforms_warn_and_work(name):
    with pytest.warns(FutureWarning, match=f"Please use `torch.func.{name}`"):
        transformed = getattr(functorch, name)(torch.sin)
    x = torch.tensor(0.5)
    for a, b in zip(torch.utils._pytree.tree_leaves(transformed(x)), torch.utils._pytree.tree_leaves(getattr(torch.func, name)(torch.sin)(x))):
        assert torch.equal(a, b)
    with pytest.warns(FutureWarning, match="Please use `torch.vmap`"):
        functorch.vmap(torch.sin)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.weight = self.linear.weight
        self.register_buffer("shift", torch.randn(3))
        self.register_buffer("again", self.shift)

    def forward(self, x):
        return nn.functional.linear(self.linear(x), self.weight) + self.shift + self.again


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_modules_as_functions_of_tuples():
    module, x = Tied(), torch.randn(2, 3)
    function, _, _ = functorch.make_functional_with_buffers(Tied())
    _, params, buffers = functorch.make_functional_with_buffers(module)
    assert len(params) == 2 and len(buffers) == 1
    torch.testing.assert_close(function(params, buffers, x), module(x))
    expected = torch.autograd.grad(module(x).sum(), params)
    for a, b in zip(torch.func.grad(lambda p: function(p, buffers, x).sum())(params), expected):
        torch.testing.assert_close(a, b)
    models, xs = [Tied() for _ in range(3)], torch.randn(3, 2, 3)
    function, params, buffers = functorch.combine_state_for_ensemble(models)
    torch.testing.assert_close(torch.vmap(function)(params, buffers, xs), torch.stack([m(x) for m, x in zip(models, xs)]))
    with pytest.raises(RuntimeError, match="has buffers"):
        functorch.make_functional(module)
    _, params = functorch.make_functional(nn.Linear(2, 2), disable_autograd_tracking=True)
    assert not any(p.requires_grad for p in params)
    for wrong, words in (([], "at least one model"), ([nn.Linear(1, 1), nn.Linear(1, 1).eval()], "same training/eval"), ([nn.Linear(1, 1), Tied()], "of the same class")):
        with pytest.raises(RuntimeError, match=words):
            functorch.combine_state_for_ensemble(wrong)


@pytest.mark.parametrize("chunks", [1, 2, 3, 7])
def test_chunk_vmap(chunks):
    x = torch.randn(5, 3)
    assert torch.equal(experimental.chunk_vmap(lambda a, b: a.sum() + b, in_dims=(0, None), chunks=chunks)(x, torch.ones(2)), x.sum(1)[:, None] + torch.ones(2))


def test_it_is_there_beside_torch():
    program = "from cresset import as_torch; as_torch.install(); import functorch, functorch.experimental, torch; print(functorch is torch.functorch)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr


def test_map():
    from cresset.functorch.experimental import control_flow

    xs, y = {"a": torch.arange(6.0).view(3, 2), "b": torch.ones(3)}, torch.tensor([10.0, 20.0])
    result = control_flow.map(lambda x, y: (x["a"] * y, x["b"]), xs, y)
    assert result[0].tolist() == [[0, 20], [20, 60], [40, 100]] and result[1].tolist() == [1, 1, 1]
    for wrong, words in [((), "can only consist of tensors"), (torch.ones(0, 2), "cannot be 0"), ((torch.ones(2), torch.ones(3)), "must be consistent")]:
        with pytest.raises(RuntimeError, match=words):
            control_flow.map(lambda x: x, wrong)
