"""Quantisation error, products, gradients of the dense side, files, models."""

import cresset
import pytest
from q8 import Q8Linear, from_dense, quantize, to_dense


LARGEST = {8: 127, 4: 7}


@pytest.fixture(params=[8, 4])
def bits(request):
    return request.param


@pytest.fixture
def w():
    cresset.manual_seed(0)
    return cresset.randn(5, 70)  # the last block of each row is short


def test_values_are_within_half_a_step(w, bits):
    q = from_dense(w, bits)
    assert q.shape == w.shape and q.dtype == w.dtype
    step = cresset.nn.functional.pad(w, (0, 26)).view(5, 3, 32).abs().amax(2, keepdim=True) / LARGEST[bits]
    error = cresset.nn.functional.pad(to_dense(q) - w, (0, 26)).view(5, 3, 32).abs()
    assert (error <= step / 2 + 1e-6).all()
    assert cresset.equal(to_dense(q.t()), to_dense(q).t())


@pytest.mark.parametrize("rows", [1, 3, 20])
def test_products(w, bits, rows):
    q, dense, x = from_dense(w, bits), to_dense(from_dense(w, bits)), cresset.randn(rows, 70)
    assert cresset.allclose(x @ q.t(), x @ dense.t(), rtol=1e-4, atol=1e-5)
    assert cresset.allclose((x.bfloat16() @ q.t()).float(), x @ dense.t(), rtol=0.05, atol=0.1)
    g = cresset.randn(rows, 5)
    assert cresset.allclose(g @ q, g @ dense, rtol=1e-4, atol=1e-5)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        x @ q


def test_gradient_of_the_dense_side(w, bits):
    layer = cresset.nn.Linear(70, 5)
    q8 = Q8Linear.from_linear(layer, bits)
    x = cresset.randn(3, 70, requires_grad=True)
    y = q8(x)
    y.pow(2).sum().backward()
    dense, reference = to_dense(q8.weight), x.detach().clone().requires_grad_()
    cresset.nn.functional.linear(reference, dense, layer.bias.detach()).pow(2).sum().backward()
    assert cresset.allclose(x.grad, reference.grad, rtol=1e-3, atol=1e-4)
    assert cresset.allclose(q8.bias.grad, (2 * y).sum(0), rtol=1e-4)


def test_files(w, bits, tmp_path):
    q8 = Q8Linear(from_dense(w, bits), cresset.ones(5))
    file = tmp_path / "weights.safetensors"
    cresset.save(q8.state_dict(), file)
    assert file.stat().st_size < 5 * 96 * bits / 8 + 500
    other = Q8Linear(from_dense(cresset.zeros(5, 70), bits), cresset.zeros(5))
    other.load_state_dict(cresset.load(file))
    assert cresset.equal(to_dense(other.weight), to_dense(q8.weight)) and cresset.equal(other.bias, q8.bias)


def test_models(bits):
    cresset.manual_seed(0)
    model = cresset.nn.Sequential(cresset.nn.Linear(96, 64), cresset.nn.Sequential(cresset.nn.GELU(), cresset.nn.Linear(64, 8)))
    x = cresset.randn(4, 96)
    expected = model(x).detach()
    out = quantize(model, bits)(x)
    assert {type(m).__name__ for m in model.modules() if hasattr(m, "weight")} == {"Q8Linear"}
    assert ((out - expected).norm() / expected.norm()) < (0.02 if bits == 8 else 0.25)


def test_what_it_cannot_do_says_so(w):
    with pytest.raises(NotImplementedError, match="exp.*CustomLayout1"):
        from_dense(w).exp()
    with pytest.raises(RuntimeError, match="finite values were required; row 2 has others"):
        w[2, 3] = float("inf")
        from_dense(w)
    with pytest.raises(RuntimeError, match="8 or 4 bits were required; 3 were given"):
        from_dense(w[:2], 3)
    with pytest.raises(RuntimeError, match="opaque tensors do not have strides"):
        from_dense(w[:2]).stride()
