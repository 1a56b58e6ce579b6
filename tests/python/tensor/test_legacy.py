"""Constructors and methods from before dtypes, settings of the process, names of features that do not exist."""

import math

import cresset
import pytest


@pytest.mark.parametrize(
    "name, dtype",
    [("FloatTensor", "float32"), ("DoubleTensor", "float64"), ("HalfTensor", "float16"), ("LongTensor", "int64"), ("BoolTensor", "bool"), ("ByteTensor", "uint8")],
)
def test_tensor_types(name, dtype):
    kind, dtype = getattr(cresset, name), getattr(cresset, dtype)
    assert kind(2, 3).shape == (2, 3) and kind().shape == (0,) and kind(cresset.Size([2, 1])).shape == (2, 1)
    made = kind([1, 0])
    assert made.dtype == dtype and made.tolist() == [1, 0] and isinstance(made, kind)
    assert not isinstance(cresset.empty(1, dtype=cresset.complex64), kind) and not isinstance(1, kind)
    assert not isinstance(made.to("meta"), kind) and not issubclass(kind, cresset.Tensor)
    assert cresset.typename(kind) == f"torch.{name}" and made.type() == f"torch.{name}"
    assert cresset.ones(2, dtype=cresset.complex64).real.type(kind).dtype == dtype
    assert kind(made).data_ptr() == made.data_ptr()
    with pytest.raises(TypeError):
        kind(cresset.ones(2, dtype=cresset.complex64))
    with pytest.raises(RuntimeError, match="legacy constructor expects device type: cpu"):
        kind(2, device="meta")


def test_new():
    x = cresset.ones(2, dtype=cresset.float64)
    assert x.new(2, 3).shape == (2, 3) and x.new([1, 2]).dtype == cresset.float64 and x.new(x.shape).shape == (2,) and x.new().shape == (0,)
    with pytest.raises(TypeError, match="data must be a sequence"):
        x.new(3.5)


def test_functions_of_elements():
    x = cresset.arange(6.0).reshape(2, 3)
    view = x.t()
    assert view.apply_(lambda v: v + 1) is view
    assert x.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert x.map_(x[0], lambda a, b: a - b).tolist() == [[0, 0, 0], [3, 3, 3]]
    assert x.map2_(x.clone(), x.clone(), lambda a, b, c: a + 2 * b + c).tolist() == [[0, 0, 0], [12, 12, 12]]
    with pytest.raises(TypeError, match="map_: expected torch.FloatTensor for 'other' .got torch.LongTensor"):
        x.map_(cresset.arange(3), lambda a, b: a)
    with pytest.raises(RuntimeError, match="Can't call apply_.. on Variable that requires grad"):
        x.requires_grad_().apply_(lambda v: v)


def test_functions_of_elements_give_numbers():
    for dtype, words in ((cresset.int64, "'str' object cannot be interpreted as an integer"), (cresset.complex64, "must be real number, not str")):
        x = cresset.ones(2, dtype=dtype)
        for call in (lambda: x.apply_(lambda v: "1"), lambda: x.map_(x.clone(), lambda a, b: "1")):
            with pytest.raises(TypeError, match=words):
                call()
        with pytest.raises(TypeError, match="list|NoneType"):
            x.apply_(lambda v: [v] if dtype.is_complex else None)
        assert x.tolist() == [1, 1]
    assert cresset.ones(2).apply_(lambda v: cresset.tensor(2)).tolist() == [2, 2]


def test_dim_order():
    x = cresset.ones(2, 3, 4, 5)
    assert x.dim_order() == (0, 1, 2, 3) and x.transpose(1, 2).dim_order() == (0, 2, 1, 3)
    last = x.to(memory_format=cresset.channels_last)
    assert last.dim_order() == (0, 2, 3, 1) == last.dim_order(ambiguity_check=[cresset.channels_last, cresset.contiguous_format])
    assert x.dim_order(ambiguity_check=True) == (0, 1, 2, 3)
    assert cresset.ones(2, 1, 3).expand(2, 4, 3).dim_order() == (0, 1, 2)
    with pytest.raises(RuntimeError, match="does not have unique dim order"):
        cresset.empty(1, 1).dim_order(ambiguity_check=True)


