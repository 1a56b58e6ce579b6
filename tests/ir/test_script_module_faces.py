"""Python modules as faces of objects of scripts."""

import cresset
from cresset.jit import _recursive


def test_a_module_takes_over_another_object():
    class Source(cresset.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = cresset.nn.Linear(3, 3)
            self.number = 5

        def forward(self, x):
            return self.linear(x) + self.number

        @cresset.jit.export
        def more(self, x):
            return x + self.number

    class Taker(cresset.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = cresset.nn.Linear(4, 4)

        def forward(self, x):
            return self.linear(x)

        @cresset.jit.ignore
        def ignored(self, x):
            return x * 3

    source, taker = cresset.jit.script(Source()), cresset.jit.script(Taker())
    x = cresset.ones(3)
    taker(cresset.ones(4))
    before = taker._c._id()
    taker._reconstruct(source._c)
    assert before not in _recursive._wrappers, "another object may be there soon, and is not this module's"
    assert cresset.equal(taker(x), source(x)) and cresset.equal(taker.more(x), source.more(x))
    assert cresset.equal(taker.ignored(x), x * 3)
    assert taker.linear.weight.shape == (3, 3) and {n for n, _ in taker.named_parameters()} == {"linear.weight", "linear.bias"}
    from cresset.jit._recursive import wrap_cpp_module

    assert wrap_cpp_module(source._c) is source


def test_dir_of_containers_has_what_their_class_has():
    for container in (cresset.nn.Sequential(cresset.nn.ReLU()), cresset.nn.ModuleDict({"a": cresset.nn.ReLU()}), cresset.nn.ModuleList([cresset.nn.ReLU()])):
        assert set(dir(type(container))) <= set(dir(cresset.jit.script(container)))
