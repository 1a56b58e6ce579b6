"""Parts of PyTorch's modules that packages take by name: records of files, texts of tensors, decorators, base classes of observers."""

import pytest

import cresset as torch


def test_records_of_a_checkpoint(tmp_path):
    torch.save({"w": torch.arange(6.0)}, tmp_path / "a.pt")
    reader = torch.PyTorchFileReader(str(tmp_path / "a.pt"))
    assert reader.has_record("data.pkl") and "data/0" in reader.get_all_records()
    assert reader.get_storage_from_record("data/0", 6, torch.float32).tolist() == [0, 1, 2, 3, 4, 5]
    as_bytes = reader.get_storage_from_record("data/0", 24, torch.UntypedStorage)
    assert as_bytes._typed_storage()._untyped_storage.nbytes() == 24


def test_texts_of_values():
    from cresset import _tensor_str

    values = _tensor_str._tensor_str(torch.tensor([[1.0, 2.0], [3.0, 4.5]]), indent=0)
    assert values == "[[1.0000, 2.0000],\n [3.0000, 4.5000]]"
    assert _tensor_str._add_suffixes("f(" + values, ["a=1"], 2, False) == f"f({values}, a=1)"
    assert _tensor_str._str_intern(torch.ones(2), tensor_contents="…") == "tensor(…)"


def test_contexts_decorate():
    from cresset.utils._contextlib import _DecoratorContextManager, context_decorator

    seen = []

    class Step(_DecoratorContextManager):
        def __init__(self, name):
            self.name = name

        def clone(self):
            return type(self)(self.name)

        def __enter__(self):
            seen.append(f"+{self.name}")

        def __exit__(self, *error):
            seen.append(f"-{self.name}")

    @Step("a")
    def numbers():
        seen.append("one")
        yield 1
        seen.append("two")
        yield 2

    assert list(numbers()) == [1, 2] and seen == ["+a", "one", "-a", "+a", "two", "-a", "+a", "-a"]
    seen.clear()
    assert context_decorator(lambda: Step("b"), lambda x: x + 1)(1) == 2 and seen == ["+b", "-b"]


def test_observers():
    from cresset.ao.quantization import FakeQuantizeBase, ObserverBase

    class Largest(ObserverBase):
        def forward(self, x):
            self.largest = x.abs().max()
            return x

        def calculate_qparams(self):
            return self.largest / 127, 0

    with pytest.raises(TypeError, match="abstract"):
        ObserverBase(torch.qint8)
    watch = Largest.with_args(dtype=torch.qint8)()
    watch(torch.tensor([1.0, -254.0]))
    assert watch.calculate_qparams()[0].item() == 2.0 and watch.dtype is torch.qint8

    class Rounded(FakeQuantizeBase):
        def forward(self, x):
            return x.round() if self.fake_quant_enabled[0] else x

        def calculate_qparams(self):
            return 1.0, 0

    rounded = Rounded()
    rounded.disable_fake_quant()
    assert rounded(torch.tensor(1.4)).item() == pytest.approx(1.4) and set(rounded.state_dict()) == {"fake_quant_enabled", "observer_enabled"}


def test_classes_as_other_nodes():
    from cresset.utils import _pytree

    class Linked(list):
        pass

    _pytree.register_pytree_node(Linked, _pytree._list_flatten, _pytree._list_unflatten, flatten_with_keys_fn=_pytree._list_flatten_with_keys)
    try:
        leaves, spec = _pytree.tree_flatten(Linked([1, (2, 3)]))
        assert leaves == [1, 2, 3] and _pytree.tree_unflatten(leaves, spec) == [1, (2, 3)]
    finally:
        _pytree._deregister_pytree_node(Linked) if hasattr(_pytree, "_deregister_pytree_node") else None
    assert _pytree._deque_flatten(__import__("collections").deque([1], maxlen=3)) == ([1], 3)


def test_iterators_of_loaders():
    from cresset.utils.data.dataloader import DataLoader, _BaseDataLoaderIter

    assert isinstance(iter(DataLoader([1, 2])), _BaseDataLoaderIter)


def test_members_by_path():
    from cresset.nn.utils._named_member_accessor import NamedMemberAccessor, swap_tensor

    net = torch.nn.Sequential(torch.nn.Linear(2, 1))
    members, weight = NamedMemberAccessor(net), net[0].weight
    assert members.check_keys(["0.weight", "x"]) == (["0.bias"], ["x"])
    before, missing = members.swap_tensors_dict({"0.weight": torch.ones(1, 2), "0.new": torch.ones(1)}, allow_missing=True)
    assert before["0.weight"] is weight and missing == ["0.new"] and net[0].weight.tolist() == [[1, 1]] and net[0].new.item() == 1
    members.swap_tensors_dict(before, allow_missing=True)
    assert net[0].weight is weight and not hasattr(net[0], "new")
    with pytest.raises(RuntimeError, match="Missing key"):
        members.swap_tensors_dict({"0.weight": torch.ones(1, 2), "0.new": torch.ones(1)})
    assert net[0].weight is weight
    with pytest.raises(TypeError, match="attribute `in_features`: 2 is not an instance of torch.Tensor"):
        swap_tensor(net[0], "in_features", torch.ones(1))
    with pytest.raises(AttributeError, match="Linear has no attribute `zz`"):
        swap_tensor(net[0], "zz", torch.ones(1))
