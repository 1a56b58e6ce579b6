"""At cresset.ops, element types, layouts and memory formats may be their numbers, as graphs write them: PyTorch's schemas call all of them int."""

import cresset
import pytest
from cresset import ops, tensor


# What PyTorch 2.13 answers.
def test_numbers_stand_for_types():
    x = tensor([1.5, 2.5])
    assert ops.aten.to.dtype(x, 3).tolist() == [1, 2] and ops.aten.to.dtype(x, 3).dtype == cresset.int32
    assert ops.aten.ones([2], dtype=7).dtype == cresset.float64
    assert ops.aten.sum(x, dtype=7).dtype == cresset.float64
    assert ops.aten.ones([2], dtype=6, layout=0).layout == cresset.strided
    assert ops.aten.clone(x, memory_format=0).tolist() == [1.5, 2.5]
    assert ops.aten.clone(cresset.ones(1, 2, 3, 4), memory_format=2).stride() == (24, 1, 8, 2)


@pytest.mark.parametrize("number", [-1, 45, 46, 99, 2**40, 2**70])
def test_other_numbers_do_not(number):
    with pytest.raises(RuntimeError, match=r"Expected a value of type 'Optional\[int\]' for argument 'dtype' but instead found type 'int'"):
        ops.aten.ones([2], dtype=number)


def test_types_without_tensors_are_refused():
    for number, name in ((13, "QUInt8"), (21, "Bits8")):
        with pytest.raises(NotImplementedError, match=f"tensors of type {name} are not supported"):
            ops.aten.ones([2], dtype=number)
    with pytest.raises(NotImplementedError, match="new tensors are strided here; given layout sparse_coo"):
        ops.aten.ones([2], layout=1)


def test_kernels_in_python_get_the_object():
    seen = []
    library = cresset.library.Library("dtypes_as_numbers", "DEF")
    library.define("f(Tensor x, ScalarType t, ScalarType? u=None, MemoryFormat? m=None) -> Tensor")
    library.impl("f", lambda *args: seen.append(args[1:]) or args[0].clone(), "CPU")
    x = cresset.ones(2)
    for kind in (cresset.quint8, 13):
        ops.dtypes_as_numbers.f(x, kind, cresset.bits8, 1)
    assert seen == [(cresset.quint8, cresset.bits8, cresset.preserve_format)] * 2


def test_quantizing_operators_take_quantized_types():
    x = tensor([0.34, -0.6, 0.42, 0.68])
    schema = "aten::quantize_per_tensor(Tensor self, float scale, int zero_point, ScalarType dtype) -> Tensor"
    assert str(ops.aten.quantize_per_tensor.default._schema) == schema
    for kind in (cresset.quint8, 13):
        q = ops.aten.quantize_per_tensor(x, 0.1, 2, kind)
        assert q.dtype == cresset.quint8 and q.int_repr().tolist() == [5, 0, 6, 9]
    assert ops.aten.int_repr(q).tolist() == [5, 0, 6, 9] and ops.aten.q_scale(q) == 0.1


def test_operators_of_python_are_found_by_name():
    """In a fresh process: the module that defines them is loaded when one of them is asked for."""
    import subprocess
    import sys

    names = ("_nested_tensor_from_mask", "quantize_per_channel", "quantized_batch_norm", "empty_quantized", "_make_per_tensor_quantized_tensor", "int_repr")
    for name in names:
        done = subprocess.run([sys.executable, "-c", f"import cresset; print(cresset.ops.aten.{name}.overloads())"], capture_output=True, text=True)
        assert done.stdout.strip() == "['default']", done.stderr
