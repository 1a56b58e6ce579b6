"""Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict."""

from collections import OrderedDict

import cresset
import pytest
from cresset import nn


def linears(n):
    return [nn.Linear(1, 1) for _ in range(n)]


def test_sequential_runs_and_names():
    net = nn.Sequential(nn.Flatten(), nn.Linear(4, 2), nn.ReLU())
    assert net(cresset.ones(3, 2, 2)).shape == (3, 2) and len(net) == 3
    named = nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Tanh()))
    assert [n for n, _ in named.named_children()] == ["a", "b"] and named.a is named[0]
    assert "0" not in dir(net)
    with pytest.raises(TypeError, match="int is not a Module subclass"):
        nn.Sequential(3)


def test_sequential_indexing_and_editing():
    a, b, c, d = linears(4)
    net = nn.Sequential(a, b, c)
    assert net[-1] is c and list(net[0:2]) == [a, b] and type(net[0:2]) is nn.Sequential
    for bad in (3, -4):
        with pytest.raises(IndexError, match=f"index {bad} is out of range"):
            net[bad]
    with pytest.raises(TypeError):
        net["a"]
    net[1] = d
    assert list(net) == [a, d, c]
    del net[0]
    assert list(net) == [d, c] and [n for n, _ in net.named_children()] == ["0", "1"]
    assert net.pop(0) is d and list(net) == [c]
    assert net.insert(0, a) is net and list(net) == [a, c]
    net.insert(-1, b)
    assert list(net) == [a, b, c]
    with pytest.raises(IndexError, match="Index out of range: 9"):
        net.insert(9, a)
    with pytest.raises(AssertionError):
        net.insert(0, 3)
    assert net.append(d).extend([a]) is net and list(net) == [a, b, c, d, a]
    del net[1:4]
    assert list(net) == [a, a]


def test_sequential_arithmetic():
    a, b = linears(2)
    assert list(nn.Sequential(a) + nn.Sequential(b)) == [a, b]
    assert list(nn.Sequential(a, b) * 2) == [a, b, a, b] and list(2 * nn.Sequential(a)) == [a, a]
    net = nn.Sequential(a)
    net += nn.Sequential(b)
    net *= 2
    assert list(net) == [a, b, a, b] and [n for n in net._modules] == ["0", "1", "2", "3"]
    with pytest.raises(ValueError, match="add operator supports only objects of Sequential class"):
        net + 3
    with pytest.raises(TypeError, match="unsupported operand type"):
        net * "a"
    with pytest.raises(ValueError, match="Non-positive multiplication factor 0"):
        net * 0


def test_module_list():
    a, b, c, d = linears(4)
    m = nn.ModuleList([a, b])
    assert m.append(c) is m and m.extend([d]) is m and list(m) == [a, b, c, d] and len(m) == 4
    assert m[-1] is d and list(m[1:3]) == [b, c] and type(m[1:3]) is nn.ModuleList
    m.insert(1, d)
    assert list(m) == [a, d, b, c, d] and [n for n in m._modules] == ["0", "1", "2", "3", "4"]
    m[0] = b
    del m[1:3]
    assert list(m) == [b, c, d] and m.pop(0) is b and list(m + [a]) == [c, d, a]
    m += [a]
    assert list(m) == [c, d, a]
    with pytest.raises(IndexError, match="index 9 is out of range"):
        m[9]
    with pytest.raises(TypeError, match="ModuleList.extend should be called with an iterable, but got int"):
        m.extend(3)
    with pytest.raises(NotImplementedError, match='missing the required "forward" function'):
        m(1)
    assert repr(nn.ModuleList()) == "ModuleList()" and len(list(m.parameters())) == 6


def test_module_dict():
    a, b = linears(2)
    m = nn.ModuleDict({"a": a})
    m["b"] = b
    m.update([("c", nn.ReLU())])
    m.update(nn.ModuleDict({"d": nn.Tanh()}))
    assert list(m) == ["a", "b", "c", "d"] and "a" in m and len(m) == 4 and list(m.keys()) == list(m)
    assert m["a"] is a and list(m.values())[1] is b and dict(m.items())["b"] is b
    assert m.pop("a") is a and "a" not in m
    del m["b"]
    with pytest.raises(KeyError):
        m["b"]
    assert repr(m) == "ModuleDict(\n  (c): ReLU()\n  (d): Tanh()\n)"
    m.clear()
    assert len(m) == 0
    with pytest.raises(
        TypeError, match="ModuleDict.update should be called with an iterable of key/value pairs, but got int"
    ):
        m.update(3)
    with pytest.raises(ValueError, match="sequence element #0 has length 1; 2 is required"):
        m.update([("a",)])
    with pytest.raises(TypeError, match="sequence element #0 should be Iterable"):
        m.update([3])
    with pytest.raises(KeyError, match="attribute 'keys' already exists"):
        m["keys"] = a


