"""`x.data = y`: whose class dispatches stays as it is, only the data come from elsewhere."""

import cresset


def counting():
    calls = []

    class Counted(cresset.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            calls.append(func)
            return super().__torch_dispatch__(func, types, args, kwargs or {})

    return Counted, calls


def test_a_subclass_goes_on_dispatching():
    Counted, calls = counting()
    x = Counted(cresset.zeros(2))
    x.data = cresset.ones(3)
    assert calls == [] and type(x) is Counted and x.shape == (3,)
    x + 1
    assert calls == [cresset.ops.aten.add.Tensor]


def test_a_plain_tensor_does_not_begin_to():
    Counted, calls = counting()
    x = cresset.zeros(2)
    x.data = Counted(cresset.ones(3))
    calls.clear()
    assert type(x + 1) is cresset.Tensor and calls == [] and (x + 1).tolist() == [2, 2, 2]
