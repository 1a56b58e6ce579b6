"""Module: registration, lookup, conversion, printing, copying."""

import copy
import pickle
import warnings
from collections import OrderedDict

import cresset
import pytest
from cresset import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.scale = nn.Parameter(cresset.ones(3))
        self.register_buffer("mean", cresset.zeros(3))
        self.register_buffer("scratch", cresset.zeros(1), persistent=False)
        self.register_parameter("bias", None)
        self.second = nn.Linear(3, 2)

    def forward(self, x):
        return self.second(self.first(x) * self.scale - self.mean)


def test_registration_by_attribute():
    net = Net()
    assert [n for n, _ in net.named_parameters()] == [
        "scale",
        "first.weight",
        "first.bias",
        "second.weight",
        "second.bias",
    ]
    assert [n for n, _ in net.named_buffers()] == ["mean", "scratch"]
    assert [n for n, _ in net.named_children()] == ["first", "second"]
    assert [n for n, _ in net.named_modules()] == ["", "first", "second"]
    assert net.bias is None and "bias" not in dict(net.named_parameters())
    assert list(net.state_dict()) == ["scale", "mean", "first.weight", "first.bias", "second.weight", "second.bias"]
    assert "scale" not in vars(net) and "scale" in dir(net)
    assert net(cresset.ones(4, 2)).shape == (4, 2)


def test_a_name_lives_in_one_place():
    net = Net()
    net.thing = 3
    net.thing = nn.Parameter(cresset.ones(1))
    assert "thing" in net._parameters and "thing" not in vars(net)
    del net.thing
    net.thing = nn.ReLU()
    assert "thing" in net._modules and "thing" not in net._parameters
    net.mean = cresset.ones(3)
    assert net._buffers["mean"].tolist() == [1, 1, 1]
    net.mean = None
    assert net.mean is None
    net.mean = cresset.zeros(3)
    assert "mean" in net._buffers
    net.scale = None
    assert net._parameters["scale"] is None
    del net.first
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'first'"):
        net.first
    with pytest.raises(AttributeError):
        del net.nothing


def test_duplicates_once_in_parameters_twice_in_state_dict():
    net = nn.Module()
    net.a = net.b = nn.Linear(2, 2)
    net.c = net.a.weight
    assert [n for n, _ in net.named_parameters()] == ["c", "a.bias"]
    assert [n for n, _ in net.named_parameters(remove_duplicate=False)] == [
        "c",
        "a.weight",
        "a.bias",
        "b.weight",
        "b.bias",
    ]
    assert [n for n, _ in net.named_modules()] == ["", "a"]
    assert [n for n, _ in net.named_modules(remove_duplicate=False)] == ["", "a", "b"]
    assert [n for n, _ in net.named_children()] == ["a"]
    assert list(net.state_dict()) == ["c", "a.weight", "a.bias", "b.weight", "b.bias"]
    assert len(list(net.parameters())) == 2 and len(list(net.modules())) == 2
    assert [n for n, _ in net.named_parameters(prefix="p", recurse=False)] == ["p.c"]


def uninitialised(body):
    return type("Early", (nn.Module,), {"__init__": body})


@pytest.mark.parametrize(
    "body, words",
    [
        (
            lambda s: setattr(s, "w", nn.Parameter(cresset.ones(1))),
            r"cannot assign parameters before Module.__init__\(\) call",
        ),
        (lambda s: setattr(s, "m", nn.ReLU()), r"cannot assign module before Module.__init__\(\) call"),
        (lambda s: s.register_buffer("b", None), r"cannot assign buffer before Module.__init__\(\) call"),
        (lambda s: s.register_parameter("p", None), r"cannot assign parameter before Module.__init__\(\) call"),
    ],
)
def test_before_init(body, words):
    with pytest.raises(AttributeError, match=words):
        uninitialised(body)()


def test_module_without_init_says_so():
    with pytest.raises(AttributeError, match=r"Module.__init__\(\) has not been called"):
        uninitialised(lambda s: None)().nope


@pytest.mark.parametrize("kind", ["parameter", "buffer", "module"])
def test_name_errors(kind):
    register = {"parameter": "register_parameter", "buffer": "register_buffer", "module": "add_module"}[kind]
    call = getattr(nn.Linear(2, 2), register)
    with pytest.raises(TypeError, match=f"{kind} name should be a string. Got int"):
        call(3, None)
    with pytest.raises(KeyError, match=f"{kind} name can..?t contain"):
        call("a.b", None)
    with pytest.raises(KeyError, match=f"{kind} name can..?t be empty string"):
        call("", None)
    with pytest.raises(KeyError, match="attribute 'forward' already exists"):
        call("forward", None)


