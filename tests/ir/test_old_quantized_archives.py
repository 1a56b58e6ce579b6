"""Quantized modules as older releases wrote them: weights declared as tensors, states in other forms, places of errors without a table of texts."""

import pickle

import archive_files as files
import cresset
import pytest
from test_archive import load

LINEAR = """class LinearPackedParams(Module):
  __parameters__ = []
  training : bool
  dtype : int
  _packed_params : Tensor
  def __getstate__(self: __torch__.torch.nn.quantized.modules.linear.LinearPackedParams) -> Tuple[Tensor, Optional[Tensor], bool, int]:
    qweight, bias, = (self)._weight_bias()
    return (qweight, bias, self.training, self.dtype)
  def __setstate__(self: __torch__.torch.nn.quantized.modules.linear.LinearPackedParams,
    state: Tuple[Tensor, Optional[Tensor], bool, int]) -> None:
    self.dtype = (state)[3]
    _1 = (self).set_weight_bias((state)[0], (state)[1], )
    self.training = (state)[2]
    return None
  def _weight_bias(self: __torch__.torch.nn.quantized.modules.linear.LinearPackedParams) -> Tuple[Tensor, Optional[Tensor]]:
    _2, _3 = ops.quantized.linear_unpack(self._packed_params)
    return (_2, _3)
  def set_weight_bias(self: __torch__.torch.nn.quantized.modules.linear.LinearPackedParams,
    weight: Tensor,
    bias: Optional[Tensor]) -> None:
    self._packed_params = ops.quantized.linear_prepack(weight, bias)
    return None
  def forward(self: __torch__.torch.nn.quantized.modules.linear.LinearPackedParams,
    x: Tensor) -> Tensor:
    _4 = uninitialized(None)
    return ops.quantized.linear_dynamic(x, self._packed_params)
"""
MODULE = "__torch__.torch.nn.quantized.modules.linear"
AFFINE = files.glob("torch", "per_tensor_affine") + b"G" + b"\x3f\xe0" + bytes(6) + b"K\x00"  # scale 0.5


def linear(places=None):
    """An archive of a layer with a weight (2, 4) of the eight bytes 0, 2, … 14, each worth a half, and no bias."""
    weight = files.quantized(AFFINE, kind="QInt8Storage")
    data = b"\x80\x02" + files.glob(MODULE, "LinearPackedParams") + b")\x81(" + weight + b"N\x88K\x0ctb."
    path = "code/" + MODULE.replace(".", "/") + ".py"
    more = {path: LINEAR.encode(), "data/0": bytes(range(0, 16, 2))} | ({} if places is None else {path + ".debug_pkl": places})
    return files.archive(data=data, files=more, drop=("code/__torch__.py",))


def test_weights_that_were_declared_as_tensors():
    m = load(linear())
    weight, bias = m._packed_params.unpack()
    assert weight.dequantize().tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]] and bias is None
    cresset.testing.assert_close(m(cresset.ones(1, 4)), cresset.tensor([[6.0, 22.0]]), rtol=0.02, atol=0)


@pytest.mark.parametrize("head", [0, 3])
def test_places_without_a_table_of_texts(head, recwarn):
    source = ("def forward(self, x):\n    return linear(x)\n", "layer.py", 10)
    offset = LINEAR.index("ops.quantized.linear_dynamic")
    records = ((0, (("", None, 0), 0, 0)), (offset, (source, 25, 41)), (offset + 20, (("", None, 0), 0, 0)))
    m = load(linear(pickle.dumps(records[:2] if head == 0 else records, 2)))
    assert not recwarn.list
    with pytest.raises(RuntimeError) as caught:
        m(cresset.ones(1, 3))
    assert 'File "layer.py", line 11' in str(caught.value)


def restored(name, state):
    return cresset._C._restore_custom_object("__torch__.torch.classes." + name, state)


