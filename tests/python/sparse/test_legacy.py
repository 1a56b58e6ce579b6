"""Constructors of sparse tensors from before dtypes, as PyTorch 2.13 answers."""

import cresset as torch
import pytest

I, V = torch.tensor([[0, 1], [1, 0]]), torch.tensor([1.0, 2.0])


@pytest.mark.filterwarnings("ignore:torch.sparse")
def test_forms():
    make = torch.sparse.FloatTensor
    for made in (make(I, V), make(I, V, (2, 2)), make(I, V, device="cpu"), make(indices=I, values=V), make(I, values=V, size=torch.Size([2, 2]))):
        assert made.layout == torch.sparse_coo and made.to_dense().tolist() == [[0.0, 1.0], [2.0, 0.0]]
    assert make(I, V, [2, 3]).shape == (2, 3) and make(2, 3).shape == make(torch.Size([2, 3])).shape == (2, 3) and make().shape == (0,)
    assert torch.sparse.DoubleTensor(2, 3).dtype == torch.float64 and torch.sparse.LongTensor(3).dtype == torch.int64
    assert torch.sparse.DoubleTensor(I, V).dtype == torch.float32  # that of the values


def test_types():
    s = V.to_sparse()
    assert isinstance(s, torch.sparse.FloatTensor) and not isinstance(V, torch.sparse.FloatTensor) and not isinstance(s, torch.FloatTensor)
    assert s.type() == "torch.sparse.FloatTensor" and V.type() == "torch.FloatTensor"
    for kind in (torch.sparse.DoubleTensor, "torch.sparse.DoubleTensor"):
        assert s.type(kind).dtype == torch.float64 and s.type(kind).layout == torch.sparse_coo
    kind = torch.sparse.HalfTensor
    assert (kind.dtype, kind.layout, kind.is_sparse, kind.is_cuda, kind.__name__) == (torch.float16, torch.sparse_coo, True, False, "HalfTensor")
    assert not hasattr(torch.sparse, "BoolTensor")


REFUSED = {
    "a list": (([2, 3],), TypeError, r"torch.sparse.SparseTensor\(sequence\) only accepts sizes"),
    "a tensor": ((V,), TypeError, r"new\(\) received an invalid combination of arguments - got \(Tensor\)"),
    "too many": ((I, V, (2, 2), 1), TypeError, r"new\(\) received an invalid combination of arguments"),
}


@pytest.mark.filterwarnings("ignore:torch.sparse")
@pytest.mark.parametrize("what", REFUSED)
def test_refusals(what):
    args, error, words = REFUSED[what]
    with pytest.raises(error, match=words):
        torch.sparse.FloatTensor(*args)


def test_words():
    with pytest.warns(UserWarning, match="torch.sparse.FloatTensor is deprecated"):
        torch.sparse.FloatTensor(2)
    with pytest.raises(TypeError, match="received an invalid combination of arguments - got requires_grad by name"):
        torch.sparse.FloatTensor(I, V, requires_grad=True)
    with pytest.raises(RuntimeError, match="legacy constructor expects device type: cpu but device type: meta was passed"):
        torch.sparse.FloatTensor(2, device="meta")