def test_wrong_types():
    net = Net()
    with pytest.raises(TypeError, match=r"cannot assign 'torch.FloatTensor' as parameter 'scale' \(torch.nn.Parameter or None expected\)$"):
        net.scale = cresset.ones(3)
    with pytest.raises(TypeError, match="cannot assign 'int' as buffer 'mean'"):
        net.mean = 3
    with pytest.raises(TypeError, match="cannot assign 'int' as child module 'first'"):
        net.first = 3
    with pytest.raises(TypeError, match="cannot assign 'torch.FloatTensor' object to parameter 'q'"):
        net.register_parameter("q", cresset.ones(1))
    with pytest.raises(TypeError, match="cannot assign 'int' object to buffer 'q'"):
        net.register_buffer("q", 3)
    with pytest.raises(TypeError, match="int is not a Module subclass"):
        net.add_module("q", 3)
    with pytest.raises(KeyError, match="attribute 'scale' already exists"):
        net.register_buffer("scale", cresset.ones(1))
    with pytest.raises(TypeError, match="unexpected keyword argument 'x'"):
        nn.Module(x=3)
    assert not hasattr(net, "q")


def test_missing_attribute_and_forward():
    with pytest.raises(AttributeError, match="^'Net' object has no attribute 'nope'$"):
        Net().nope
    with pytest.raises(NotImplementedError, match=r'Module \[Module\] is missing the required "forward" function'):
        nn.Module()(1)


def test_get_by_path():
    net = nn.Sequential(OrderedDict(body=Net(), head=nn.ReLU()))
    assert net.get_submodule("") is net
    assert net.get_submodule("body.first") is net.body.first
    assert net.get_parameter("body.first.weight") is net.body.first.weight
    assert net.get_buffer("body.mean") is net.body.mean
    for call, words in (
        (lambda: net.get_submodule("body.x"), "Net has no attribute `x`"),
        (lambda: net.get_submodule("body.scale"), "`scale` is not an nn.Module"),
        (lambda: net.get_parameter("body.x"), "Net has no attribute `x`"),
        (lambda: net.get_parameter("body.mean"), "`mean` is not an nn.Parameter"),
        (lambda: net.get_buffer("body.scale"), "`scale` is not a buffer"),
        (lambda: net.get_buffer("body.x"), "Net has no attribute `x`"),
    ):
        with pytest.raises(AttributeError, match=words):
            call()
    net.set_submodule("body.first", nn.Identity())
    assert isinstance(net.body.first, nn.Identity)
    with pytest.raises(ValueError, match="Cannot set the submodule without a target name"):
        net.set_submodule("", nn.ReLU())
    with pytest.raises(AttributeError, match="Net has no attribute `y`"):
        net.set_submodule("body.y.z", nn.ReLU())


def test_buffers_persistent_or_not():
    net = Net()
    assert "scratch" not in net.state_dict()
    net.register_buffer("scratch", cresset.zeros(1))
    assert "scratch" in net.state_dict()
    net.extra = nn.Buffer(cresset.ones(2), persistent=False)
    assert "extra" in dict(net.named_buffers()) and "extra" not in net.state_dict()
    assert isinstance(net.extra, nn.Buffer) and not isinstance(cresset.ones(1), nn.Buffer)
    del net.extra
    net.register_buffer("extra", cresset.ones(1))
    assert "extra" in net.state_dict()


def test_apply_visits_children_first():
    names = []
    net = nn.Sequential(nn.Sequential(nn.ReLU()), nn.Tanh())
    assert net.apply(lambda m: names.append(type(m).__name__)) is net
    assert names == ["ReLU", "Sequential", "Tanh", "Sequential"]


def test_train_and_eval():
    net = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout()))
    assert net.eval() is net and not any(m.training for m in net.modules())
    net.train()
    assert all(m.training for m in net.modules())
    for bad in (1, "x", None):
        with pytest.raises(ValueError, match="training mode is expected to be boolean"):
            net.train(bad)


