"""dynamic_shapes as plain values. The texts are PyTorch's."""

import pytest

import cresset as torch
from cresset._dynamo.exc import UserError
from cresset._export.serde.dynamic_shapes import _dump_dynamic_shapes, _load_dynamic_shapes
from cresset.export import Dim, export


class Sum(torch.nn.Module):
    def forward(self, a, b, c, d):
        return a[0] + a[1][1:] + torch.cat([b, b]).reshape([-1, 1]), c * 2


def test_there_and_back():
    dz = Dim("dz", min=4, max=16)
    inputs = [torch.ones(8, 4), torch.ones(9, 4)], torch.ones(4), torch.ones(4, 4), "hello"
    shapes = {"a": [(2 * dz, 4), (2 * dz + 1, 4)], "b": (dz,), "c": None, "d": None}
    spec = _dump_dynamic_shapes(shapes, inputs)
    assert str(spec) == (
        "DynamicShapesSpec(dynamic_shapes=([['2*dz', 4], ['2*dz + 1', 4]], ['dz'], ['_DimHint.STATIC', '_DimHint.STATIC'], None), dims={'dz': RootDim(min=4, max=16, derived=['2*dz', '2*dz + 1'])})"
    )
    plain = _dump_dynamic_shapes(shapes, inputs, to_dict=True)
    assert plain["dims"] == {"dz": {"min": 4, "max": 16, "derived": ["2*dz", "2*dz + 1"]}}
    for again in (_load_dynamic_shapes(spec), _load_dynamic_shapes(plain, from_dict=True)):
        program = export(Sum(), inputs, dynamic_shapes=again)
        assert program.module()([torch.ones(16, 4), torch.ones(17, 4)], torch.ones(8), torch.ones(4, 4), "hello")[0].shape == (16, 4)
    with pytest.raises(UserError, match="expected `spec` to be a dict"):
        _load_dynamic_shapes(spec, from_dict=True)
    with pytest.raises(UserError, match="got dx which is not in"):
        _load_dynamic_shapes({"dynamic_shapes": [["dx"]], "dims": {}}, from_dict=True)
