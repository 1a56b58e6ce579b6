"""Fakes of objects of C++ classes: what traces, exported programs and operators have in their place. Expected are PyTorch 2.13's graphs."""

import copy
import logging

import pytest
from test_cpp_extension import SOURCES

import cresset as torch
from cresset._functorch.aot_autograd import aot_export_module
from cresset._library.fake_class_registry import FakeScriptObject, deregister_fake_class, find_fake_class, maybe_to_fake_obj
from cresset._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from cresset.fx.experimental.proxy_tensor import make_fx
from cresset.utils import cpp_extension


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fakes")
    cpp_extension.load("tensor_queue", SOURCES / "tensor_queue.cpp", extra_cflags=["-O0"], build_directory=folder, is_python_module=False)
    return torch.classes.fakes


@pytest.fixture
def queue(library):
    @torch._library.register_fake_class("fakes::Queue")
    class FakeQueue:
        def __init__(self, queue):
            self.queue = queue

        @classmethod
        def __obj_unflatten__(cls, flat):
            return cls(**dict(flat))

        def push(self, x):
            self.queue.append(x)

        def pop(self):
            return self.queue.pop(0)

        def size(self):
            return len(self.queue)

    with torch.library._scoped_library("fakes", "FRAGMENT") as block:
        torch.library.register_fake("fakes::push", lambda queue, x: queue.push(x), lib=block)
        torch.library.register_fake("fakes::pop", lambda queue: queue.pop(), lib=block)
        yield library.Queue
    deregister_fake_class("fakes::Queue")


def test_registering(library, caplog):
    class Fake:
        @classmethod
        def __obj_unflatten__(cls, flat):
            return cls()

    register = torch._library.register_fake_class
    with caplog.at_level(logging.WARNING):
        assert register("fakes::Bare", Fake) is Fake and register("fakes::Bare")(Fake) is Fake
        assert find_fake_class("__torch__.torch.classes.fakes.Bare") is Fake and deregister_fake_class("fakes::Bare") is Fake
        assert deregister_fake_class("fakes::Bare") is None and find_fake_class("__torch__.torch.classes.fakes.Bare") is None
    assert ["already registered" in m for m in caplog.messages] == [True, False] and "Cannot deregister" in caplog.messages[1]
    with pytest.raises(RuntimeError, match="Tried to instantiate class 'fakes.Nothing', but it does not exist"):
        register("fakes::Nothing", Fake)
    with pytest.raises(ValueError, match="namespace::name"):
        register("Bare", Fake)
    with pytest.raises(RuntimeError, match="doesn't define a classmethod __obj_unflatten__"):
        register("fakes::Bare", type("Without", (), {}))
    with pytest.raises(RuntimeError, match="__obj_unflatten__ method is not a classmethod"):
        register("fakes::Bare", type("Plain", (), {"__obj_unflatten__": lambda self, flat: self}))


def test_objects(queue):
    mode, real = FakeTensorMode(), queue([torch.ones(2, 3)])
    fake = maybe_to_fake_obj(mode, real)
    assert isinstance(fake, FakeScriptObject) and fake.real_obj is real and fake.script_class_name == "__torch__.torch.classes.fakes.Queue"
    assert maybe_to_fake_obj(mode, fake) is fake and type(fake.wrapped_obj).__name__ == "FakeQueue"
    fake.push(mode.from_tensor(torch.ones(5)))
    first = fake.pop()
    assert isinstance(first, FakeTensor) and first.shape == (2, 3) and fake.size() == 1 and real.size() == 1
    twin = copy.deepcopy(fake)
    twin.pop()
    assert (twin.size(), fake.size()) == (0, 1)
    with pytest.raises(AttributeError, match="doesn't define method turned"):  # which the C++ class has and the fake class has not
        fake.turned()
    with pytest.raises(AttributeError, match="cannot be set"):
        fake.queue = []
    with pytest.raises(AttributeError, match="does not have a field with name '__obj_flatten__'"):
        maybe_to_fake_obj(mode, torch.classes.fakes.Bare())
    deregister_fake_class("fakes::Queue")
    with pytest.raises(RuntimeError, match=r"haven't registered a fake class. Please use register_fake_class\(fakes::Queue\)"):
        maybe_to_fake_obj(mode, real)


def test_types(queue):
    assert queue([])._type().qualified_name() == "__torch__.torch.classes.fakes.Queue"
    assert str(torch._C._jit_try_infer_type(queue([])).type()) == "__torch__.torch.classes.fakes.Queue"
    assert torch.ops.fakes.push._has_torchbind_op_overload and not torch.ops.aten.add._has_torchbind_op_overload


