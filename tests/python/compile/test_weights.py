"""cresset.compile(module) packs the weights of modules while they are what they were; whatever is done to them, the answer is the module's."""

import threading

import cresset
import pytest
from cresset import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.norm(self.conv(x)).relu().mean([2, 3]))


def net():
    cresset.manual_seed(0)
    made = Net()
    with cresset.no_grad():
        made.norm.running_mean.normal_()
        made.norm.running_var.uniform_(0.5, 2)
    return made.eval()


def _compiled(compiled):
    return cresset._dynamo._compiled_of(compiled)


def report(compiled):
    return cresset.compile_report(compiled)


def check(compiled, module, x):
    with cresset.no_grad():
        cresset.testing.assert_close(compiled(x), module(x), atol=1e-5, rtol=1e-4)


def test_weights_are_packed_without_inputs():
    module = net()
    compiled = cresset.compile(module)
    for n, size in [(2, 8), (1, 8), (3, 11)]:
        check(compiled, module, cresset.randn(n, 3, size, size))
    assert "weights packed" in report(compiled)


CHANGES = {
    "in place": lambda m: m.conv.weight.add_(1),
    "through a view": lambda m: m.conv.weight[0].zero_(),
    "through detach": lambda m: m.head.bias.detach().fill_(3),
    "through data": lambda m: m.conv.weight.data.mul_(2),
    "through a view of data": lambda m: m.conv.weight.data[1].zero_(),
    "other data": lambda m: setattr(m.head.weight, "data", cresset.randn(4, 8)),
    "another parameter": lambda m: setattr(m.head, "bias", nn.Parameter(cresset.randn(4))),
    "no bias": lambda m: setattr(m.head, "bias", None),
    "a buffer": lambda m: m.norm.running_mean.add_(1),
    "a buffer's data": lambda m: m.norm.running_var.data.mul_(3),
    "a state dict": lambda m: m.load_state_dict({k: v + 1 for k, v in m.state_dict().items()}),
    "an assigned state dict": lambda m: m.load_state_dict({k: v + 1 for k, v in m.state_dict().items()}, assign=True),
    "another layer": lambda m: setattr(m, "head", nn.Linear(8, 4)),
    "the storage": lambda m: m.conv.weight.untyped_storage().fill_(0),
    "NumPy": lambda m: m.conv.weight.detach().numpy().fill(0.5),
    "a buffer's array": lambda m: m.norm.running_mean.numpy().fill(0.5),
    "memoryview": lambda m: memoryview(m.norm.running_mean.detach()).cast("B").__setitem__(slice(0, 32), bytes(32)),
    "inference mode": lambda m: _in_inference_mode(m),
    "out=": lambda m: cresset.add(m.head.bias.detach(), 1, out=m.head.bias.detach()),
    "foreach": lambda m: cresset._foreach_mul_(list(m.parameters()), 2.0),
    "vector_to_parameters": lambda m: nn.utils.vector_to_parameters(cresset.randn(sum(p.numel() for p in m.parameters())), m.parameters()),
    "init": lambda m: nn.init.normal_(m.conv.weight),
    "swap": lambda m: m.double().float().head.weight.data.add_(1),
}


def _in_inference_mode(m):
    with cresset.inference_mode():
        m.conv.weight.add_(1)


@pytest.mark.parametrize("warm", [1, 3])
@pytest.mark.parametrize("change", CHANGES)
def test_changed_weights_never_change_the_answer(change, warm):
    module, x = net(), cresset.randn(2, 3, 8, 8)
    compiled = cresset.compile(module)
    for _ in range(warm):
        check(compiled, module, x)
    before = module(x).detach()
    with cresset.no_grad():
        CHANGES[change](module)
    assert not cresset.allclose(module(x), before, atol=1e-3), "the change is none"
    for _ in range(4):
        check(compiled, module, x)


def test_an_array_that_was_taken_before_the_first_call_and_is_written_later():
    module, x = net(), cresset.randn(2, 3, 8, 8)
    array = module.conv.weight.detach().numpy()
    compiled = cresset.compile(module)
    check(compiled, module, x)
    array[:] = 0.25
    check(compiled, module, x)
    capsule = module.head.weight.detach().__dlpack__()
    other = cresset.utils.dlpack.from_dlpack(capsule)
    check(compiled, module, x)
    other.mul_(2)
    check(compiled, module, x)