def test_to_changes_floating_dtypes_in_place():
    net = nn.BatchNorm1d(2)
    weight = net.weight
    weight.grad = cresset.ones(2)
    assert net.to(cresset.float64) is net
    assert net.weight is weight and weight.dtype == cresset.float64 and weight.grad.dtype == cresset.float64
    assert net.running_mean.dtype == cresset.float64
    assert net.num_batches_tracked.dtype == cresset.int64
    assert isinstance(weight, nn.Parameter) and weight.requires_grad
    assert net.half().weight.dtype == cresset.float16
    assert net.bfloat16().weight.dtype == cresset.bfloat16
    assert net.float().weight.dtype == cresset.float32
    assert net.double().weight.dtype == cresset.float64
    assert net.to("cpu", cresset.float32).weight.dtype == cresset.float32
    assert net.to(cresset.ones(1, dtype=cresset.float64)).weight.dtype == cresset.float64
    assert net.to(device="cpu", dtype=cresset.float32, non_blocking=True).weight.dtype == cresset.float32
    with pytest.raises(TypeError, match="only accepts floating point or complex dtypes, but got desired dtype"):
        net.to(cresset.int64)
    with pytest.raises(TypeError, match="received an invalid combination of arguments"):
        net.to(1.5)


def test_meta_and_to_empty():
    net = nn.Linear(2, 2, device="meta")
    assert net.weight.is_meta and isinstance(net.weight, nn.Parameter)
    with pytest.raises(
        NotImplementedError, match=r"Cannot copy out of meta tensor; no data! Please use .*to_empty\(\)"
    ):
        net.to("cpu")
    net.to_empty(device="cpu")
    assert net.weight.device.type == "cpu" and net.weight.shape == (2, 2) and isinstance(net.weight, nn.Parameter)
    real = nn.Linear(2, 2).to("meta")
    assert real.weight.is_meta and real.weight.requires_grad


def test_requires_grad_and_zero_grad():
    net = nn.Linear(2, 2)
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())
    net.requires_grad_()
    net(cresset.ones(1, 2)).sum().backward()
    kept = net.weight.grad
    net.zero_grad(set_to_none=False)
    assert net.weight.grad is kept and kept.tolist() == [[0, 0], [0, 0]]
    net.zero_grad()
    assert net.weight.grad is None


def test_repr():
    net = Net()
    assert repr(net) == (
        "Net(\n  (first): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (second): Linear(in_features=3, out_features=2, bias=True)\n)"
    )
    assert repr(nn.Sequential()) == "Sequential()"
    assert repr(nn.Sequential(nn.Sequential(nn.ReLU()))) == "Sequential(\n  (0): Sequential(\n    (0): ReLU()\n  )\n)"

    class Extra(nn.Module):
        def extra_repr(self):
            return "a=1\nb=2"

    assert repr(Extra()) == "Extra(\n  a=1\n  b=2\n)"
    with_child = Extra()
    with_child.relu = nn.ReLU()
    assert repr(with_child) == "Extra(\n  a=1\n  b=2\n  (relu): ReLU()\n)"
    assert repr(nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1), nn.Linear(1, 1), nn.ReLU()])) == (
        "ModuleList(\n  (0-2): 3 x Linear(in_features=1, out_features=1, bias=True)\n  (3): ReLU()\n)"
    )


def test_deepcopy_and_pickle():
    net = Net()
    net.tied = net.scale
    net.scale.grad = cresset.ones(3)
    for clone in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert type(clone) is Net and clone.tied is clone.scale and clone.scale is not net.scale
        assert isinstance(clone.scale, nn.Parameter) and clone.scale.requires_grad
        for (n1, a), (n2, b) in zip(net.state_dict().items(), clone.state_dict().items(), strict=True):
            assert n1 == n2 and cresset.equal(a, b) and a.data_ptr() != b.data_ptr()
        x = cresset.ones(1, 2)
        assert cresset.equal(net(x), clone(x))
        with cresset.no_grad():
            clone.scale.zero_()
        assert net.scale.tolist() == [1, 1, 1]
        assert "scratch" not in clone.state_dict()


def test_pickle_keeps_module_level_hooks():
    net = nn.Linear(1, 1)
    net.register_forward_hook(replace_by_zero)
    clone = pickle.loads(pickle.dumps(net))
    assert clone(cresset.ones(1, 1)).tolist() == [[0.0]]