def test_operators(queue):
    mode = FakeTensorMode()
    fake, x = maybe_to_fake_obj(mode, queue([])), mode.from_tensor(torch.ones(4))
    assert torch.ops.fakes.push(fake, x) is None and torch.ops.fakes.push.default(queue=fake, x=x) is None and fake.size() == 2
    assert torch.ops.fakes.pop(fake) is x
    with torch.library._scoped_library("fakes", "FRAGMENT") as block:
        block.define("tops(__torch__.torch.classes.fakes.Queue queue) -> Tensor")
        with pytest.raises(RuntimeError, match="no python implementation is found"):
            torch.ops.fakes.tops(fake)
        with pytest.raises(RuntimeError, match="argument 'queue' is expected to be a FakeScriptObject of __torch__.torch.classes.fakes.Queue; a FakeTensor was given"):
            torch.ops.fakes.push(x, fake)


def steps(queue, x):
    queue.push(x.cos())
    torch.ops.fakes.push(queue, x.sin())
    y = torch.ops.fakes.pop(queue) - queue.size()
    return y, queue


def lines(graph):
    return [line.strip() for line in graph.code.strip().splitlines()]


@pytest.mark.parametrize("mode", ["fake", "symbolic"])
def test_make_fx(queue, mode):
    real = queue([])
    graph = make_fx(steps, tracing_mode=mode)(real, torch.ones(2))
    assert real.size() == 0
    assert lines(graph) == [
        "def forward(self, queue_1, x_1):",
        "cos = torch.ops.aten.cos.default(x_1)",
        "call_torchbind = torch.ops.higher_order.call_torchbind(queue_1, 'push', cos);  cos = call_torchbind = None",
        "sin = torch.ops.aten.sin.default(x_1);  x_1 = None",
        "push = torch.ops.fakes.push.default(queue_1, sin);  sin = push = None",
        "pop = torch.ops.fakes.pop.default(queue_1)",
        "call_torchbind_1 = torch.ops.higher_order.call_torchbind(queue_1, 'size');  call_torchbind_1 = None",
        "sub = torch.ops.aten.sub.Tensor(pop, 1);  pop = None",
        "return (sub, queue_1)",
    ]
    y, same = graph(real, torch.zeros(2))
    assert y.tolist() == [0.0, 0.0] and same is real and real.size() == 1 and real.pop().tolist() == [0.0, 0.0]
    if mode == "symbolic":
        deregister_fake_class("fakes::Queue")
        with pytest.raises(RuntimeError, match="haven't registered a fake class"):
            make_fx(steps, tracing_mode=mode)(real, torch.ones(2))


class Counting(torch.nn.Module):
    def __init__(self, queue):
        super().__init__()
        self.held = queue([torch.ones(2), torch.ones(2)])
        self.inner = torch.nn.Linear(2, 2)
        self.inner.again = self.held

    def forward(self, x, queue):
        self.held.push(x)
        torch.ops.fakes.pop(self.inner.again)
        y = queue.pop() + self.held.size()
        x.add_(1)
        return self.inner(x) + y, queue


def test_export(queue):
    module = Counting(queue)
    given = queue([torch.zeros(2), torch.zeros(2)])
    program = torch.export.export(module, (torch.ones(2), given))
    assert module.held.size() == 2 and given.size() == 2 and module.inner.again is module.held
    assert str(program.graph) == EXPORTED
    signature = program.graph_signature
    assert [str(s) for s in signature.input_specs] == [
        "p_inner_weight: PARAMETER target='inner.weight'", "p_inner_bias: PARAMETER target='inner.bias'", "obj_held: CUSTOM_OBJ target='held'", "x: USER_INPUT",
        "queue: USER_INPUT",
    ]  # fmt: skip
    assert signature.lifted_custom_objs == ("held",) and signature.inputs_to_lifted_custom_objs == {"obj_held": "held"} and signature.user_outputs == ("add_1", "queue")
    assert program.constants["held"] is module.held and program.constants["inner.again"] is module.held
    value = [n for n in program.graph.nodes if n.name == "queue"][0].meta["val"]
    assert (value.name, value.class_fqn) == ("queue", "__torch__.torch.classes.fakes.Queue") and isinstance(value.fake_val, FakeScriptObject)
    flat = program.module()
    x = torch.ones(2)
    y, same = flat(x, given)
    assert same is given and given.size() == 1 and module.held.size() == 2 and x.tolist() == [2.0, 2.0]
    assert torch.equal(y, module.inner(x) + 2)
    with pytest.raises(RuntimeError, match=r"Expected input at \*args\[1\] to be an object of __torch__.torch.classes.fakes.Queue"):
        flat(x, 3)
    with pytest.raises(NotImplementedError, match="takes an object of __torch__.torch.classes.fakes.Queue"):
        torch.export.save(program, "never.pt2")
    again = torch.export.export(flat, (torch.ones(2), given))
    assert str(again.graph).replace("c_held", "obj_held") == EXPORTED


