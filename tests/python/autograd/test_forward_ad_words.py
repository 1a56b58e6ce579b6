"""Words of forward mode that PyTorch 2.13 has."""

import pytest

import cresset
import cresset.autograd.forward_ad as fw


def test_levels_that_are_not_there():
    with pytest.raises(RuntimeError, match=r"^Dual level must be a positive number\.$"):
        fw.exit_dual_level()
    with fw.dual_level(), pytest.raises(AttributeError, match="'int' object has no attribute 'is_floating_point'"):
        fw.make_dual(5, cresset.ones(1))


# What PyTorch 2.13 says of a jvp whose tangent is no view where the output is one.
@pytest.mark.parametrize("copies, views, input_is_view, words", [
    (False, False, False, None),
    (True, False, False, "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."),
    (True, True, False, "A custom Function is returning a view but the jvp is not returning a view of the given grad input."),
    (True, True, True, "A custom Function is returning a view but the jvp is not returning a view of the same base as the given grad input."),
])  # fmt: skip
def test_tangents_of_views_are_views(copies, views, input_is_view, words):
    class Narrow(cresset.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.narrow(0, 0, 2)

        @staticmethod
        def jvp(ctx, tangent):
            out = tangent.narrow(0, 0, 2)
            out = out.clone() if copies else out
            return out.view_as(out) if views else out

    with cresset.autograd.forward_ad.dual_level():
        x = cresset.autograd.forward_ad.make_dual(cresset.rand(4, 4), cresset.rand(4, 4)).clone()
        x = x.view_as(x) if input_is_view else x
        if words is None:
            assert Narrow.apply(x).shape == (2, 4)
            return
        with pytest.raises(RuntimeError) as error:
            Narrow.apply(x)
        assert str(error.value) == words
