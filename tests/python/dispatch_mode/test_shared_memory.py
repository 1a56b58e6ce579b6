"""Which results have the memory of arguments: real tensors, fake ones, and those without memory."""

import pytest

import cresset as torch
from cresset._subclasses import FakeTensorMode
from cresset._subclasses.fake_utils import output_alias_each_other, outputs_alias_inputs, outputs_are_inputs


@pytest.mark.parametrize("make", [lambda: torch.ones(4), lambda: FakeTensorMode().from_tensor(torch.ones(4)), lambda: torch.ones(4, device="meta")])
def test_what_shares_memory(make):
    a = make()
    b, c = a[1:], a.clone()
    assert outputs_alias_inputs({"x": b}, {"y": [a]}) and not outputs_alias_inputs((c, 1), (a, 2)) and not outputs_alias_inputs(1, a)
    assert outputs_are_inputs((a,), (a,)) and not outputs_are_inputs((b,), (a,)) and not outputs_are_inputs(3, 3)
    assert output_alias_each_other((a, b)) and output_alias_each_other((a, a)) and not output_alias_each_other((a, c))


def test_without_memory():
    s = torch.eye(2).to_sparse()
    assert not outputs_alias_inputs(s, s) and outputs_are_inputs(s, s) and not output_alias_each_other((s, s))
