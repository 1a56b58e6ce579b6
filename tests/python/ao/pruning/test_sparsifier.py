"""Masks of weights and their schedules (`ao.pruning`), beside PyTorch 2.13: masks, levels and words are its own."""

import copy
import io

import cresset as torch
import pytest
from cresset import nn
from cresset.ao import pruning
from cresset.ao.pruning.sparsifier.utils import module_contains_param, swap_module
from cresset.nn.utils import parametrize

W = torch.tensor(
    [
        [-1.1258, -1.1524, -0.2506, -0.4339, 0.8487, 0.6920, -0.3160],
        [-2.1152, 0.3223, -1.2633, 0.3500, 0.3081, 0.1198, 1.2377],
        [1.1168, -0.2473, -1.3527, -1.6959, 0.5667, 0.7935, 0.4397],
        [0.1124, 0.6408, 0.4412, -0.1023, 0.7924, -0.2897, 0.0525],
        [0.5229, 2.3022, -1.4689, -1.5867, -0.6731, 0.8728, 1.0554],
        [0.1778, -0.2303, -0.3918, 0.5433, -0.3952, -0.4462, 0.7440],
    ]
)


def rows(mask):
    return ["".join(str(int(value)) for value in row) for row in mask.tolist()]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.seq = nn.Sequential(nn.Linear(2, 3, bias=False), nn.ReLU(), nn.Linear(3, 4))
        self.conv = nn.Conv2d(1, 2, 3)
        self.last = nn.Linear(4, 4)
        self.p = nn.Parameter(torch.ones(3))


class FirstRow(pruning.BaseSparsifier):
    def __init__(self, **defaults):
        super().__init__(defaults=defaults)

    def update_mask(self, module, tensor_name, tensor_fqn, **kwargs):
        module.parametrizations[tensor_name][0].mask[0] = 0
        self.state[tensor_fqn]["steps"] = self.state[tensor_fqn].get("steps", 0) + 1


def prepared(config=None, kind=FirstRow, **defaults):
    sparsifier, net = kind(**defaults), Net()
    sparsifier.prepare(net, config)
    return sparsifier, net


def masked(weight, **arguments):
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    layer.weight = nn.Parameter(weight.clone())
    sparsifier = pruning.WeightNormSparsifier(**arguments)
    sparsifier.prepare(nn.Sequential(layer), None)
    sparsifier.step()
    return layer.parametrizations.weight[0].mask


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, "1111000 1111111 1111000 0000000 1111111 0000000"),
        ({"sparsity_level": 0.3}, "1111111 1111111 1111111 0000000 1111111 0000000"),
        ({"sparsity_level": 0.3, "sparse_block_shape": (2, 3)}, "1110001 1110001 0001110 0001110 1111111 1111111"),
        ({"norm": 1}, "1111111 1111000 1111000 0000000 1111111 0000000"),
        ({"sparsity_level": -1.0}, "1111111 1111111 1111111 1111111 1111111 1111111"),
        ({"sparsity_level": 2.0}, "0000000 0000000 0000000 0000000 0000000 0000000"),
        ({"sparsity_level": 0.01}, "1111111 1111111 1111111 1111111 1111111 1111111"),
        ({"zeros_per_block": 0}, "1111111 1111111 1111111 1111111 1111111 1111111"),
        ({"sparse_block_shape": (9, 9)}, "1111111 1111111 1111111 1111111 1111111 1111111"),
        ({"sparsity_level": 0.95, "sparse_block_shape": (1, 1)}, "0000000 1000000 0000000 0000000 0100000 0000000"),
        ({"sparse_block_shape": (3, 1)}, "1011001 1011001 1011001 0111000 0111000 0111000"),
        ({"sparsity_level": 0.999, "sparse_block_shape": (3, 1)}, "1000000 1000000 1000000 0000000 0000000 0000000"),
    ],
)
def test_blocks_of_smallest_norm_are_masked(arguments, expected):
    assert rows(masked(W, **arguments)) == expected.split()


def test_zeros_in_blocks_at_the_edges():
    # PyTorch's mask has the shape of whole blocks here, 8 columns, and fits no weight; its first 7 columns are these.
    assert rows(masked(W, sparsity_level=1.0, zeros_per_block=2)) == "1100100 1010001 0011010 0110100 0101001 0011001".split()
    assert rows(masked(W, sparsity_level=1.0, sparse_block_shape=(2, 2), zeros_per_block=1)) == "1101110 1011101 1111111 0110100 1111111 0101010".split()


def test_ties_are_broken_as_in_pytorch():
    assert rows(masked(torch.ones(4, 8))) == ["11111111", "11111111", "00000000", "00000000"]
    assert rows(masked(torch.ones(4, 8), sparsity_level=1.0, zeros_per_block=2)) == ["11001100"] * 4


