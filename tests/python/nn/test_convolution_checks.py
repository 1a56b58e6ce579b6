"""Refusals of convolutions and of what stands beside them, in PyTorch 2.13's words."""

import re

import cresset
import cresset.nn.functional as F
import pytest

ones = cresset.ones


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: F.conv1d(ones(1, 1, 3), ones(1, 1, 0)), "kernel size should be greater than zero, but got kernel_height: 1 kernel_width: 0"),
        (lambda: F.conv2d(ones(1, 1, 3, 3), ones(1, 1, 0, 1)), "kernel size should be greater than zero, but got kernel_height: 0 kernel_width: 1"),
        (lambda: F.conv3d(ones(1, 1, 3, 3, 3), ones(1, 1, 0, 1, 2)), "kernel size should be greater than zero, but got: 0 x 1 x 2 (TxHxW)"),
        (lambda: F.conv_transpose2d(ones(1, 1, 3, 3), ones(1, 1, 0, 0)), "kernel size should be greater than zero, but got kernel_height: 0"),
        (lambda: cresset.nn.Conv2d(1, 1, 0)(ones(1, 1, 2, 2)), "kernel size should be greater than zero"),
        (lambda: F.conv2d(ones(1, 1, 3, 3), ones(0, 1, 1, 1)), "expected weight to be at least 1 at dimension 0, but got weight of size [0, 1, 1, 1]"),
        (lambda: F.batch_norm(ones(1, 3, 2), ones(2), ones(2), ones(2)), "running_mean should contain 3 elements not 2"),
        (lambda: F.bilinear(ones(2), ones(3), ones(1, 3, 2)), "bilinear(): input1 size does not match weight size: got 2 but expected 3"),
        (lambda: F.bilinear(ones(1, 2), ones(2, 2), ones(1, 2, 2)), "bilinear(): input batch dimensions do not match at dim 0: got 1 and 2"),
        (lambda: F.interpolate(ones(1, 1, 2), size=0), "greater than 0, but got input (W: 2) and output (W: 0)"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(RuntimeError, match=re.escape(words)):
        call()


def test_groups_of_one_value():
    with pytest.raises(ValueError, match=re.escape("got input size [1, 2]")):
        F.group_norm(ones(1, 3), 2)


def test_what_is_said_once():
    x = ones(1, requires_grad=True)
    cresset.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="Using padding='same' with even kernel lengths and odd dilation"):
            F.conv1d(ones(1, 1, 3), ones(1, 1, 2), padding="same")
        with pytest.warns(UserWarning, match="requires_grad=True to a scalar may lead to unexpected behavior"):
            assert float(x) == 1
    finally:
        cresset.set_warn_always(False)
