"""Comparing what a tensor is besides its values."""

import cresset

__all__ = ["assert_eq", "assert_metadata_eq"]


def assert_eq(a, b):
    """AssertionError unless a == b."""
    assert a == b, f"{a} != {b}"


def assert_metadata_eq(assert_eq, m1, m2, *, skip_symbolic=False, skip_leaf=False):
    """Call assert_eq(of m1, of m2) for everything that tensors are but their values and devices: sizes, type, strides, flags, the gradient, the base.

    With skip_leaf, whether they are leaves is not compared.
    """
    assert_eq(m1.dtype, m2.dtype)
    if not skip_symbolic:
        assert_eq(m1.shape, m2.shape)
    assert_eq(m1.requires_grad, m2.requires_grad)
    if not skip_leaf:
        assert_eq(m1.is_leaf, m2.is_leaf)
    assert_eq(m1.grad_fn is None, m2.grad_fn is None)
    assert_eq(m1.is_inference(), m2.is_inference())
    assert_eq(m1.is_conj(), m2.is_conj())
    assert_eq(m1.is_neg(), m2.is_neg())
    assert_eq(m1.grad is not None, m2.grad is not None)
    if m1.grad is not None and m2.grad is not None:
        assert_metadata_eq(assert_eq, m1.grad, m2.grad, skip_symbolic=skip_symbolic, skip_leaf=skip_leaf)
    assert_eq(m1._is_view(), m2._is_view())
    if m1._is_view() and m2._is_view():
        assert_metadata_eq(assert_eq, m1._base, m2._base, skip_symbolic=skip_symbolic, skip_leaf=skip_leaf)
    if not skip_symbolic and m1.layout == cresset.strided:
        assert_eq(m1.stride(), m2.stride())
        assert_eq(m1.storage_offset(), m2.storage_offset())
