"""Duals of types derived from Tensor are of that type, as with PyTorch 2.13."""

import cresset
import cresset.autograd.forward_ad as fw


class Own(cresset.Tensor):
    pass


def test_duals_and_their_parts_keep_the_type():
    own, plain = cresset.ones(2).as_subclass(Own), cresset.ones(2)
    with fw.dual_level():
        for primal, tangent in ((own, own), (own, plain), (plain, own)):
            dual = fw.make_dual(primal, tangent)
            parts = fw.unpack_dual(dual)
            assert type(parts) is fw.UnpackedDualTensor
            assert [type(x) for x in (dual, *parts)] == [Own] * 3
        assert type(fw.make_dual(plain, plain)) is cresset.Tensor


def test_the_function_of_jvp_sees_the_type():
    seen = []

    def sin(x):
        seen.append(type(x))
        return x.sin()

    value, tangent = cresset.func.jvp(sin, (cresset.zeros(2).as_subclass(Own),), (cresset.ones(2).as_subclass(Own),))
    assert seen == [Own]
    assert value.tolist() == [0, 0] and tangent.tolist() == [1, 1]


def test_types_may_take_duals_over():
    calls = []

    class Asked(cresset.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    with fw.dual_level():
        fw.unpack_dual(fw.make_dual(cresset.ones(2).as_subclass(Asked), cresset.ones(2)))
    assert [c for c in calls if c.endswith("dual")] == ["_make_dual", "_unpack_dual"]