def test_settings():
    assert cresset.get_float32_matmul_precision() == "highest"
    cresset.set_float32_matmul_precision("high")
    with pytest.warns(UserWarning):
        cresset.set_float32_matmul_precision("x")
    assert cresset.get_float32_matmul_precision() == "high"
    cresset.set_float32_matmul_precision("highest")
    cresset.use_deterministic_algorithms(True, warn_only=True)
    assert cresset.are_deterministic_algorithms_enabled() and cresset.is_deterministic_algorithms_warn_only_enabled()
    assert cresset.get_deterministic_debug_mode() == 1
    cresset.set_deterministic_debug_mode("error")
    assert cresset.get_deterministic_debug_mode() == 2
    with pytest.raises(RuntimeError, match="expected 0, 1, or 2, but got 5"):
        cresset.set_deterministic_debug_mode(5)
    cresset.set_deterministic_debug_mode("default")
    assert not cresset.are_deterministic_algorithms_enabled()
    assert cresset.get_device_module("cpu") is cresset.cpu and not cresset.cuda.is_available() and not cresset.backends.cuda.is_built()
    cresset.set_default_tensor_type(cresset.DoubleTensor)
    assert cresset.get_default_dtype() == cresset.float64
    cresset.set_default_tensor_type("torch.FloatTensor")
    with pytest.raises(TypeError, match="only floating-point types"):
        cresset.set_default_tensor_type(cresset.LongTensor)


def test_constants_and_numbers():
    assert (cresset.pi, cresset.e, cresset.inf, cresset.newaxis) == (math.pi, math.e, math.inf, None) and math.isnan(cresset.nan)
    assert cresset.ones(2)[cresset.newaxis].shape == (1, 2)
    assert (cresset.sym_int(-3.7), cresset.sym_max(1, 2), cresset.sym_min(1, 2.0), cresset.sym_not(True)) == (-3, 2, 1.0, False)
    assert isinstance(cresset.sym_min(1, 2.0), float) and cresset.sym_ite(True, 1, 2) == 1
    for check, error in ((cresset._check, RuntimeError), (cresset._check_value, ValueError), (cresset._check_index, IndexError)):
        check(True)
        with pytest.raises(error, match="hi"):
            check(False, lambda: "hi")


@pytest.mark.parametrize(
    "call",
    [
        lambda x: cresset.mkldnn_rnn_layer(x),
        lambda x: cresset.quantize_per_tensor(x, 0.1, 0, cresset.quint4x2),
    ],
)
def test_features_that_do_not_exist(call):
    with pytest.raises(NotImplementedError, match="are not part of Cresset"):
        call(cresset.ones(2))


def test_questions_about_them():
    x = cresset.ones(2, 3)
    assert not (x.is_sparse or x.is_quantized or x.is_mkldnn or x.is_nested or x.is_distributed())
    assert x.to_dense() is x and (x.sparse_dim(), x.dense_dim()) == (0, 2)
    with pytest.raises(RuntimeError, match="coalesce expected sparse coordinate tensor layout but got Strided"):
        x.coalesce()
    with pytest.raises(NotImplementedError, match="Could not run 'aten::record_stream' with arguments from the 'CPU' backend: it has no streams."):
        x.record_stream(cresset.Stream(stream_id=0, device_index=1, device_type=2))
    with pytest.raises(TypeError, match="must be Stream, not NoneType"):
        x.record_stream(None)


def test_constructors_keep_every_digit():
    """Values go to the type at once, not by way of the default type."""
    assert cresset.DoubleTensor([1e-4, 1e300]).tolist() == [1e-4, 1e300]
    assert cresset.ones(2, dtype=cresset.float64).new([1e-4]).tolist() == [1e-4]
    assert cresset.LongTensor([2**60 + 1, 1.5]).tolist() == [2**60 + 1, 1]
    with pytest.raises(RuntimeError, match="without overflow"):
        cresset.ByteTensor([300])
    with pytest.raises(TypeError, match="must be real number, not complex"):
        cresset.FloatTensor([1j])