def test_the_three_forms_of_a_convolution():
    weight = cresset.quantize_per_tensor(cresset.ones(2, 1, 3, 3), 0.5, 0, cresset.qint8)
    bias, numbers = cresset.tensor([1.0, 2.0]), [2, 1, 2, 3, 4, 5, 6, 0, 0, 1, 0]  # dims, stride, padding, dilation, output padding, groups, transposed
    one = [cresset.tensor([n]) for n in numbers]
    forms = [
        (weight, bias, one[1:3], one[3:5], one[5:7], one[9]),
        ("2", [cresset.tensor(numbers, dtype=cresset.int16), weight], [bias]),
        (3, numbers, [None, weight, bias]),
    ]
    made = cresset.ops.quantized.conv2d_prepack(weight, bias, [1, 2], [3, 4], [5, 6], 1)
    ops = cresset.ops.quantized
    for form in forms:
        p = restored("quantized.Conv2dPackedParamsBase", form)
        assert p.numbers() == made.numbers() and p.unpack()[1].equal(bias) and p.unpack()[0].int_repr().equal(weight.int_repr())
        assert (ops.conv2d_stride(p), ops.conv2d_padding(p), ops.conv2d_dilation(p), ops.conv2d_groups(p)) == ([1, 2], [3, 4], [5, 6], 1)
        kind, (written, kept), (kept_bias,) = p.__getstate__()
        assert kind == "2" and written.tolist() == numbers and kept.int_repr().equal(weight.int_repr()) and kept_bias.equal(bias)


@pytest.mark.parametrize(
    "state, words",
    [
        (3, "packed weights of a convolution: a tuple was required; got int"),
        ((1, 2), "3 or 6 parts were required; got 2"),
        (("1", [], []), 'the version "2" of their form was required; got "1"'),
        (("2", [cresset.ones(11)], [None]), "11 numbers of type int16, a weight and a bias were required"),
        ((4, [], [None, None, None]), "in version 3 of their form were required; got version 4"),
        ((3, [2] * 11, [None, None, None]), "a weight and 11 numbers were required; got 11"),
        ((3, [3] * 11, [None, cresset.ones(1), None]), "over 2 dimensions were required; got 3"),
        ((3, [2] * 4, [None, cresset.ones(1), None]), "a weight and 11 numbers were required; got 4"),
    ],
)
def test_other_forms_of_a_convolution_are_refused(state, words):
    with pytest.raises((RuntimeError, TypeError), match=words):
        restored("quantized.Conv2dPackedParamsBase", state)


def test_states_of_recurrent_cells_are_pytorchs():
    ops, weight = cresset.ops.quantized, lambda n: cresset.quantize_per_tensor(cresset.ones(4, n), 0.5, 0, cresset.qint8)
    zeros, ones = cresset.zeros(4), cresset.ones(4)
    cell = ops.make_quantized_cell_params_dynamic(ops.linear_prepack(weight(3), zeros), ops.linear_prepack(weight(1), ones), zeros, ones, True)
    kind, biases, doubles, numbers, packed = cell.__getstate__()
    assert (kind, doubles, numbers) == ("quantized_dynamic", [], [1]) and biases[0].equal(zeros) and biases[1].equal(ones) and len(packed) == 2
    again = restored("rnn.CellParamsBase", (kind, biases, doubles, numbers, packed))
    assert again.numbers() == cell.numbers() and all(a.dequantize().equal(b.dequantize()) for a, b in zip(again.tensors(), cell.tensors()))
    half = ops.linear_prepack_fp16(cresset.ones(4, 3), zeros)
    kind, biases, doubles, numbers, packed = ops.make_quantized_cell_params_fp16(half, half).__getstate__()
    assert (kind, biases, doubles, numbers, len(packed)) == ("quantized_fp16", [], [], [], 2)
    for state, words in ((("other", [], [], [], packed), '"quantized_dynamic" or "quantized_fp16" was required; got "other"'),
                         (("quantized_fp16", [], [], [], packed[:1]), "two packed weights were required; got 1")):  # fmt: skip
        with pytest.raises(RuntimeError, match=words):
            restored("rnn.CellParamsBase", state)