EXPORTED = """graph():
    %p_inner_weight : [num_users=1] = placeholder[target=p_inner_weight]
    %p_inner_bias : [num_users=1] = placeholder[target=p_inner_bias]
    %obj_held : [num_users=3] = placeholder[target=obj_held]
    %x : [num_users=2] = placeholder[target=x]
    %queue : [num_users=2] = placeholder[target=queue]
    %call_torchbind : [num_users=0] = call_function[target=torch.ops.higher_order.call_torchbind](args = (%obj_held, push, %x), kwargs = {})
    %pop : [num_users=0] = call_function[target=torch.ops.fakes.pop.default](args = (%obj_held,), kwargs = {})
    %call_torchbind_1 : [num_users=1] = call_function[target=torch.ops.higher_order.call_torchbind](args = (%queue, pop), kwargs = {})
    %call_torchbind_2 : [num_users=0] = call_function[target=torch.ops.higher_order.call_torchbind](args = (%obj_held, size), kwargs = {})
    %add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%call_torchbind_1, 2), kwargs = {})
    %add_ : [num_users=1] = call_function[target=torch.ops.aten.add_.Tensor](args = (%x, 1), kwargs = {})
    %linear : [num_users=1] = call_function[target=torch.ops.aten.linear.default](args = (%add_, %p_inner_weight, %p_inner_bias), kwargs = {})
    %add_1 : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%linear, %add), kwargs = {})
    return (add_1, queue)"""


def test_decompositions(queue):
    module = Counting(queue)
    given = queue([torch.zeros(2), torch.zeros(2)])
    core = torch.export.export(module, (torch.ones(3, 2), given)).run_decompositions()
    targets = [str(n.target) for n in core.graph.nodes if n.op == "call_function"]
    assert targets == [
        "call_torchbind", "fakes.pop.default", "call_torchbind", "call_torchbind", "aten.add.Tensor", "aten.add.Tensor", "aten.permute.default",
        "aten.addmm.default", "aten.add.Tensor",
    ]  # fmt: skip
    assert [str(s.kind.name) for s in core.graph_signature.output_specs] == ["USER_INPUT_MUTATION", "USER_OUTPUT", "USER_OUTPUT"]
    x = torch.ones(3, 2)
    y, same = core.module()(x, given)
    assert same is given and given.size() == 1 and x.tolist() == [[2.0, 2.0]] * 3 and torch.allclose(y, module.inner(x) + 2)


def test_sizes_that_vary(queue):
    class Doubles(torch.nn.Module):
        def forward(self, x, queue):
            queue.push(x * 2)
            return queue.pop(), queue

    program = torch.export.export(Doubles(), (torch.ones(3, 2), queue([])), dynamic_shapes={"x": {0: torch.export.Dim("n")}, "queue": None})
    real = queue([])
    assert program.module()(torch.ones(5, 2), real)[0].tolist() == [[2.0, 2.0]] * 5 and real.size() == 0
    assert [s.arg.name for s in program.graph_signature.output_specs] == ["call_torchbind_1", "queue"]


def test_branches_refuse(queue):
    class Branch(torch.nn.Module):
        def forward(self, x, queue):
            return torch.cond(x.sum() > 0, lambda x: x + queue.pop(), lambda x: x, (x,))

    with pytest.raises(torch._dynamo.exc.UserError, match="An object of __torch__.torch.classes.fakes.Queue is used in a branch or loop"):
        torch.export.export(Branch(), (torch.ones(2), queue([torch.ones(2)])))


def test_ahead_of_time(queue):
    class Steps(torch.nn.Module):
        def forward(self, queue, x):
            return steps(queue, x)

    graph, signature = aot_export_module(Steps(), (queue([]), torch.ones(2)), trace_joint=False)
    assert [str(n.target) for n in graph.graph.nodes if n.op == "call_function"] == [
        "aten.cos.default", "call_torchbind", "aten.sin.default", "fakes.push.default", "fakes.pop.default", "call_torchbind", "aten.sub.Tensor",
    ]  # fmt: skip
    assert signature.user_inputs == ["arg0_1", "arg1_1"] and signature.user_outputs == ["sub", "arg0_1"]
