"""utils.weak: references and dictionaries that compare tensors by identity."""

import copy
import gc

import pytest

import cresset as torch
from cresset.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakIdRef, WeakTensorKeyDictionary, _WeakHashRef


def test_keys_are_identities_and_held_weakly():
    a, b = torch.ones(3), torch.ones(3)
    d = WeakTensorKeyDictionary({a: 1})
    assert d[a] == 1 and a in d and b not in d and 5 not in d and len(d) == 1
    d[b] = 2
    assert [v for _, v in d.items()] == [1, 2] and [k is t for k, t in zip(d, (a, b))] == [True, True]
    del b
    gc.collect()
    assert list(d.values()) == [1] and len(d.keyrefs()) == 1


def test_an_entry_lives_as_long_as_the_tensor():
    leaf = torch.ones(2, requires_grad=True)
    middle = leaf * 2
    d = WeakIdKeyDictionary({middle: "here"})
    out = middle.exp().sum()  # `middle` is not saved, its node is
    kept = torch.stack([middle])
    del middle
    assert list(d.values()) in ([], ["here"])
    holder = [torch.ones(2)]
    d[holder[0]] = "held"
    view = holder[0][:1]
    assert d[view._base] == "held"
    del holder
    assert d[view._base] == "held" and out is not None and kept is not None


def test_as_a_mapping():
    keys = [torch.ones(1) for _ in range(4)]
    d = WeakIdKeyDictionary(zip(keys, range(4)))
    assert d.get(keys[1]) == 1 and d.get(torch.ones(1), 7) == 7 and d.setdefault(keys[0], 9) == 0
    assert d.pop(keys[0]) == 0 and d.pop(keys[0], None) is None and len(d) == 3
    key, value = d.popitem()
    assert key is keys[3] and value == 3
    more = d | {keys[0]: 10}
    assert type(more) is WeakIdKeyDictionary and len(more) == 3 and len(d) == 2 and len({keys[0]: 10} | d) == 3
    d |= {keys[1]: "new"}
    assert d[keys[1]] == "new" and d == {keys[1]: "new", keys[2]: 2} and d != {keys[1]: "new"}
    assert copy.copy(d) == d and copy.deepcopy(WeakIdKeyDictionary({keys[0]: [1]}))[keys[0]] == [1]
    assert repr(d).startswith("<WeakIdKeyDictionary at 0x")
    for wrong in (lambda: d[torch.ones(1)], lambda: d.pop(torch.ones(1)), lambda: d.__delitem__(torch.ones(1))):
        with pytest.raises(KeyError):
            wrong()
    for wrong in (lambda: d.__setitem__(5, 1), lambda: d.get(5), lambda: d.update(name=1)):
        with pytest.raises(TypeError):
            wrong()


def test_references():
    a = torch.ones(2)
    first, second, other = WeakIdRef(a), WeakIdRef(a), WeakIdRef(torch.ones(2))
    assert first == second and hash(first) == hash(second) and other() is None and first != other
    assert TensorWeakRef(a)() is a and TensorWeakRef(a) == TensorWeakRef(a) and len({TensorWeakRef(a), TensorWeakRef(a)}) == 1
    del a
    assert first() is None and first != second and first == first


def test_keys_compare_by_value_when_asked():
    class Key:
        def __init__(self, value):
            self.value = value

        def __hash__(self):
            return self.value

        def __eq__(self, other):
            return self.value == other.value

    key = Key(3)
    d = WeakIdKeyDictionary({key: 1}, ref_type=_WeakHashRef)
    assert d[Key(3)] == 1 and Key(4) not in d


def test_updates_are_read_before_they_are_made():
    class Failing:
        def keys(self):
            yield "text"
            raise OverflowError

        def __getitem__(self, key):
            return key

    a, b = torch.ones(1), torch.ones(2)
    d = WeakIdKeyDictionary()
    with pytest.raises(OverflowError):
        d.update(Failing())
    d.update([(a, 1), (b, 2)])
    d.update({a: 3})
    assert [v for _, v in d.items()] == [3, 2]
    with pytest.raises(TypeError):
        d.update(42)
