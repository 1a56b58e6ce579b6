"""What PyTorch 2.13 says about products of different dtypes, word for word."""

import pytest

import cresset
import cresset.nn.functional as F

a = cresset.ones(2, 2)
b = a.long()
c = cresset.ones(2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: a @ b, "expected m1 and m2 to have the same dtype, but got: float != long int"),
        (lambda: a.half() @ a.bfloat16(), "expected m1 and m2 to have the same dtype, but got: c10::Half != c10::BFloat16"),
        (lambda: F.linear(b, a), "expected m1 and m2 to have the same dtype, but got: long int != float"),
        (lambda: F.linear(b, a, c), "mat1 and mat2 must have the same dtype, but got Long and Float"),
        (lambda: cresset.addmm(c, a, b), "self and mat2 must have the same dtype, but got Float and Long"),
        (lambda: cresset.addmm(c.long(), a, a), "self and mat2 must have the same dtype, but got Long and Float"),
        (lambda: cresset.mv(a, c.long()), "addmv input tensors must have the same dtype, but got Long, Float, and Long"),
        (lambda: cresset.addmv(c, a, c.long()), "addmv input tensors must have the same dtype, but got Float, Float, and Long"),
        (lambda: cresset.bmm(a[None], b[None]), "expected scalar type Float but found Long"),
        (lambda: cresset.dot(c, c.long()), "dot : expected both vectors to have same dtype, but found Float and Long"),
    ],
)
def test_words(call, words):
    with pytest.raises(RuntimeError) as caught:
        call()
    assert str(caught.value) == words


@pytest.mark.parametrize(
    ("types", "names"),
    [
        ((cresset.int32, cresset.int64), ("int", "long int")),
        ((cresset.float16, cresset.complex64), ("c10::Half", "c10::complex<float>")),
        ((cresset.bool, cresset.uint8), ("bool", "unsigned char")),
    ],
)
def test_multi_dot_of_several_dtypes(types, names):
    with pytest.raises(RuntimeError) as caught:
        cresset.linalg.multi_dot([cresset.ones(2, 2, dtype=t) for t in types])
    assert str(caught.value) == f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {names[0]} and tensor 1 {names[1]}"
