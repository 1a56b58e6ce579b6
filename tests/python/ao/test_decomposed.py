"""torch.ops.quantized_decomposed beside PyTorch 2.13: a digest of its results, and what is refused."""

import hashlib

import cresset as torch
import numpy as np
import pytest

ops = torch.ops.quantized_decomposed


def test_results_are_pytorchs_bit_for_bit():
    state, digest = np.random.RandomState(3), hashlib.sha256()

    def put(*tensors):
        for t in tensors:
            array = t.detach().numpy()
            digest.update(array.tobytes() + str(array.dtype).encode())

    x = torch.from_numpy(state.standard_normal((4, 6)).astype("f4"))
    q = ops.quantize_per_tensor(x, 0.03, 5, -128, 127, torch.int8)
    put(q, ops.dequantize_per_tensor(q, 0.03, 5, -128, 127, torch.int8))
    put(ops.quantize_per_tensor.tensor(x, torch.tensor([0.03]), torch.tensor([5]), 0, 255, torch.uint8))
    put(*ops.choose_qparams(x, 0, 255, 1e-5, torch.uint8), *ops.choose_qparams_symmetric(x, -127, 127, 1e-5, torch.int8))
    scales, zeros = torch.from_numpy(state.uniform(0.01, 0.05, 4).astype("f4")), torch.tensor([0, 1, 2, 3])
    q = ops.quantize_per_channel(x, scales, zeros, 0, -128, 127, torch.int8)
    put(q, ops.dequantize_per_channel(q, scales, zeros, 0, -128, 127, torch.int8))
    put(*ops.choose_qparams_per_token(x, torch.int8))
    rows = ops.choose_qparams_per_token_asymmetric(x, torch.int8)
    q = ops.quantize_per_token(x, *rows, -128, 127, torch.int8)
    put(*rows, q, ops.dequantize_per_token(q, *rows, -128, 127, torch.int8, torch.float32))
    groups, none = torch.from_numpy(state.uniform(0.01, 0.05, (4, 2)).astype("f4")), torch.zeros(4, 2, dtype=torch.int32)
    q = ops.quantize_per_channel_group(x, groups, none, -8, 7, torch.int8, 3)
    put(q, ops.dequantize_per_channel_group(q, groups, none, -8, 7, torch.int8, 3, torch.float32))
    x.requires_grad_()
    y = ops.fake_quant_per_channel(x, scales, zeros, 0, -30, 30)
    y.sum().backward()
    put(y, x.grad, ops.convert_element_type.no_fuse(x, torch.float64))
    assert digest.hexdigest()[:16] == "5141026c24b8f118"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: ops.quantize_per_tensor(x.int(), 0.1, 0, 0, 255, torch.uint8), "Expecting input to have dtype .*float32, but got dtype: .*int32"),
        (lambda x: ops.quantize_per_tensor(x, 0.1, 0, 0, 300, torch.uint8), "quant_max out of bounds for dtype, quant_max_upper_bound: 255 quant_max: 300"),
        (lambda x: ops.dequantize_per_tensor(x, 0.1, 0, 0, 255, torch.uint8), "Expecting input to have dtype: .*uint8, but got .*float32"),
    ],
)
def test_refused(call, words):
    with pytest.raises(AssertionError, match=words):
        call(torch.ones(2, 2))


def test_parameters_of_rows_are_as_many_as_rows():
    from cresset.ao.quantization.fx._decomposed import _per_token_quant_qparam_dim_check as check

    x, rows = torch.randn(2, 3, 4), torch.randn(2, 3, 1)
    assert check(x, rows, rows) is None and check(x, rows[..., 0], rows) is None and check(x, rows.view(6, 1), rows.view(6)) is None
    with pytest.raises(AssertionError, match=r"num_tokens: 6 zero_points: \w+.Size\(\[5\]\)"):
        check(x, rows, torch.randn(5))
