"""state_dict and load_state_dict."""

import gc
import warnings
from collections import OrderedDict

import cresset
import pytest
from cresset import nn


def net():
    return nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))


def test_layout_and_metadata():
    model = net()
    state = model.state_dict()
    assert type(state) is OrderedDict
    assert list(state) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert state._metadata == OrderedDict([("", {"version": 1}), ("0", {"version": 1}), ("1", {"version": 1})])
    assert not state["0.weight"].requires_grad and state["0.weight"].data_ptr() == model[0].weight.data_ptr()
    assert model.state_dict(keep_vars=True)["0.weight"] is model[0].weight
    assert list(model.state_dict(prefix="m.")) == ["m.0.weight", "m.0.bias", "m.1.weight", "m.1.bias"]
    mine = OrderedDict(a=1)
    assert model.state_dict(destination=mine) is mine and list(mine)[:2] == ["a", "0.weight"]
    with pytest.warns(FutureWarning, match="Positional args are being deprecated"):
        model.state_dict(OrderedDict(), "x.")
    assert nn.BatchNorm1d(2).state_dict()._metadata[""] == {"version": 2}
    assert list(nn.BatchNorm1d(2).state_dict()) == [
        "weight",
        "bias",
        "running_mean",
        "running_var",
        "num_batches_tracked",
    ]


def test_round_trip():
    a, b = net(), net()
    result = b.load_state_dict(a.state_dict())
    assert (
        repr(result) == "<All keys matched successfully>" and result.missing_keys == [] and result.unexpected_keys == []
    )
    assert all(cresset.equal(p, q) for p, q in zip(a.parameters(), b.parameters()))
    assert a[0].weight.data_ptr() != b[0].weight.data_ptr()


def test_all_errors_at_once():
    model = net()
    bad = {"0.weight": cresset.ones(3, 3), "zz": cresset.ones(1), "1.bias": 3}
    with pytest.raises(RuntimeError) as info:
        model.load_state_dict(bad)
    text = str(info.value)
    assert text.startswith("Error(s) in loading state_dict for Sequential:\n\t")
    lines = text.split("\n\t")
    assert lines[1] == 'Missing key(s) in state_dict: "0.bias", "1.weight". '
    assert lines[2] == 'Unexpected key(s) in state_dict: "zz". '
    assert (
        lines[3].startswith("size mismatch for 0.weight: copying a param with shape ")
        and "[3, 3]" in lines[3]
        and "[3, 2]" in lines[3]
    )
    assert lines[4].startswith('While copying the parameter named "1.bias", expected ') and "<class 'int'>" in lines[4]


def test_not_strict():
    model = net()
    state = model.state_dict()
    del state["1.bias"]
    state["foo"] = cresset.ones(1)
    state["0.foo.bar"] = cresset.ones(1)
    result = model.load_state_dict(state, strict=False)
    assert result.missing_keys == ["1.bias"] and sorted(result.unexpected_keys) == ["0.foo.bar", "foo"]
    assert result == (["1.bias"], result.unexpected_keys)
    assert "missing_keys=['1.bias']" in repr(result)
    with pytest.raises(RuntimeError, match="size mismatch for 0.weight"):
        model.load_state_dict({"0.weight": cresset.ones(9)}, strict=False)


def test_not_a_mapping():
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like, got <class 'int'>"):
        net().load_state_dict(3)


def test_a_failed_load_still_copied_what_fits():
    model = nn.Linear(1, 1)
    with pytest.raises(RuntimeError, match='Unexpected key.*"x"'):
        model.load_state_dict({"weight": cresset.full((1, 1), 5.0), "bias": cresset.zeros(1), "x": cresset.ones(1)})
    assert model.weight.item() == 5.0


def test_assign_keeps_requires_grad():
    model = nn.Linear(2, 2, device="meta")
    model.bias.requires_grad_(False)
    state = nn.Linear(2, 2).state_dict()
    model.load_state_dict(state, assign=True)
    assert model.weight.device.type == "cpu" and isinstance(model.weight, nn.Parameter)
    assert model.weight.requires_grad and not model.bias.requires_grad
    assert model.weight.data_ptr() == state["weight"].data_ptr()
    norm = nn.BatchNorm1d(2)
    mean = cresset.ones(2)
    norm.load_state_dict({**norm.state_dict(), "running_mean": mean}, assign=True)
    assert norm.running_mean is mean and not isinstance(norm.running_mean, nn.Parameter)


@pytest.mark.filterwarnings("ignore:for bias")
def test_loading_into_meta_warns():
    with pytest.warns(UserWarning, match="for weight: copying from a non-meta parameter.*no-op.*assign=True"):
        nn.Linear(2, 2, device="meta").load_state_dict(nn.Linear(2, 2).state_dict())


def test_one_element_vectors_load_into_scalars():
    model = nn.Module()
    model.s = nn.Parameter(cresset.zeros(()))
    model.load_state_dict({"s": cresset.tensor([4.0])})
    assert model.s.item() == 4.0