def test_data_that_was_taken_before_the_first_call_and_is_written_later():
    module, x = net(), cresset.randn(2, 3, 8, 8)
    data = module.conv.weight.data
    compiled = cresset.compile(module)
    check(compiled, module, x)
    data.mul_(2)
    check(compiled, module, x)


def test_weights_that_rest_again_are_packed_again():
    module, x = net(), cresset.randn(2, 3, 8, 8)
    compiled = cresset.compile(module)
    optimizer = cresset.optim.SGD(module.parameters(), lr=0.1)
    for _ in range(3):
        for _ in range(3):
            check(compiled, module, x)
        held = [e.program for e in _compiled(compiled).entries if type(e.program).__name__ == "HeldWeights"]
        assert held and all(h._packed is not None for h in held)
        module(x).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    check(compiled, module, x)


def test_writes_to_others_do_not_unpack():
    module, other, x = net(), nn.Linear(4, 4), cresset.randn(2, 3, 8, 8)
    compiled = cresset.compile(module)
    check(compiled, module, x)
    other.weight.data.add_(1)
    check(compiled, module, x)
    [entry] = _compiled(compiled).entries
    assert entry.program._packed is not None and entry.program._packings == 1


class Gives(nn.Module):
    """Results that are, or look at, what is the same in every call."""

    def __init__(self, how):
        super().__init__()
        self.weight, self.how = nn.Parameter(cresset.arange(6.0).view(2, 3), requires_grad=False), how

    def forward(self, x):
        return self.how(self, x)


GIVES = {
    "the weight": lambda m, x: (x + 1, m.weight),
    "a view": lambda m, x: m.weight.t(),
    "computed": lambda m, x: (m.weight * 2, x + m.weight),
    "a view of it": lambda m, x: (m.weight * 2).view(-1),
    "a slice by size": lambda m, x: (m.weight * 2)[: x.size(0)],
    "expanded": lambda m, x: (m.weight[:1] * 2).expand(x.size(0), 3),
    "contiguous": lambda m, x: (m.weight * 2)[: x.size(0)].contiguous(),
    "written": lambda m, x: (m.weight * 2).add_(x),
    "written as out": lambda m, x: cresset.add(x, 1, out=m.weight * 2),
    "written by size": lambda m, x: (m.weight + 1).mul_(x.size(0)),
}


@pytest.mark.parametrize("how", GIVES)
def test_results_may_be_written_to(how):
    module = Gives(GIVES[how])
    compiled = cresset.compile(module)
    x = cresset.ones(2, 3)
    with cresset.no_grad():
        for _ in range(3):
            got, want = compiled(x), module(x)
            for a, b in zip(got, want) if isinstance(got, tuple) else [(got, want)]:
                cresset.testing.assert_close(a, b)
                a.fill_(7)
            module.weight.copy_(cresset.arange(6.0).view(2, 3))


def test_gradients_and_pack_weights_off():
    module, x = net(), cresset.randn(2, 3, 8, 8)
    compiled = cresset.compile(module)
    check(compiled, module, x)
    compiled(x).sum().backward()
    assert module.conv.weight.grad is not None
    plain = cresset.compile(module, options={"pack_weights": False})
    check(plain, module, x)
    assert "weights packed" not in report(plain)


def test_threads_while_weights_change():
    module = net()
    compiled = cresset.compile(module)
    x = cresset.randn(2, 3, 8, 8)
    check(compiled, module, x)
    wrong = []

    def work():
        with cresset.no_grad():
            want = module(x)
            for _ in range(30):
                if not cresset.allclose(compiled(x), want, atol=1e-4, rtol=1e-3):
                    wrong.append(1)

    for _ in range(3):
        workers = [threading.Thread(target=work) for _ in range(3)]
        [w.start() for w in workers]
        [w.join() for w in workers]
        with cresset.no_grad():
            module.head.weight.mul_(1.5)
    assert not wrong