def test_masked_weights_stay_masked():
    layer = nn.Linear(8, 2, bias=False)
    layer.weight = nn.Parameter(torch.arange(1.0, 17).view(2, 8))
    sparsifier = pruning.WeightNormSparsifier()
    sparsifier.prepare(nn.Sequential(layer), None)
    sparsifier.step()
    mask = layer.parametrizations.weight[0].mask
    with torch.no_grad():
        layer.parametrizations.weight.original.copy_(layer.parametrizations.weight.original.flip(0))
    sparsifier.step()
    assert layer.parametrizations.weight[0].mask is mask
    assert rows(mask) == ["00000000", "11111111"]


def test_norms_refuse():
    with pytest.raises(ValueError, match="^Number of zeros per block cannot be more than the total number of elements in that block.$"):
        masked(W, zeros_per_block=5)
    with pytest.raises(ValueError, match="^Number of zeros per block should be positive.$"):
        masked(W, zeros_per_block=-1)
    with pytest.raises(NotImplementedError, match="^L-3 is not yet implemented.$"):
        pruning.WeightNormSparsifier(norm=3)
    assert pruning.WeightNormSparsifier(sparse_block_shape=(2, 2)).defaults == {"sparsity_level": 0.5, "sparse_block_shape": (2, 2), "zeros_per_block": 4}


@pytest.mark.parametrize(
    ("shape", "nearliness", "expected"),
    [
        ((4, 4), 1, "1000 0100 0010 0001"), ((4, 4), 3, "1100 1110 0111 0011"), ((3, 5), 3, "11000 11100 01110"), ((5, 3), 3, "110 111 011 001 000"),
        ((4, 4), 0, "0000 0000 0000 0000"), ((4, 4), -1, "0000 0000 0000 0000"), ((4, 4), 7, "1111 1111 1111 1111"),
        ((4, 4), 2, "nearliness can only be an odd number"), ((4, 6), 9, "nearliness cannot be larger than the dimensions of tensor."),
    ],
)  # fmt: skip
def test_diagonals(shape, nearliness, expected):
    layer = nn.Linear(shape[1], shape[0])
    sparsifier = pruning.NearlyDiagonalSparsifier(nearliness)
    sparsifier.prepare(nn.Sequential(layer), None)
    if "nearliness" in expected:
        with pytest.raises(ValueError, match=f"^{expected}$"):
            sparsifier.step()
    else:
        sparsifier.step()
        assert rows(layer.parametrizations.weight[0].mask) == expected.split()


def test_groups_of_a_model():
    sparsifier, net = prepared(level=1)
    assert [group["tensor_fqn"] for group in sparsifier.groups] == ["last.weight", "seq.0.weight", "seq.2.weight"]
    assert list(sparsifier.groups[0]) == ["level", "tensor_fqn", "module_fqn", "module", "tensor_name"]
    sparsifier.step()
    assert rows(net.last.parametrizations.weight[0].mask) == ["0000", "1111", "1111", "1111"]
    assert sparsifier.state["last.weight"]["mask"] is net.last.parametrizations.weight[0].mask
    assert "linear" not in repr(FirstRow()) and repr(FirstRow()) == "FirstRow ()"
    assert repr(prepared([{"tensor_fqn": "p"}])[0]).startswith("FirstRow (\n\tGroup 0\n\t    module: ParametrizedNet(")
    assert [k for k in net.state_dict() if k.startswith("last")] == ["last.bias", "last.parametrizations.weight.original"]
    nested = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.Linear(1, 1)), nn.Linear(1, 1)), nn.Sequential(nn.Linear(1, 1)), nn.Linear(1, 1))
    sparsifier.make_config_from_model(nested)
    assert [entry["tensor_fqn"] for entry in sparsifier.config] == ["0.weight", "3.weight", "2.0.weight", "1.0.weight", "1.2.weight", "1.1.0.weight"]


@pytest.mark.parametrize(
    ("config", "error", "words"),
    [
        ([{}], AssertionError, "tensor_fqn is a required argument in the sparsity config which replaces previous `module` and [module]`fqn` arguments"),
        (["last.weight"], AssertionError, "config elements should be dicts not modules i.e.:[{`tensor_fqn`: `foo.bar.weight`}, {`tensor_fqn`: ... }, ...]"),
        ([{"tensor_fqn": "last.weight", "module_fqn": "x"}], AssertionError, "Given both `module_fqn` and `tensor_fqn` in the config, it is expected them to agree!"),
        ([{"tensor_fqn": "last.weight", "module": 1}], AssertionError, "Given both `module` and `tensor_fqn` in the config, it is expected them to agree!"),
        ([{"tensor_fqn": "none.weight"}], AttributeError, "'NoneType' object has no attribute 'weight'"),
        (5, TypeError, "'int' object is not iterable"),
    ],
)
def test_configurations_refuse(config, error, words):
    with pytest.raises(error) as caught:
        prepared(config)
    assert str(caught.value) == words