def test_hooks_before_and_after():
    model, calls = nn.Sequential(nn.Linear(1, 1)), []
    model.register_state_dict_pre_hook(lambda m, prefix, keep: calls.append(("pre", prefix, keep)))

    def post(module, state, prefix, metadata):
        calls.append(("post", metadata))
        state["added"] = cresset.ones(1)

    handle = model.register_state_dict_post_hook(post)
    assert "added" in model.state_dict()
    assert calls == [("pre", "", False), ("post", {"version": 1})]
    handle.remove()
    assert "added" not in model.state_dict()
    model.register_state_dict_post_hook(lambda *a: 3)
    with pytest.raises(RuntimeError, match="state_dict post-hook must return None"):
        model.state_dict()
    other = nn.Linear(1, 1)
    other._register_state_dict_hook(lambda m, state, prefix, meta: OrderedDict(only=1))
    assert other.state_dict() == {"only": 1}


def test_load_hooks():
    model, calls = nn.Linear(1, 1), []

    def pre(module, state, prefix, metadata, strict, missing, unexpected, errors):
        calls.append((module is model, prefix, strict))
        state[prefix + "weight"] = state.pop(prefix + "kernel")

    def post(module, keys):
        calls.append(("post", list(keys.missing_keys), list(keys.unexpected_keys)))
        keys.missing_keys.clear()

    model.register_load_state_dict_pre_hook(pre)
    handle = model.register_load_state_dict_post_hook(post)
    model.load_state_dict({"kernel": cresset.full((1, 1), 2.0)})
    assert model.weight.item() == 2.0
    assert calls == [(True, "", True), ("post", ["bias"], [])]
    handle.remove()
    model.register_load_state_dict_post_hook(lambda m, keys: 1)
    with pytest.raises(AssertionError, match="not expected to return new values"):
        model.load_state_dict({"kernel": cresset.ones(1, 1), "bias": cresset.ones(1)})


class WithExtra(nn.Module):
    def __init__(self, value):
        super().__init__()
        self.value = value

    def get_extra_state(self):
        return {"value": self.value}

    def set_extra_state(self, state):
        self.value = state["value"]


def test_extra_state():
    model = nn.Sequential(WithExtra(3))
    state = model.state_dict()
    assert dict(state) == {"0._extra_state": {"value": 3}}
    other = nn.Sequential(WithExtra(0))
    other.load_state_dict(state)
    assert other[0].value == 3
    with pytest.raises(RuntimeError, match='Missing key.*"0._extra_state"'):
        other.load_state_dict({})
    with pytest.raises(RuntimeError, match='Unexpected key.*"_extra_state"'):
        nn.Identity().load_state_dict({"_extra_state": 1})
    with pytest.raises(RuntimeError, match="get_extra_state"):
        nn.Identity().get_extra_state()


def test_versions_upgrade_old_dictionaries():
    class Renamed(nn.Module):
        _version = 2

        def __init__(self):
            super().__init__()
            self.new = nn.Parameter(cresset.zeros(1))

        def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
            if local_metadata.get("version", 1) < 2:
                state_dict[prefix + "new"] = state_dict.pop(prefix + "old")
            super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    old = OrderedDict([("0.old", cresset.ones(1))])
    old._metadata = {"": {"version": 1}, "0": {"version": 1}}
    model = nn.Sequential(Renamed())
    model.load_state_dict(old)
    assert model[0].new.item() == 1.0 and "0.old" in old
    # batch normalisation before version 2 had no counter
    norm = nn.BatchNorm1d(1)
    state = OrderedDict((k, v) for k, v in norm.state_dict().items() if k != "num_batches_tracked")
    norm.num_batches_tracked.fill_(7)
    norm.load_state_dict(state)
    assert norm.num_batches_tracked.item() == 7
    state._metadata = {"": {"version": 2}}
    with pytest.raises(RuntimeError, match='Missing key.*"num_batches_tracked"'):
        norm.load_state_dict(state)


def test_no_warnings_on_the_plain_path():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = net()
        model.load_state_dict(model.state_dict())


def test_swapped_parameters_stay_the_same_objects():
    """__future__.set_swap_module_params_on_conversion: load_state_dict(assign=True) puts the values behind parameters and buffers."""
    from cresset import __future__ as settings

    settings.set_swap_module_params_on_conversion(True)
    try:
        with cresset.device("meta"):
            m = nn.BatchNorm1d(3)
        m.bias.requires_grad_(False)
        weight, mean, state = m.weight, m.running_mean, nn.BatchNorm1d(3).state_dict()
        m.load_state_dict(state, assign=True)
        assert m.weight is weight and m.running_mean is mean and isinstance(m.weight, nn.Parameter) and m.weight.device.type == "cpu"
        assert m.weight.requires_grad and not m.bias.requires_grad and m.weight is not state["weight"]
        m.load_state_dict({**state, "weight": cresset.full((3,), 7.0)})
        assert m.weight is weight and m.weight.tolist() == [7, 7, 7]

        class Own(cresset.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return args[1] if func is cresset.Tensor.module_load else super().__torch_function__(func, types, args, kwargs or {})

        with pytest.raises(RuntimeError, match=r'While swapping the parameter named "weight"(.|\n)*module_load returned one of self or other'):
            m.load_state_dict({**state, "weight": cresset.ones(3).as_subclass(Own)})
    finally:
        settings.set_swap_module_params_on_conversion(False)


def test_loading_leaves_nothing_for_the_collector():
    model = net()
    state = net().state_dict()
    gc.collect()
    model.load_state_dict(state)
    assert gc.collect() == 0