def test_parameter_list():
    p = nn.ParameterList([nn.Parameter(cresset.ones(2, 3)), cresset.ones(1), 3])
    assert isinstance(p[1], nn.Parameter) and p[2] == 3 and p[-1] == 3 and len(p) == 3
    assert [n for n, _ in p.named_parameters()] == ["0", "1"]
    assert repr(p).splitlines()[0] == "ParameterList(" and repr(p).splitlines()[3] == "    (2): Object of type: int"
    assert repr(p).splitlines()[1].startswith("    (0): Parameter containing: [") and "float32 of size 2x3]" in repr(p)
    p[0] = nn.Parameter(cresset.zeros(1))
    p.append(cresset.ones(2))
    p.extend([cresset.ones(4)])
    p += [cresset.ones(5)]
    assert [tuple(q.shape) for q in p.parameters()] == [(1,), (1,), (2,), (4,), (5,)]
    assert [tuple(q.shape) for q in p[3:]] == [(2,), (4,), (5,)]
    with pytest.raises(IndexError, match="index 9 is out of range"):
        p[9]
    with pytest.raises(TypeError, match="ParameterList.extend should be called with an iterable"):
        p.extend(3)
    with pytest.raises(RuntimeError, match="should not be called"):
        p()


def test_parameter_dict():
    p = nn.ParameterDict({"a": cresset.ones(2), "b": "text"})
    p["c"] = nn.Parameter(cresset.ones(1))
    assert isinstance(p["a"], nn.Parameter) and p["b"] == "text" and list(p) == ["a", "b", "c"] and len(p) == 3
    lines = repr(p).splitlines()
    assert (
        lines[0] == "ParameterDict("
        and lines[2] == "    (b): Object of type: str"
        and "FloatTensor of size 2]" in lines[1]
    )
    assert p.get("z") is None and p.get("b") == "text" and p.setdefault("d", 4) == 4 and "d" in p
    assert p.popitem() == ("d", 4) and p.pop("b") == "text" and list(reversed(p)) == ["c", "a"]
    q = p | {"e": cresset.ones(1)}
    assert list(q) == ["a", "c", "e"] and list({"x": cresset.ones(1)} | p) == ["x", "a", "c"]
    p |= {"f": cresset.ones(1)}
    assert list(p.keys()) == ["a", "c", "f"] and list(p.copy()) == list(p) and [k for k, _ in p.items()] == list(p)
    assert list(p.fromkeys(["u", "v"], 1).values()) == [1, 1]
    del p["a"]
    with pytest.raises(AttributeError, match="'ParameterDict' object has no attribute 'a'"):
        p["a"]
    with pytest.raises(TypeError, match="cannot be used as a key as it is not a string"):
        p[3] = cresset.ones(1)
    p.clear()
    assert len(p) == 0 and list(p.parameters()) == []
    with pytest.raises(RuntimeError, match="should not be called"):
        p()


def test_order_of_parameters_from_mappings():
    """PyTorch sorts the keys of a plain mapping, and nothing else; optimizers see the parameters in this order."""
    plain = {"c": cresset.ones(1), "b": cresset.ones(2)}
    assert list(nn.ParameterDict(plain)) == ["b", "c"]
    assert list(nn.ParameterDict(OrderedDict(plain))) == list(nn.ParameterDict(plain.items())) == ["c", "b"]
    assert list(nn.ParameterDict({"x": cresset.ones(1)}) | plain) == ["x", "b", "c"]
    first = nn.ParameterDict(plain.items())
    again = nn.ParameterDict()
    again.update(first)
    assert list(again) == ["c", "b"] and list(nn.ModuleDict({"c": nn.ReLU(), "b": nn.ReLU()})) == ["c", "b"]


def test_words_behind_a_device_are_a_dtype():
    net = nn.Linear(1, 1)
    for wrong in [("cpu", True), (None, True), (cresset.device("cpu"), False)]:
        with pytest.raises(TypeError, match=r"to\(\) received an invalid combination of arguments - got \(\w+, bool\)"):
            net.to(*wrong)
    assert net.to("cpu", None, True) is net and net.to(cresset.float64, True).weight.dtype == cresset.float64


def test_a_dict_or_a_parameter_dict_is_a_dict():
    values = nn.ParameterDict({"a": cresset.ones(1)})
    assert type({"e": 1} | values) is dict and list({"e": 1} | values) == ["e", "a"]
    assert type(values | {"e": 1}) is nn.ParameterDict
