"""Wrapper subclasses that answer for their sizes, strides, device and layout themselves."""

import pytest

import cresset as torch

ANSWERS = {
    "aten.sym_size.default": (5, 6), "aten.sym_stride.default": (7, 2), "aten.is_contiguous.default": False, "aten.dim.default": 2, "aten.sym_numel.default": 30,
    "aten.is_contiguous.memory_format": True, "aten.sym_storage_offset.default": 3, "prim.device.default": torch.device("meta"), "prim.layout.default": torch.strided,
}  # fmt: skip


def make(policy=None, device=False, layout=False, answers=ANSWERS):
    asked = []

    class Answering(torch.Tensor):
        @staticmethod
        def __new__(cls):
            return torch.Tensor._make_wrapper_subclass(
                cls, (3, 4), strides=(4, 1), dispatch_sizes_strides_policy=policy, dispatch_device=device, dispatch_layout=layout
            )

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            asked.append(str(func))
            return answers.get(str(func), NotImplemented)

    return Answering(), asked


def test_layouts_are_answered_by_number_too():
    for number, layout in ((0, torch.strided), (1, torch.sparse_coo), (2, torch.sparse_csr), (4, torch.sparse_csc)):
        x, _ = make(layout=True, answers={"prim.layout.default": number})
        assert x.layout is layout
    for wrong, words in ((99, "unsupported at::Layout"), (-1, "unsupported at::Layout"), ("x", "layout returned invalid type str, expected Layout")):
        x, _ = make(layout=True, answers={"prim.layout.default": wrong})
        with pytest.raises(RuntimeError, match=words):
            x.layout  # noqa: B018


QUESTIONS = {
    "size": (lambda x: x.size(), (5, 6), "aten.sym_size.default"),
    "shape": (lambda x: x.shape, (5, 6), "aten.sym_size.default"),
    "size of a dimension": (lambda x: x.size(-1), 6, "aten.sym_size.default"),
    "len": (len, 5, "aten.sym_size.default"),
    "dim": (lambda x: x.dim(), 2, "aten.dim.default"),
    "ndim": (lambda x: x.ndim, 2, "aten.dim.default"),
    "numel": (lambda x: x.numel(), 30, "aten.sym_numel.default"),
    "storage_offset": (lambda x: x.storage_offset(), 3, "aten.sym_storage_offset.default"),
    "stride": (lambda x: x.stride(), (7, 2), "aten.sym_stride.default"),
    "stride of a dimension": (lambda x: x.stride(1), 2, "aten.sym_stride.default"),
    "is_contiguous": (lambda x: x.is_contiguous(), False, "aten.is_contiguous.default"),
    "is_contiguous of a format": (lambda x: x.is_contiguous(memory_format=torch.channels_last), True, "aten.is_contiguous.memory_format"),
}
STRIDES = ("stride", "stride of a dimension", "is_contiguous", "is_contiguous of a format")


@pytest.mark.parametrize("name", QUESTIONS)
def test_sizes(name):
    ask, expected, operator = QUESTIONS[name]
    x, asked = make("sizes")
    result = ask(x)
    assert (tuple(result) if isinstance(result, tuple) else result) == expected and operator in asked


@pytest.mark.parametrize("name", QUESTIONS)
def test_strides(name):
    ask, expected, operator = QUESTIONS[name]
    x, asked = make("strides")
    result = ask(x)
    if name in STRIDES:
        assert result == expected and asked == [operator]
    else:
        assert result == ask(torch.empty(3, 4)) and asked == []


def test_device_and_layout():
    x, asked = make(device=True, layout=True)
    assert x.device.type == "meta" and x.is_meta and not x.is_cpu and x.layout is torch.strided
    assert set(asked) == {"prim.device.default", "prim.layout.default"}
    x, asked = make()
    assert x.device.type == "cpu" and x.layout is torch.strided and x.shape == (3, 4) and asked == []


def test_without_an_answer_the_construction_counts():
    x, _ = make("sizes", answers=dict.fromkeys(ANSWERS))
    assert x.shape == (3, 4) and x.stride() == (4, 1) and x.numel() == 12 and x.is_contiguous() and x.storage_offset() == 0
    with pytest.raises(RuntimeError, match="dim returned invalid type NoneType, expected int"):
        x.dim()
    x, _ = make(device=True, layout=True, answers=dict.fromkeys(ANSWERS))
    with pytest.raises(RuntimeError, match="layout returned invalid type NoneType, expected Layout"):
        x.layout
    with pytest.raises(RuntimeError, match="device returned invalid type NoneType"):
        x.device


