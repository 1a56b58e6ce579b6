"""What bindings of other languages, simulation codes and libraries of atoms use of PyTorch's C++ API, and sparse and quantized tensors from C++."""

import json
import warnings
from pathlib import Path

import pytest

import cresset
from cresset.utils import cpp_extension


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    source = Path(__file__).parent / "sources/bindings_module.cpp"
    return cpp_extension.load("bindings_module", source, extra_cflags=["-O0"], build_directory=tmp_path_factory.mktemp("bindings"))


def test_values_of_the_language(module):
    assert module.equal_by_name() and module.explicit_keys() == 1
    assert module.text_of_a_set() == "a b"
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        module.warned_once()
    assert [str(w.message) for w in seen] == ["only once"]


def test_sparse_tensors_through_cpp(module):
    indices, values = cresset.tensor([[0, 1, 1], [2, 0, 2]]), cresset.tensor([3.0, 4.0, 5.0])
    x = cresset.sparse_coo_tensor(indices, values, (2, 3)).coalesce()
    found = module.sparse_parts(x)
    assert found[0].tolist() == indices.tolist() and found[1].tolist() == [3, 4, 5]
    assert found[2].tolist() == [[0, 0, 3], [4, 0, 5]] and found[3].tolist() == [2, 0, 3, 1]

    made = module.make_sparse(indices, values, [2, 3])
    assert made.layout is cresset.sparse_coo and made.dtype is cresset.float64 and made.requires_grad
    assert made.detach().to_dense().tolist() == [[0, 0, 3], [4, 0, 5]]
    assert module.compressed_and_back(cresset.tensor([[0.0, 1], [2, 0]])).tolist() == [[0, 2], [4, 0]]
    with pytest.raises(RuntimeError, match="indices expected sparse coordinate tensor layout but got Strided"):
        module.sparse_parts(cresset.ones(2))


def test_quantized_tensors_through_cpp(module):
    whole, back, scale, zero_point = module.quantized(cresset.tensor([0.0, 1.0, -0.5]))
    assert whole.tolist() == [3, 5, 2] and back.tolist() == [0, 1, -0.5] and (scale, zero_point) == (0.5, 3)


def test_dlpack_from_cpp(module):
    x = cresset.arange(4)
    assert module.by_dlpack(x).data_ptr() == module.by_old_dlpack(x).data_ptr() == x.data_ptr()
    with pytest.raises(BufferError, match="require gradient"):
        module.by_dlpack(cresset.ones(1, requires_grad=True))


def test_profiles_from_cpp(module, tmp_path):
    text, right = module.profiled(str(tmp_path / "trace.json"))
    assert right and text == "aten::add 2 1"
    assert "aten::add" in {event["name"] for event in json.loads((tmp_path / "trace.json").read_text())}
    assert module.legacy_profile() == "__start_profile outer neg __stop_profile 1"


def test_optimizers_data_and_nodes(module):
    assert module.optimizers_can_be_moved() and module.numbers_of_a_dataset() == 6
    x = cresset.ones(2, requires_grad=True)
    y = module.doubled(x)
    assert y.tolist() == [2, 2] and y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_functions_of_tensors(module):
    x = cresset.tensor([1.0, 3.0, 4.0])
    assert module.pair_names(x).item() == pytest.approx(5 - 0.5)
    assert module.indexed_by_list(cresset.ones(3), cresset.tensor([0, 2])).tolist() == [0, 0]
    assert cresset.ops.bindings_test.three(cresset.ones(1)).item() == 3


class Added(cresset.nn.Module):
    def forward(self, x):
        return x + 1


def test_script_modules_of_python(module):
    assert module.scripted(cresset.jit.script(Added()), cresset.ones(2)).tolist() == [2, 2]
    assert module.scripted(Added(), cresset.ones(2)) is None


def test_texts_that_are_no_utf8(module):
    with pytest.raises(UnicodeDecodeError):
        cresset.ops.bindings_test.no_utf8()
    cresset.ops.bindings_test.ignore_no_utf8(True)
    assert cresset.ops.bindings_test.no_utf8() == "ab"
    cresset.ops.bindings_test.ignore_no_utf8(False)


def test_indices_in_boxed_lists(module):
    got, put, added = module.indexed_by_boxed_list(cresset.arange(3.0), cresset.tensor([2, 0]))
    assert got.tolist() == [2, 0] and put.tolist() == [0, 1, 0] and added.tolist() == [0, 1, 2]


def test_factories_without_names(module):
    zeros, ones, threes = module.made_without_names()
    assert zeros.tolist() == [[0, 0]] and zeros.dtype is cresset.int64 and ones.dtype is cresset.float64
    assert threes.tolist() == [3, 3] and threes.dtype is cresset.int32 and module.three() == 3


def test_functions_of_quantized_tensors(module):
    whole, back, facts, rounded, kept, made = module.quantized_functions(cresset.tensor([0.0, 1.0, -0.5]))
    assert whole.tolist() == [3, 5, 2] and back.tolist() == [0, 1, 0] and facts.tolist() == [0.5, 3]
    assert rounded.tolist() == [0, 0.5, -0.5] and kept.tolist() == [True, False, True]
    assert made.dtype is cresset.uint8 and made.shape == (2,)


def test_operators_that_are_functions_in_cpp(module):
    x = cresset.tensor([3.0, 4.0])
    repeated, counted, same, diagonal, norm = module.functions_alone(x)
    assert repeated.tolist() == [3, 4, 3, 4] and counted.tolist() == [1, 2] and same.tolist() == [3, 4]
    assert diagonal.tolist() == [[3, 0], [0, 3]] and norm.item() == 5
