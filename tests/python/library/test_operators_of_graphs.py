"""cresset.ops.aten and cresset.ops.prim have the operators that only graphs use: numbers, conversions, indices without None."""

import subprocess
import sys

import pytest

import cresset
from cresset import ops, ones, tensor

CALLS = [
    (lambda: ops.aten.Int(tensor(3)), 3),
    (lambda: ops.aten.Int("12"), 12),
    (lambda: ops.aten.Float(3), 3.0),
    (lambda: ops.aten.add.int(1, 2), 3),
    (lambda: ops.aten.add.float_int(1.5, 2), 3.5),
    (lambda: ops.aten.add.str("a", b="b"), "ab"),
    (lambda: ops.aten.sqrt.int(4), 2.0),
    (lambda: ops.aten.eq.int_list([1, 2], [1, 2]), True),
    (lambda: ops.aten.gt.int(1, 2), False),
    (lambda: ops.aten.floordiv.int(7, 2), 3),
    (lambda: ops.prim.NumToTensor(3).item(), 3),
    (lambda: ops.prim.NumToTensor.Scalar(2.5).item(), 2.5),
]


@pytest.mark.parametrize("call, result", CALLS, ids=range(len(CALLS)))
def test_calls(call, result):
    found = call()
    assert found == result and type(found) is type(result)


def test_overloads():
    assert set(ops.aten.Int.overloads()) >= {"Tensor", "bool", "float", "Scalar", "str"}
    assert str(ops.aten.Int) == "aten.Int" and ops.aten.add.int.name() == "aten::add.int"
    assert str(ops.aten.add.int._schema) == "aten::add.int(int a, int b) -> int"
    assert ops.aten.add(ones(1), 2).item() == 3


def test_indices_without_none():
    x, index, values = cresset.zeros(4), tensor([1, 3]), tensor([5.0, 6.0])
    assert ops.aten.index_put.hacked_twin(x, [index], values, accumulate=False).tolist() == [0, 5, 0, 6]
    ops.aten.index_put_.hacked_twin(x, [index], values, accumulate=True)
    assert x.tolist() == [0, 5, 0, 6]
    assert ops.aten.index.Tensor_hacked_twin(x, [index]).tolist() == [5, 6]


def test_refused():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        ops.aten.nothing
    with pytest.raises(AttributeError, match="has no overload name 'nothing'"):
        ops.aten.add.nothing
    with pytest.raises(AttributeError):
        ops.aten.add.hacked_twin
    with pytest.raises(RuntimeError, match="Expected a value of type 'int' for argument 'b'"):
        ops.aten.add.int(1, "a")
    with pytest.raises(RuntimeError, match="is missing value for argument 'b'"):
        ops.aten.add.int(1)
    with pytest.raises(RuntimeError, match="Unknown keyword argument 'c'"):
        ops.aten.add.int(1, 2, c=3)


def test_what_is_said_of_an_overload():
    op = ops.aten.sub.complex
    assert (op.namespace, op._opname, op._overloadname, op._name, op.__qualname__) == ("aten", "sub", "complex", "aten::sub.complex", "aten::sub.complex")
    assert op.tags == [cresset.Tag.pt2_compliant_tag] and not op.is_view and op.py_kernels == {} and op.__module__.endswith("._ops.aten")
    assert op.overloadpacket is ops.aten.sub and ops.aten.Int.op is ops.aten.Int
    for ask in (lambda: op.has_kernel_for_dispatch_key("CPU"), lambda: op.decompose(1, 2)):
        with pytest.raises(RuntimeError, match="operator aten::sub.complex does not exist"):
            ask()


@pytest.mark.parametrize("name", ["_nested_from_padded", "_jagged_to_padded_dense_forward", "_coalesced_", "quantize_per_tensor", "_transform_bias_rescale_qkv"])
def test_operators_of_python_are_found_first(name):
    code = f"import cresset; print(cresset.ops.aten.{name})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == f"aten.{name}"


def test_operators_of_accelerators():
    q = ones(1, 1, 2, 2)
    assert ops.aten._flash_attention_forward.overloads() == ["default", "quantized"]
    for call in (lambda: ops.aten._scaled_dot_product_flash_attention(q, q, q), lambda: ops.aten._fused_dropout(q, 0.5), lambda: ops.aten.cudnn_grid_sampler(q, q)):
        with pytest.raises(NotImplementedError, match="^Could not run 'aten::.*' with arguments from the 'CPU' backend"):
            call()