def replace_by_zero(module, args, output):
    return cresset.zeros_like(output)


def test_parameter_semantics():
    p = nn.Parameter(cresset.ones(2))
    assert p.requires_grad and p.is_leaf and isinstance(p, cresset.Tensor) and type(p) is nn.Parameter
    assert repr(p) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert type(p * 2) is cresset.Tensor and type(p.detach()) is cresset.Tensor
    base = cresset.zeros(2)
    shared = nn.Parameter(base, requires_grad=False)
    base.fill_(3)
    assert shared.tolist() == [3, 3] and not shared.requires_grad
    assert nn.Parameter().shape == (0,)
    assert not isinstance(base, nn.Parameter) and isinstance(p, nn.Parameter)
    with pytest.raises(RuntimeError, match="(?i)only tensors of floating point .*can require gradients"):
        nn.Parameter(cresset.ones(2, dtype=cresset.int64))
    with pytest.raises(AttributeError, match="'int' object has no attribute 'detach'"):
        nn.Parameter(3)
    clone = copy.deepcopy(p)
    assert type(clone) is nn.Parameter and clone.data_ptr() != p.data_ptr()
    assert type(pickle.loads(pickle.dumps(p))) is nn.Parameter


def test_parameter_of_a_subclass_keeps_its_type():
    class Kind(cresset.Tensor):
        pass

    p = nn.Parameter(cresset.ones(2).as_subclass(Kind))
    assert type(p) is Kind and isinstance(p, nn.Parameter) and p.requires_grad
    net = nn.Module()
    net.p = p
    assert [n for n, _ in net.named_parameters()] == ["p"]

    class MyParameter(nn.Parameter):
        pass

    q = MyParameter(cresset.ones(1))
    assert type(q) is MyParameter and isinstance(q, nn.Parameter)
    assert not isinstance(nn.Parameter(cresset.ones(1)), MyParameter)


def test_non_leaf_parameter_is_refused():
    p = nn.Parameter(cresset.ones(2))
    view = (p * 2).as_subclass(nn.Parameter)
    with pytest.raises(ValueError, match="Cannot assign non-leaf Tensor to parameter 'x'"):
        nn.Module().register_parameter("x", view)


def test_setting_a_plain_weight_after_deleting_the_parameter():
    net = nn.Linear(2, 1, bias=False)
    del net.weight
    net.weight = cresset.full((1, 2), 3.0)
    assert net(cresset.ones(1, 2)).tolist() == [[6.0]]
    assert list(net.parameters()) == []


def test_state_from_older_pickles_gets_missing_fields():
    net = nn.Linear(1, 1)
    state = dict(vars(net))
    for name in ("_forward_pre_hooks_with_kwargs", "_non_persistent_buffers_set", "_backward_pre_hooks"):
        del state[name]
    fresh = nn.Linear.__new__(nn.Linear)
    fresh.__setstate__(state)
    assert fresh(cresset.ones(1, 1)).shape == (1, 1) and len(fresh.state_dict()) == 2


def test_extending_nn_as_the_guide_shows():
    class Linear(nn.Module):
        def __init__(self, input_features, output_features, bias=True):
            super(Linear, self).__init__()
            self.input_features = input_features
            self.output_features = output_features
            self.weight = nn.Parameter(cresset.empty(output_features, input_features))
            if bias:
                self.bias = nn.Parameter(cresset.empty(output_features))
            else:
                self.register_parameter("bias", None)
            nn.init.uniform_(self.weight, -0.1, 0.1)
            if self.bias is not None:
                nn.init.uniform_(self.bias, -0.1, 0.1)

        def forward(self, input):
            return nn.functional.linear(input, self.weight, self.bias)

        def extra_repr(self):
            return "input_features={}, output_features={}, bias={}".format(
                self.input_features, self.output_features, self.bias is not None
            )

    layer = Linear(3, 2)
    assert repr(layer) == "Linear(input_features=3, output_features=2, bias=True)"
    assert repr(Linear(3, 2, bias=False)) == "Linear(input_features=3, output_features=2, bias=False)"
    layer(cresset.ones(4, 3)).sum().backward()
    assert layer.weight.grad.tolist() == [[4.0] * 3] * 2
    assert layer.weight.abs().max().item() <= 0.1


def test_warning_free_import_and_use():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Net()(cresset.ones(1, 2)).sum().backward()
