"""aot_export_module: modules as flat graphs that write nothing, and their signatures. Expected are PyTorch 2.13's."""

import copy

import pytest

import cresset as torch
from cresset._functorch.aot_autograd import aot_export_module, aot_function, nop
from cresset._subclasses.fake_tensor import FakeTensorMode


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l, self.bn = torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3)
        self.register_buffer("n", torch.zeros(1))

    def forward(self, x, y):
        self.n.add_(1)
        z = self.bn(self.l(x)).relu()
        y.mul_(2)
        return (z * y).sum() + self.n.sum(), z.detach()


STATE = ["l.weight", "l.bias", "bn.weight", "bn.bias", "n", "bn.running_mean", "bn.running_var", "bn.num_batches_tracked"]


def inputs():
    return torch.arange(12.0).reshape(4, 3).sin(), torch.arange(12.0).reshape(4, 3).cos()


def test_forward():
    module, given = Net(), inputs()
    graph, signature = aot_export_module(module, given, trace_joint=False)
    assert signature.parameters == STATE[:4] and signature.buffers == STATE[4:] and signature.user_inputs == ["arg8_1", "arg9_1"]
    assert list(signature.inputs_to_parameters.items()) == [(f"arg{i}_1", STATE[i]) for i in range(4)]
    assert list(signature.inputs_to_buffers.items()) == [(f"arg{i}_1", STATE[i]) for i in range(4, 8)]
    assert list(signature.buffers_to_mutate.values()) == ["n", "bn.running_mean", "bn.running_var", "bn.num_batches_tracked"]
    assert list(signature.user_inputs_to_mutate.values()) == ["arg9_1"] and signature.parameters_to_mutate == {}
    assert signature.out_spec.num_leaves == 2 and signature.in_spec.num_leaves == 10 and signature.backward_signature is None
    assert not any(getattr(n.target, "_schema", None) is not None and n.target._schema.is_mutable for n in graph.graph.nodes)
    values = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    found = graph(*[values[name].detach().clone() for name in STATE], *inputs())
    twin, own = copy.deepcopy(module), inputs()
    loss, z = twin(*own)
    for name, value in zip(STATE[4:], found):
        torch.testing.assert_close(value, dict(twin.named_buffers())[name])
    torch.testing.assert_close(found[4], own[1])
    torch.testing.assert_close(found[5:], (loss.detach(), z))
    assert module.n.item() == 0.0 and torch.equal(given[1], inputs()[1])  # nothing was written


def test_gradients():
    class Given(Net):
        def forward(self, x, y):
            return super().forward(x, y * 1)

    module, (x, y) = Given(), inputs()
    y.requires_grad_()
    graph, signature = aot_export_module(module, (x, y), trace_joint=True, output_loss_index=0)
    assert list(signature.backward_signature.gradients_to_parameters.values()) == STATE[:4]
    assert list(signature.backward_signature.gradients_to_user_inputs.values()) == ["arg9_1"]
    assert signature.backward_signature.loss_output == signature.user_outputs[0]
    values = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    found = graph(*[values[name].detach().clone() for name in STATE], x, y.detach())
    module(x, y)[0].backward()
    expected = [*(p.grad for p in module.parameters()), y.grad]
    torch.testing.assert_close(list(found[-5:]), expected)


def test_refusals():
    module, given = Net(), inputs()
    with pytest.raises(RuntimeError, match="one of your forward outputs must be a scalar loss"):
        aot_export_module(module, given, trace_joint=True)
    with pytest.raises(RuntimeError, match="the output at index 0 requires gradients"):
        aot_export_module(module, given, trace_joint=True, output_loss_index=1)
    with pytest.raises(RuntimeError, match=r"Graph output must be a \(\)"):
        aot_export_module(torch.nn.Linear(3, 3), given[:1], trace_joint=False)
    with pytest.raises(NotImplementedError, match="pre_dispatch=True is not supported"):
        aot_export_module(module, given, trace_joint=False, pre_dispatch=True)


def test_decompositions_and_keywords():
    class Pair(torch.nn.Module):
        def forward(self, x, *, scale):
            return (torch.nn.functional.linear(x, x) * scale,)

    table = {torch.ops.aten.t.default: lambda x: x.transpose(0, 1)}
    graph, _ = aot_export_module(Pair(), (torch.ones(2, 2),), kwargs={"scale": torch.ones(2)}, trace_joint=False, decompositions=table)
    assert [str(n.target) for n in graph.graph.nodes if n.op == "call_function"] == ["aten.transpose.int", "aten.mm.default", "aten.mul.Tensor"]


def test_statistics_are_written_functionally():
    """The schema of native_batch_norm does not say that it writes its running statistics."""

    def f(x, mean, var):
        y = torch.nn.functional.batch_norm(x, mean, var, training=True)
        return y, mean + 0, var + 0

    x, mean, var = torch.arange(6.0).reshape(3, 2), torch.zeros(2), torch.ones(2)
    graph = torch.fx.experimental.proxy_tensor.make_fx(torch.func.functionalize(f))(x, mean.clone(), var.clone())
    written = [str(n.target) for n in graph.graph.nodes if n.op == "call_function" and getattr(n.target, "_schema", None) is not None and n.target._schema.is_mutable]
    assert written == ["aten.copy_.default", "aten.copy_.default"]
    found = torch.func.functionalize(f)(x, mean, var)
    assert found[1].tolist() == pytest.approx([0.2, 0.3]) and found[2].tolist() == pytest.approx([1.3, 1.3])  # PyTorch 2.13's
    assert torch.equal(mean, found[1]) and torch.equal(var, found[2])


def test_branches_and_loops_of_tensors_without_values():
    def branch(x):
        return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x.sin(), (x,))

    with FakeTensorMode():
        x = torch.ones(3)
        assert branch(x).shape == (3,)
        assert torch.while_loop(lambda x: x.sum() > 0, lambda x: x + 1, (x,))[0].shape == (3,)
        with pytest.raises(RuntimeError, match="results of the same form were required of both branches"):
            torch.cond(x.sum() > 0, lambda x: x, lambda x: x.sum(), (x,))
    x, graphs = torch.ones(3, requires_grad=True), []
    compiled = aot_function(branch, nop, lambda graph, _: graphs.append(graph) or graph)
    result = compiled(x)
    result.sum().backward()
    assert result.tolist() == [2.0, 2.0, 2.0] and x.grad.tolist() == [2.0, 2.0, 2.0]
    assert isinstance(next(n for n in graphs[0].graph.nodes if n.op == "output").args[0], tuple)
