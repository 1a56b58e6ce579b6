"""nn.parallel over devices of one process; the CPU stands for all of them here."""

from collections import namedtuple

import cresset
import pytest
from cresset import nn
from cresset.nn.parallel import comm, data_parallel, gather, parallel_apply, replicate, scatter
from cresset.nn.parallel.scatter_gather import scatter_kwargs

TWO = ["cpu", "cpu"]
Pair = namedtuple("Pair", "a b")


def test_scatter_and_gather():
    x = cresset.arange(6.0).view(3, 2)
    parts = scatter((x, 5, [x], {"k": x}, Pair(x, "s")), TWO)
    assert [p[0].shape[0] for p in parts] == [2, 1] and [p[1] for p in parts] == [5, 5]
    assert type(parts[1][4]) is Pair and parts[1][4].b == "s" and parts[1][3]["k"].tolist() == [[4.0, 5.0]]
    joined = gather([{"y": p[0], "z": (p[2][0], None)} for p in parts], "cpu")
    assert cresset.equal(joined["y"], x) and cresset.equal(joined["z"][0], x) and joined["z"][1] is None
    assert scatter_kwargs((x,), {"flag": True}, TWO)[1] == ({"flag": True}, {"flag": True})
    with pytest.warns(UserWarning, match="will instead unsqueeze"):
        assert gather([cresset.tensor(1.0), cresset.tensor(2.0)], "cpu").tolist() == [1.0, 2.0]


def test_comm():
    x = cresset.arange(4.0)
    assert [t.tolist() for t in comm.scatter(x, TWO, [1, 3])] == [[0.0], [1.0, 2.0, 3.0]]
    assert comm.reduce_add([x, x, x]).tolist() == (3 * x).tolist()
    with pytest.raises(ValueError, match="input 1 has invalid size"):
        comm.reduce_add([x, x[:2]])
    out = cresset.empty(8)
    assert comm.gather([x, x], out=out) is out
    with pytest.raises(RuntimeError, match="Exactly one of 'devices' and 'out'"):
        comm.broadcast(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
        self.scale = nn.Parameter(cresset.tensor(2.0))

    def forward(self, x, twice=False):
        return self.body(x) * self.scale * (2 if twice else 1)


def test_gradients_reach_the_module():
    cresset.manual_seed(0)
    net = Net().eval()
    x = cresset.rand(5, 3)
    net(x, twice=True).square().sum().backward()
    expected = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    out = nn.DataParallel(net, TWO)(x, twice=True)
    out.square().sum().backward()
    for p, grad in zip(net.parameters(), expected):
        cresset.testing.assert_close(p.grad, grad)
    cresset.testing.assert_close(data_parallel(net, x, TWO), net(x))
    assert list(nn.DataParallel(net).state_dict()) == ["module." + name for name in net.state_dict()]


def test_replicas():
    net = Net()
    a, b = replicate(net, TWO)
    assert list(a.parameters()) == [] and not a.scale.is_leaf or a.scale is net.scale
    assert a.body[0] is not b.body[0] is not net.body[0]
    assert all(not t.requires_grad for t in (replicate(net, ["cpu"], detach=True)[0].scale,))


def test_errors():
    def fail(x):
        raise KeyError("no")

    with pytest.raises(KeyError, match="Caught KeyError in replica 1 on device cpu"):
        parallel_apply([lambda x: x, fail], [1, 2], devices=TWO)
    with pytest.raises(AssertionError, match="The number of modules 1 is not equal to the number of inputs 2"):
        parallel_apply([len], [1, 2])
    with cresset.no_grad():
        assert parallel_apply([lambda: cresset.is_grad_enabled()] * 2, [(), ()]) == [False, False]
    with pytest.raises(RuntimeError, match="module must have its parameters and buffers on device meta"):
        nn.DataParallel(Net(), ["meta", "meta"])(cresset.ones(2, 3))
