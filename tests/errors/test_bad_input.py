"""Bad input gets PyTorch's kind of exception with words that help, and leaves everything as it was."""

import pytest

import cresset
from cresset.library import Library

x = cresset.ones(2, 3)
CASES = [
    ("shapes of a product", lambda: x @ x, RuntimeError, "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"),
    ("dimensions of a bag", lambda: cresset.embedding_bag(x, cresset.zeros(2, 0, 0, dtype=cresset.int64), cresset.zeros(2, dtype=cresset.int64)), RuntimeError, "input has to be a 1D or 2D Tensor, but got Tensor of dimension 3"),
    ("shapes of a sum", lambda: x + cresset.ones(4), RuntimeError, "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1"),
    ("dtypes of a product", lambda: x @ cresset.ones(3, 2, dtype=cresset.float64), RuntimeError, "expected m1 and m2 to have the same dtype"),
    ("in-place category", lambda: cresset.ones(2, dtype=cresset.int64).add_(1.5), RuntimeError, "result type Float can't be cast to the desired output type Long"),
    ("unknown device", lambda: cresset.ones(1, device="gpu"), RuntimeError, "Expected one of cpu, cuda, ipu"),
    ("data of a meta tensor", lambda: cresset.ones(1, device="meta").item(), (RuntimeError, NotImplementedError), "meta"),
    ("negative size", lambda: cresset.empty(2, -1), RuntimeError, "Trying to create tensor with negative dimension -1: [2, -1]"),
    ("too much memory", lambda: cresset.empty(2**55), RuntimeError, "you tried to allocate"),
    ("index out of range", lambda: x[2], IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
    ("index of a 0-dim tensor", lambda: cresset.tensor(1.0)[0], IndexError, "invalid index of a 0-dim tensor"),
    ("float index", lambda: x[cresset.tensor([float("nan")])], IndexError, "tensors used as indices must be long"),
    ("embedding index", lambda: cresset.nn.functional.embedding(cresset.tensor([7]), x), IndexError, "index"),
    ("dimension out of range", lambda: x.sum(2), IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got 2)"),
    ("view of another size", lambda: x.view(4), RuntimeError, "shape '[4]' is invalid for input of size 6"),
    ("argument of another type", lambda: cresset.relu("x"), TypeError, "must be Tensor, not str"),
    ("unknown keyword", lambda: cresset.relu(x, nope=1), TypeError, "got an unexpected keyword argument 'nope'"),
    ("convolution channels", lambda: cresset.nn.functional.conv2d(cresset.ones(1, 3, 8, 8), cresset.ones(8, 1, 3, 3)), RuntimeError,
     "Given groups=1, weight of size [8, 1, 3, 3], expected input[1, 3, 8, 8] to have 1 channels, but got 3 channels instead"),
    ("class out of range", lambda: cresset.nn.functional.cross_entropy(x, cresset.tensor([0, 3])), IndexError, "Target 3 is out of bounds."),
    ("unknown operator", lambda: cresset.ops.aten.reluu, AttributeError, "reluu"),
    ("backward of a vector", lambda: cresset.ones(2, requires_grad=True).exp().backward(), RuntimeError, "grad can be implicitly created only for scalar outputs"),
    ("leaf in place", lambda: cresset.ones(2, requires_grad=True).add_(1), RuntimeError, "a leaf Variable that requires grad is being used in an in-place operation"),
]


@pytest.mark.parametrize("call, kind, words", [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_words(call, kind, words):
    with pytest.raises(kind) as caught:
        call()
    assert words in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 5


def test_saved_tensor_changed_in_place():
    a = cresset.ones(2, requires_grad=True)
    b = a.exp()
    c = b * b
    b += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        c.sum().backward()
    assert a.grad is None


def test_failed_writes_leave_the_target_alone():
    target = cresset.zeros(3)
    with pytest.raises(IndexError):
        target.index_copy_(0, cresset.tensor([0, 9]), cresset.ones(2))
    with pytest.raises(RuntimeError, match="index 9 is out of bounds for dimension 0 with size 3"):
        target.scatter_(0, cresset.tensor([0, 9]), cresset.ones(2))
    with pytest.raises(IndexError):
        target[cresset.tensor([0, 9])] = 1.0
    assert target.tolist() == [0.0, 0.0, 0.0]


def test_schemas_and_double_registration():
    lib = Library("badinput", "DEF")
    with pytest.raises(RuntimeError, match="unknown type specifier"):
        lib.define("f(Foo x) -> Tensor")
    lib.define("f(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="multiple times"):
        lib.define("f(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="Only a single TORCH_LIBRARY"):
        Library("badinput", "DEF")
    with pytest.raises(NotImplementedError, match="Could not run 'badinput::f'"):
        cresset.ops.badinput.f(x)


def test_a_kernel_that_throws():
    lib = Library("badinput2", "DEF")
    lib.define("f(Tensor x) -> Tensor")

    def fail(t):
        raise KeyError("mine")

    lib.impl("f", fail, "CPU")
    with pytest.raises(KeyError, match="mine"):
        cresset.ops.badinput2.f(x)
    assert (x + 1).sum().item() == 12.0
