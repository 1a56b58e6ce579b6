"""Errors that have more to say than PyTorch's keep its words, and have the rest as a note."""

import pytest

import cresset
from cresset._hints import with_hint

DEVICES = (
    "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, meta, hpu, mtia, privateuseone "
    "device type at start of device string: zz"
)


class Seen(cresset.Tensor):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


def wrapped():
    return cresset.Tensor._make_wrapper_subclass(Seen, (2,))


@pytest.mark.parametrize(
    ("call", "words", "hint"),
    [
        (lambda: cresset.device("zz"), DEVICES, "`cresset doctor` lists the devices"),
        (lambda: cresset.ones(1, device="zz:1"), DEVICES, "No installed plug-in gives this name"),
        (lambda: cresset._C._dispatch_key_parse("NOPE"), "could not parse dispatch key: NOPE", "Keys are CPU"),
        (lambda: wrapped().tolist(), ".tolist() is not supported for tensor subclasses, got Seen", "Take the list"),
        (lambda: wrapped().numpy(), ".numpy() is not supported for tensor subclasses.", "Take the array"),
        (lambda: cresset.ops.aten.nope, "'_OpNamespace' 'aten' object has no attribute 'nope'", "Did you mean: "),
        (lambda: cresset.ops.load_library("/nope.so"), "Could not load this library: /nope.so", "cannot open shared object file"),
    ],
)
def test_words_and_hint(call, words, hint):
    with pytest.raises(Exception) as caught:
        call()
    assert str(caught.value) == words
    assert any(hint in note for note in caught.value.__notes__)


def test_operators_without_a_kernel_for_meta():
    library = cresset.library.Library("hints", "FRAGMENT")
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", lambda x: x.clone(), "CPU")
    with pytest.raises(NotImplementedError, match=r"^hints::f: attempted to run this operator with Meta tensors, but there was no fake impl") as caught:
        cresset.ops.hints.f(cresset.ones(1, device="meta"))
    assert "Kernels exist for: CPU." in caught.value.__notes__[0]
    library._destroy()


def test_without_a_hint_there_is_no_note():
    assert not hasattr(with_hint(ValueError("x"), ""), "__notes__")
