"""Words of forward mode that PyTorch 2.13 has."""

import pytest

import cresset
import cresset.autograd.forward_ad as fw


def test_levels_that_are_not_there():
    with pytest.raises(RuntimeError, match=r"^Dual level must be a positive number\.$"):
        fw.exit_dual_level()
    with fw.dual_level(), pytest.raises(AttributeError, match="'int' object has no attribute 'is_floating_point'"):
        fw.make_dual(5, cresset.ones(1))
