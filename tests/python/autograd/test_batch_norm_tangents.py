"""Tangents of batch normalisation: running statistics that are used have none."""

import pytest

import cresset
from cresset.autograd import forward_ad
from cresset.nn import functional as F


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("with_tangents", [(0, 1), (0, 2), (1,), (1, 2), (3, 1)])
def test_running_statistics_have_no_tangents(with_tangents, training):
    """As PyTorch 2.13: an error in evaluation where the result would move; else tangents of the statistics do not count."""
    tensors = [cresset.ones(3, 2, 5), cresset.zeros(2), cresset.ones(2), cresset.ones(2)]
    with forward_ad.dual_level():
        x, mean, var, weight = (forward_ad.make_dual(t, cresset.ones_like(t)) if i in with_tangents else t for i, t in enumerate(tensors))
        if training or not {0, 3} & set(with_tangents):
            F.batch_norm(x, mean, var, weight, None, training, 0.1)
            return
        with pytest.raises(RuntimeError, match="batch_norm is not differentiable wrt running_mean and running_var, they cannot have forward grad defined"):
            F.batch_norm(x, mean, var, weight, None, training, 0.1)