def test_base_classes_refuse():
    with pytest.raises(TypeError, match="Can't instantiate abstract class BaseSparsifier with abstract method update_mask"):
        pruning.BaseSparsifier()
    with pytest.raises(NotImplementedError, match="^Need to auto generate mapping $"):
        prepared()[0].convert(nn.Linear(1, 1))
    with pytest.raises(AssertionError) as caught:
        pruning.FakeSparsity(torch.ones(2))(torch.ones(3))
    assert str(caught.value).replace("cresset", "torch") == "mask shape (torch.Size([2])) must match x shape (torch.Size([3]))"


def test_squash_keeps_what_is_asked_for():
    sparsifier, net = prepared(a=1, b=2)
    sparsifier.step()
    weight, original = net.last.weight.detach().clone(), net.last.parametrizations.weight.original
    sparsifier.squash_mask(params_to_keep=("a",), params_to_keep_per_layer={"seq.0": ("b", "module_fqn")})
    assert type(net.last) is nn.Linear and net.last.weight is original and torch.equal(net.last.weight, weight)
    assert net.last.sparse_params == {"a": 1} and net.seq[0].sparse_params == {"a": 1, "b": 2, "module_fqn": "seq.0"}
    with pytest.raises(ValueError, match="does not have a parametrization on weight"):
        sparsifier.squash_mask()
    with pytest.raises(KeyError, match="zz"):
        prepared()[0].squash_mask(params_to_keep=("zz",))


def test_state_dicts():
    sparsifier, _ = prepared([{"tensor_fqn": "last.weight", "a": 5}], a=1)
    sparsifier.step()
    state = sparsifier.state_dict()
    assert state["groups"] == [{"a": 5, "tensor_fqn": "last.weight"}]
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    state = torch.load(file, weights_only=False)
    other, net = prepared()
    other.load_state_dict(state)
    assert [(g["tensor_fqn"], g["a"], g["module"] is net.last) for g in other.groups] == [("last.weight", 5, True)]
    assert rows(net.last.parametrizations.weight[0].mask) == ["0000", "1111", "1111", "1111"]
    # In PyTorch masks leave the state when they are loaded, so that a second state_dict has none.
    assert rows(other.state_dict()["state"]["last.weight"]["mask"]) == ["0000", "1111", "1111", "1111"]
    assert other.state["last.weight"]["steps"] == 1
    broken = copy.deepcopy(state)
    broken["state"]["zz.weight"] = {}
    with pytest.raises(RuntimeError, match="^Error loading zz.weight into the model$"):
        other.load_state_dict(broken)


def test_disabled_masks_stay():
    sparsifier, net = prepared()
    sparsifier.enable_mask_update = False
    sparsifier.step()
    assert net.last.parametrizations.weight[0].mask.all()


class Dense(nn.Linear):
    @classmethod
    def from_dense(cls, module):
        return cls(module.in_features, module.out_features)


def test_swap_and_convert():
    sparsifier, net = prepared([{"tensor_fqn": "last.weight"}])
    converted = sparsifier.convert(net, mapping={nn.Linear: Dense})
    assert [type(m).__name__ for m in converted.modules()] == ["Net", "Sequential", "Linear", "ReLU", "Linear", "Conv2d", "Dense"]
    assert parametrize.is_parametrized(net.last) and sparsifier.convert(net, mapping={nn.Linear: Dense}, inplace=True) is net and type(net.last) is Dense
    seen = []
    layer = nn.Linear(2, 3)
    layer.register_forward_pre_hook(lambda m, args: seen.append("pre"))
    layer.register_forward_hook(lambda m, args, out: seen.append("post"))
    swap_module(layer, {nn.Linear: Dense})(torch.ones(1, 2))
    assert seen == ["pre", "post"] and swap_module(layer, {}) is layer
    layer.bias = nn.Parameter(torch.ones(3, device="meta"))
    with pytest.raises(AssertionError, match="^swap_module only works with cpu or single-device CUDA modules, but got devices "):
        swap_module(layer, {nn.Linear: Dense})


