"""Operators that formulas call can be called by anyone: arguments that do not fit each other are refused before memory is read."""

import cresset
import pytest
from cresset import ones

aten = cresset.ops.aten


def convolution(grad=(1, 2, 3, 3), x=(1, 2, 4, 4), w=(2, 2, 2, 2), stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, transposed=False):
    return aten.convolution_backward(
        ones(grad), ones(x), ones(w), None, list(stride), list(padding), list(dilation), transposed, [0, 0], groups, [True] * 3
    )


def layer_norm(grad=(2, 3), shape=(3,), mean=(2, 1), rstd=(2, 1), weight=(3,)):
    return aten.native_layer_norm_backward(ones(grad), ones(2, 3), list(shape), ones(mean), ones(rstd), ones(weight), None, [True] * 3)


def batch_norm(grad=(2, 3), x=(2, 3), weight=(3,), mean=(3,), deviation=(3,), train=True):
    stats = [None if s is None else ones(s) for s in (mean, deviation)]
    running, saved = ([None, None], stats) if train else (stats, [None, None])
    return aten.native_batch_norm_backward(ones(grad), ones(x), ones(weight), *running, *saved, train, 1e-5, [True] * 3)


def unfold(grad=(3, 2), sizes=(4,), dim=0, size=2, step=1):
    return aten.unfold_backward(ones(grad), list(sizes), dim, size, step)


GRAD = "expected grad_out"
REFUSED = [
    (lambda: convolution(grad=(1, 2, 30, 30)), r"expected grad_output to have shape \[1, 2, 3, 3\], but got \[1, 2, 30, 30\]"),
    (lambda: convolution(grad=(1, 2, 1, 1)), "expected grad_output"),
    (lambda: convolution(grad=(7, 2, 3, 3)), "expected grad_output"),
    (lambda: convolution(grad=(1, 5, 3, 3)), "expected grad_output"),
    (lambda: convolution(grad=(1, 2, 3)), "expected grad_output"),
    (lambda: convolution(x=(1, 2, 4)), "Expected|expected|dimension"),
    (lambda: convolution(x=(1, 3, 4, 4)), "channels"),
    (lambda: convolution(w=(2, 2, 2)), "Expected|expected|dimension"),
    (lambda: convolution((), (), (), (), (), ()), "dimension"),
    (lambda: convolution(groups=0), "groups"),
    (lambda: convolution(stride=(0, 0)), "stride"),
    (lambda: convolution(stride=()), "stride"),
    (lambda: convolution(dilation=(0, 0)), "dilation"),
    (lambda: convolution(padding=(-1, -1)), "padding"),
    (lambda: convolution(padding=(2**62, 2**62)), "."),
    (lambda: convolution(transposed=True), "expected grad_output"),
    (lambda: layer_norm(grad=(1,)), r"expected grad_out to have shape \[2, 3\], but got \[1\]"),
    (lambda: layer_norm(shape=(30,)), "normalized_shape"),
    (lambda: layer_norm(shape=()), "normalized_shape"),
    (lambda: layer_norm(shape=(1, 2, 3)), "normalized_shape"),
    (lambda: layer_norm(mean=(1,)), "mean of 2 elements was required; 1 was given"),
    (lambda: layer_norm(rstd=(0,)), "rstd of 2 elements was required; 0 was given"),
    (lambda: layer_norm(weight=(1,)), "weight"),
    (lambda: batch_norm(grad=(1,)), GRAD),
    (lambda: batch_norm(grad=(3,), x=(3,)), "at least 2 dimensions was required; 1 were given"),
    (lambda: batch_norm(weight=(1,)), "weight should contain 3 elements not 1"),
    (lambda: batch_norm(mean=(1,)), "save_mean of 3 elements was required; 1 was given"),
    (lambda: batch_norm(mean=None), "save_mean of 3 elements was required; none was given"),
    (lambda: batch_norm(deviation=None, train=False), "running_var of 3 elements was required; none was given"),
    (lambda: batch_norm(deviation=(1,), train=False), "running_var of 3 elements was required; 1 was given"),
    (lambda: unfold(grad=(2, 2)), r"expected grad_in to have shape \[3, 2\], but got \[2, 2\]"),
    (lambda: unfold(sizes=(400,)), "expected grad_in"),
    (lambda: unfold(sizes=(1,)), "maximum size for tensor"),
    (lambda: unfold(step=0), "step is 0 but must be > 0"),
    (lambda: unfold(size=-2), "size is -2"),
    (lambda: aten._local_scalar_dense(ones(0)), "Empty tensor not supported"),
    (lambda: aten._copy_from(ones(2), ones(3)), r"a source that expands to \[3\] was required; \[2\] was given"),
    (lambda: cresset.pixel_shuffle(ones(1, 4, 2, 2), 2**32), "upscale_factor is too large"),
    (lambda: cresset.pixel_unshuffle(ones(1, 4, 0, 0), 2**32), "downscale_factor is too large"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused(number):
    call, words = REFUSED[number]
    with pytest.raises((RuntimeError, ValueError, IndexError), match=words):
        call()


def test_what_fits_passes():
    assert [t.shape for t in convolution()] == [(1, 2, 4, 4), (2, 2, 2, 2), (2,)]
    assert [t.shape for t in layer_norm()] == [(2, 3), (3,), (3,)]
    assert [t.shape for t in batch_norm()] == [t.shape for t in batch_norm(train=False)] == [(2, 3), (3,), (3,)]
    assert unfold().tolist() == [1, 2, 2, 1]
    # A gradient of another type is converted, not read as bytes of the wrong size.
    grads = aten.convolution_backward(ones(1, 2, 3, 3).double(), ones(1, 2, 4, 4), ones(2, 2, 2, 2), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True] * 3)
    assert all(g.equal(h) for g, h in zip(grads, convolution(), strict=True))


def test_results_whose_size_only_values_know():
    assert aten.masked_scatter_backward(ones(4, 6, device="meta"), ones(4, 6, device="meta", dtype=cresset.bool), [12]).shape == (12,)
    # The slices' inverse and counts are there whatever was asked, as in PyTorch.
    assert [t.tolist() for t in aten.unique_consecutive(ones(5, 2), dim=1)] == [[[1]] * 5, [0, 0], [2]]


def test_a_gradient_of_glu_has_the_size_of_a_half():
    with pytest.raises(RuntimeError, match=r"glu_backward: a gradient of size \[1, 3\] was required; \[2, 3\] was given"):
        aten.glu_backward(ones(2, 3), ones(2, 3), 0)


def test_wide_unsigned_numbers_are_not_counted():
    with pytest.raises(NotImplementedError, match='"bincount_cpu" not implemented for \'UInt32\''):
        cresset.bincount(cresset.tensor([4294967293], dtype=cresset.uint32))
