"""What vendors' kernels take from c10/util and ATen/native: sizes of pools and convolutions beside those of the operators, checks, conversions."""

from pathlib import Path

import pytest
from compiling import needs_pybind11

import cresset
from cresset.nn import functional as F
from cresset.utils import cpp_extension

pytestmark = [needs_pybind11]


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    source = Path(__file__).parent / "sources/kernel_helpers.cpp"
    return cpp_extension.load("kernel_helpers", source, extra_cflags=["-O0"], build_directory=tmp_path_factory.mktemp("helpers"))


def test_errors_with_a_place(module):
    with pytest.raises(RuntimeError, match="^told apart$"):
        module.fail_at_a_place()
    with pytest.raises(ValueError, match="^a value$"):
        module.throw_error()


def test_sizes_of_pools_are_those_of_the_operators(module):
    for size in range(1, 12):
        for kernel, pad, stride, dilation in ((1, 0, 1, 1), (2, 0, 2, 1), (2, 1, 2, 1), (3, 1, 2, 1), (3, 0, 3, 2), (3, 1, 1, 1)):
            for ceil in (False, True):
                try:
                    x = cresset.zeros(1, 1, size)
                    expected = F.max_pool1d(x, kernel, stride, pad, dilation, ceil).shape[-1]
                except RuntimeError:  # no window fits
                    expected = None
                got = module.pool(size, kernel, pad, stride, dilation, ceil)
                assert (got if got >= 1 else None) == expected, (size, kernel, pad, stride, dilation, ceil)
    with pytest.raises(RuntimeError, match="pad should be at most half of effective kernel size, but got pad=2, kernel_size=2 and dilation=1"):
        module.pool(5, 2, 2, 1, 1, False)
    module.check_pool(cresset.zeros(2, 3, 4, 4), 2, 0, 3)
    with pytest.raises(RuntimeError, match=r"Calculated output size: \(3, \[0, 0\]\). Output size is too small"):
        module.check_pool(cresset.zeros(2, 3, 4, 4), 2, 0, 0)
    with pytest.raises(RuntimeError, match="tensor with optional 0 dim batch size for input"):
        module.check_pool(cresset.zeros(2, 0, 4, 4), 2, 0, 3)
    with pytest.raises(RuntimeError, match="integer out of range"):
        module.downcast(2**40)


def test_sizes_of_convolutions_are_those_of_the_operators(module):
    x, weight = cresset.zeros(2, 3, 8, 9), cresset.zeros(4, 3, 3, 2)
    out, back = module.conv_sizes(list(x.shape), list(weight.shape))
    expected = F.conv2d(x, weight, stride=(2, 1), padding=(1, 0), dilation=(1, 2))
    assert out == list(expected.shape)
    inverse = F.conv_transpose2d(expected, weight, stride=(2, 1), padding=(1, 0), output_padding=(1, 0), dilation=(1, 2))
    assert back == list(inverse.shape)


def test_storages(module):
    x = cresset.arange(6.0)
    assert module.set_strided(x.clone(), [2, 2], [1, 2], 1).tolist() == [[1, 3], [2, 4]]
    with pytest.raises(RuntimeError, match="requiring a storage size of 28 are out of bounds for storage of size 24"):
        module.set_strided(x.clone(), [2, 2], [1, 2], 3)
    with pytest.raises(RuntimeError, match="Negative strides are not supported"):
        module.set_strided(x.clone(), [2], [-1], 0)
    same = module.set_storage(cresset.empty(0), x)
    assert same.data_ptr() == x.data_ptr() and cresset.equal(same, x)


def test_checks(module):
    assert module.rows_of_layer_norm(cresset.zeros(2, 3, 4), [3, 4]) == (2, 12)
    with pytest.raises(RuntimeError, match=r"Given normalized_shape=\[5\], expected input with shape \[\*, \[5\]\]"):
        module.rows_of_layer_norm(cresset.zeros(2, 3), [5])
    a, b = [cresset.zeros(2), cresset.zeros(3)], [cresset.ones(2), cresset.ones(3)]
    assert module.fast_route(a, b)
    assert not module.fast_route(a, [cresset.ones(2), cresset.ones(3).double()])
    assert not module.fast_route(a, [cresset.ones(2), cresset.ones(6)[::2]])
    with pytest.raises(RuntimeError, match="Tensor lists must have the same number of tensors, got 2 and 1"):
        module.fast_route(a, b[:1])


def test_numbers(module):
    assert module.moved_through_types()
    assert module.numbers() == [24, 9, 12, 1, 0, 0, 1, 64, 128, 4, 1, 5, 7]
    assert module.thread_name("a rather long name") == "a rather long n"
    assert module.autocast_type()
    assert module.wrapped(cresset.zeros(2).half()) == cresset.float16
    assert module.without_interpreter(4) == 8


def test_operators_as_classes(module):
    x = cresset.tensor([1.0, 2.0])
    assert module.operator_call(x).tolist() == [3.0, 6.0] and module.operator_redispatch(x).tolist() == [1.0, 3.0]
    schema = "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)"
    assert module.operator_words() == ["aten::add", "out", schema]
    result, arguments = module.operator_fallback(x)
    assert result.tolist() == [-1.0, -4.0] and arguments == 3


def test_lists_that_boxed_values_hold(module):
    x = cresset.arange(6.0).view(3, 2)
    out, written, added = module.index_by_lists(x, cresset.tensor([2, 0]))
    assert out.tolist() == [[4.0, 5.0], [0.0, 1.0]] and written.tolist() == [[0.0, 0.0], [2.0, 3.0], [0.0, 0.0]]
    assert added.tolist() == [[1.0, 2.0], [2.0, 3.0], [5.0, 6.0]]
    assert module.sums_of_lists([x.view(-1)]).item() == 16


def test_fills_by_a_generator(module):
    x = module.exponential(cresset.empty(2000, dtype=cresset.float64), 4.0, 7)
    assert x.min() > 0 and abs(x.mean().item() - 0.25) < 0.02
    assert cresset.equal(x, module.exponential(cresset.empty(2000, dtype=cresset.float64), 4.0, 7))


def test_what_allocators_say(module):
    # PyTorch's words
    assert [module.format_size(n) for n in (512, 1536, 3 << 19, 5 << 29)] == ["512 bytes", "1.50 KiB", "1.50 MiB", "2.50 GiB"]
    bytes_, nobody_looks = module.host_tensors()
    assert bytes_.dtype == cresset.uint8 and bytes_.shape == (3,) and nobody_looks


def test_references_to_objects_of_python(module):
    assert module.counted_references(object()) == 0