@pytest.mark.parametrize(
    "name, answer, words",
    [
        ("aten.sym_size.default", 5, "size returned invalid type int"),
        ("aten.sym_size.default", (1, "x"), "size returned a tuple with a str, expected int"),
        ("aten.sym_size.default", (-1, 2), "size returned the negative number -1"),
        ("aten.sym_stride.default", (1,), "as many strides as sizes were required; 1 were given for 2 sizes"),
        ("aten.sym_numel.default", "x", "numel returned invalid type str, expected int"),
        ("aten.is_contiguous.default", 1, "is_contiguous returned invalid type int, expected bool"),
    ],
)
def test_wrong_answers(name, answer, words):
    x, _ = make("sizes", answers={**ANSWERS, name: answer})
    with pytest.raises(RuntimeError, match=words):
        x.size(), x.stride(), x.numel(), x.is_contiguous()


def test_refused_and_failing_answers_come_through():
    x, _ = make("sizes", device=True, answers={})
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'cresset.ops.aten.sym_size'"):
        x.shape
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'cresset.ops.prim.device'"):
        x.device


def test_answers_reach_kernels_written_in_cpp():
    """Shape rules ask too: an operator on a wrapper decomposes by the sizes that the class gives."""
    seen = []

    class Sized(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            self = torch.Tensor._make_wrapper_subclass(cls, (1,), dispatch_sizes_strides_policy="sizes")
            self.inner = inner
            return self

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            if func in (torch.ops.aten.sym_size.default, torch.ops.aten.sym_stride.default, torch.ops.aten.sym_numel.default, torch.ops.aten.dim.default):
                return func(args[0].inner)
            if "contiguous" in str(func):
                return func(args[0].inner, *args[1:])
            seen.append(str(func))
            return cls(func(*(a.inner if isinstance(a, Sized) else a for a in args), **(kwargs or {})))

    x = Sized(torch.ones(2, 3, 4))
    assert x.flatten(1).shape == (2, 12) and len(x) == 2 and x.ndim == 3
    y = x.reshape(6, 4)
    assert y.shape == (6, 4) and y.inner.shape == (6, 4) and seen


def test_operators_that_ask():
    x = torch.ones(2, 3)
    aten = torch.ops.aten
    assert aten.size.default(x) == [2, 3] and aten.size.int(x, -1) == 3 and aten.stride.default(x) == [3, 1] and aten.dim.default(x) == 2
    assert aten.numel.default(x) == 6 and aten.is_contiguous.default(x) and aten.storage_offset.default(x[1]) == 3
    assert aten.is_non_overlapping_and_dense.default(x.t()) and not aten.is_strides_like_format.default(x.t(), torch.contiguous_format)
    assert torch.ops.prim.device.default(x) == torch.device("cpu") and torch.ops.prim.layout(x) in (torch.strided, 0)


def test_modes_see_what_is_made_of_python_data():
    from cresset.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Log():
        torch.tensor([1.0, 2.0]), torch.as_tensor(3.0), torch.tensor(1.0, requires_grad=True), torch.ones(1).new_tensor([2.0])
    assert seen == ["aten.lift_fresh.default"] * 3 + ["aten.ones.default", "aten.lift_fresh.default"]


@pytest.mark.parametrize("policy", ["sizes", "strides"])
def test_instances_with_memory_answer_too(policy):
    asked = []

    class Answering(torch.Tensor):
        @staticmethod
        def __new__(cls, data):
            return torch.Tensor._make_subclass(cls, data, dispatch_sizes_strides_policy=policy, dispatch_device=True)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            asked.append(func.overloadpacket.__name__)
            return {"is_contiguous": False, "device": torch.device("meta"), "dim": 2, "sym_size": (3, 4)}.get(asked[-1], NotImplemented)

    e = Answering(torch.randn(3, 4))
    assert not e.is_contiguous() and e.device.type == "meta" and asked == ["is_contiguous", "device"]
    assert e.dim() == 2 and tuple(e.shape) == (3, 4) and asked[2:] == (["dim", "sym_size"] if policy == "sizes" else [])
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'cresset.ops.aten.sym_stride'"):
        e.stride()
    with pytest.raises(TypeError, match="must define __torch_dispatch__"):
        torch.Tensor._make_subclass(torch.nn.Parameter, torch.ones(1), dispatch_device=True)