def test_names_of_modules():
    net = Net()
    assert [pruning.module_to_fqn(net, m) for m in (net, net.seq[2], nn.ReLU())] == ["", "seq.2", None]
    assert pruning.module_to_fqn(net, net.last, "pre") == "prelast"
    assert pruning.fqn_to_module(net, "") is net and pruning.fqn_to_module(net, "seq.2.weight") is net.seq[2].weight
    assert pruning.fqn_to_module(net, "a.b") is None and pruning.fqn_to_module(None, "") is None
    assert pruning.get_arg_info_from_tensor_fqn(net, "foo.bar.baz") == {"module_fqn": "foo.bar", "module": None, "tensor_name": "baz", "tensor_fqn": "foo.bar.baz"}
    assert pruning.get_arg_info_from_tensor_fqn(net, "p")["module"] is net
    sparsifier, net = prepared([{"tensor_fqn": "last.weight"}])
    assert module_contains_param(net.last, pruning.FakeSparsity) and not module_contains_param(net.seq[0], pruning.FakeSparsity)


def scheduled(kind, *args, layers=2, **kwargs):
    sparsifier = pruning.WeightNormSparsifier()
    sparsifier.prepare(nn.Sequential(*[nn.Linear(4, 4) for _ in range(layers)]), None)
    return sparsifier, kind(sparsifier, *args, **kwargs)


def levels(sparsifier):
    return [round(group["sparsity_level"], 6) for group in sparsifier.groups]


class Half(pruning.BaseScheduler):
    def get_sl(self):
        return [group["sparsity_level"] * 0.5 for group in self.sparsifier.groups] if self.last_epoch > 0 else list(self.base_sl)


def test_schedules_step(capsys):
    sparsifier, scheduler = scheduled(Half, verbose=True)
    assert levels(sparsifier) == [0.5, 0.5] == scheduler.get_last_sl()
    sparsifier.step()
    scheduler.step(7)
    assert levels(sparsifier) == [0.25, 0.25] == scheduler.get_last_sl() and scheduler.last_epoch == 1
    assert capsys.readouterr().out.splitlines() == [
        "Adjusting sparsity level of group 0 to 5.0000e-01.",
        "Adjusting sparsity level of group 1 to 5.0000e-01.",
        "Epoch     7: adjusting sparsity level of group 0 to 2.5000e-01.",
        "Epoch     7: adjusting sparsity level of group 1 to 2.5000e-01.",
    ]
    assert scheduler.state_dict() == {
        "base_sl": [0.5, 0.5], "last_epoch": 1, "_step_count": 2, "verbose": True, "_get_sl_called_within_step": False, "_last_sl": [0.25, 0.25],
    }  # fmt: skip
    scheduler.load_state_dict({"last_epoch": 9})
    assert scheduler.last_epoch == 9


def test_order_of_steps():
    _, scheduler = scheduled(Half)
    with pytest.warns(UserWarning, match=r"^Detected call of `scheduler.step\(\)` before `sparsifier.step\(\)`"):
        scheduler.step()
    sparsifier, scheduler = scheduled(Half)
    sparsifier.step = lambda: None
    with pytest.warns(UserWarning, match=r"^Seems like `sparsifier.step\(\)` has been overridden after sparsity scheduler initialization"):
        scheduler.step()
    with pytest.raises(TypeError, match="^int is not an instance of torch.ao.pruning.BaseSparsifier$"):
        Half(5)
    with pytest.raises(ValueError, match="^Expected 2 lr_lambdas, but got 1$"):
        scheduled(pruning.LambdaSL, [lambda epoch: 1])
    with pytest.raises(ValueError, match="^Expected variable of length 2, but got 3$"):
        scheduled(pruning.CubicSL, init_sl=[0.1, 0.2, 0.3])
    with pytest.warns(UserWarning, match=r"please use `get_last_sl\(\)`"):
        scheduled(pruning.LambdaSL, lambda epoch: 1)[1].get_sl()


def test_levels_of_schedules():
    sparsifier, scheduler = scheduled(pruning.LambdaSL, [lambda epoch: epoch * 0.1, lambda epoch: epoch + 1])
    sparsifier.step()
    scheduler.step()
    assert levels(sparsifier) == [0.05, 1.0]
    sparsifier, scheduler = scheduled(pruning.CubicSL, init_sl=0.1, init_t=2, delta_t=3, total_t=4)
    found = []
    for _ in range(15):
        sparsifier.step()
        scheduler.step()
        found.append(levels(sparsifier)[0])
    assert found == [
        0.1, 0.1, 0.191898, 0.268519, 0.33125, 0.381481, 0.420602, 0.45, 0.471065, 0.485185, 0.49375, 0.498148, 0.499769, 0.5, 0.5,
    ]  # fmt: skip
    at = pruning.CubicSL.sparsity_compute_fn
    assert [at(0, 0.5, 5, 0, 2, 10), at(0.1, 0.5, 1, 3, 2, 10), at(0.1, 0.5, 1, 3, 2, 10, True), at(0.1, 0.5, 100, 3, 2, 10)] == [0.2890625, 0.1, 0, 0.5]
