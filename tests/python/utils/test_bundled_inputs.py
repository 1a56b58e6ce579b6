"""Sample inputs within script modules."""

import io

import cresset as torch
import pytest
from cresset.utils import bundled_inputs as bundled


class Double(torch.nn.Module):
    def forward(self, x):
        return x * 2

    @torch.jit.export
    def plus(self, x, n: int):
        return x + n


def test_inputs_travel_with_the_archive():
    model = torch.jit.script(Double())
    samples = [(torch.ones(2),), (torch.zeros(1000),), (torch.arange(1000.0)[:3],), (bundled.bundle_large_tensor(torch.arange(20.0)),)]
    notes = []
    bundled.augment_model_with_bundled_inputs(model, samples, notes, info=["four of them"])
    assert [note[:14] for note in notes] == ["deflated[0][0]", "deflated[1][0]", "deflated[2][0]", "deflated[3][0]"]
    assert notes[1].endswith(".contiguous(memory_format=torch.contiguous_format)")
    file = io.BytesIO()
    torch.jit.save(model, file)
    assert len(file.getvalue()) < 8000
    file.seek(0)
    for made in (model, torch.jit.load(file)):
        assert made.get_num_bundled_inputs() == 4
        assert [x.tolist() for (x,) in made.get_all_bundled_inputs()] == [[1, 1], [0] * 1000, [0, 1, 2], list(range(20))]
        assert made.get_bundled_inputs_functions_and_info() == {
            "forward": {"get_inputs_function_name": ["get_all_bundled_inputs_for_forward"], "info": ["four of them"]}
        }
        assert made(*made.get_all_bundled_inputs()[0]).tolist() == [2, 2]


def test_methods_and_inflated_arguments():
    model = torch.jit.script(Double())
    text = "def {}(self, value: int):\n    return value + 1\n"
    made = bundled.bundle_inputs(
        model,
        {model.forward: [(bundled.bundle_randn(2, 3),)], model.plus: [(torch.ones(1), bundled.InflatableArg(value=4, fmt_fn=text))]},
    )
    ((first,),) = made.get_all_bundled_inputs_for_forward()
    assert first.shape == (2, 3) and first.unique().numel() == 6
    assert made.plus(*made.get_all_bundled_inputs_for_plus()[0]).tolist() == [6]
    assert not hasattr(model, "get_all_bundled_inputs_for_plus")
    again = bundled.bundle_inputs(made, [(torch.ones(1),), (torch.ones(2),)])
    assert again.get_num_bundled_inputs() == 2 and made.get_num_bundled_inputs() == 1
    assert not hasattr(again, "get_all_bundled_inputs_for_plus")


def test_errors():
    model = torch.jit.script(Double())
    with pytest.raises(Exception, match="Only ScriptModule is supported"):
        bundled.bundle_inputs(Double(), [(torch.ones(1),)])
    with pytest.raises(Exception, match="Bundled input argument at position 'deflated"):
        bundled.augment_model_with_bundled_inputs(model, [(torch.arange(30.0),)])
    with pytest.raises(Exception, match="inputs\\[forward\\] is None, but _generate_bundled_inputs_for_forward is not defined"):
        bundled.bundle_inputs(model, None)
    with pytest.raises(TypeError, match="is not a Sequence"):
        bundled.bundle_inputs(model, "text"[:0] or 3)
    bundled.augment_model_with_bundled_inputs(model, [(torch.ones(1),)])
    with pytest.raises(Exception, match="Models can only be augmented with bundled inputs once"):
        bundled.augment_model_with_bundled_inputs(model, [(torch.ones(1),)])
