"""_jit_pass_propagate_device: the devices are what PyTorch 2.13's pass says of the same functions, but where a comment says otherwise."""

from typing import List

import pytest

import cresset
from cresset import _C, jit

CPU, CUDA = cresset.device("cpu"), cresset.device("cuda")


def zeros_like(x):
    return cresset.zeros_like(x)


def zeros_like_on_cpu(x):
    return cresset.zeros_like(x, device="cpu")


def zeros(x):
    return cresset.zeros([2])


def zeros_on_cuda(x):
    return cresset.zeros([2], device="cuda")


def new_zeros(x):
    return x.new_zeros([2])


def new_zeros_on_cpu(x):
    return x.new_zeros([2], device="cpu")


def to_dtype(x):
    return x.to(cresset.float64)


def to_cpu(x):
    return x.cpu()


def to_cuda(x):
    return x.cuda()


def add(x, y):
    return x + y


def where(x, y):
    return cresset.where(x > 0, x, y)


def index(x, y):
    return x[y]


def second_of_max(x):
    return cresset.max(x, 0)[1]


def linear(x, y):
    return cresset.nn.functional.linear(x, y)


def view_as(x, y):
    return x.view_as(y)


def type_as(x, y):
    return x.type_as(y)


def plus_new_tensor(x):
    return x + cresset.tensor(3)


def either(x, y, z: bool):
    if z:
        return x + 3
    else:
        return y * 2


def raises_or(x, z: bool):
    if z:
        raise RuntimeError("no")
    else:
        return x * 2


def last(x, y, n: int):
    for _ in range(n):
        y = x
    return y


def moves_in_loop(x, n: int):
    for _ in range(n):
        x = x.cuda()
    return x


def moves_first(x, n: int):
    for i in range(n):
        x = x.cpu()
        for _ in range(i):
            x = x + 1
    return x


def size_as_tensor(x):
    return cresset._shape_as_tensor(x)


def to_other(x, y):
    return x.to(y)


def cat(x, y):
    return cresset.cat([x, y])


def cat_of_changed_list(x, y):
    parts = [x, x]
    parts.append(y)
    return cresset.cat(parts)


def append_to(parts: List[cresset.Tensor], x, y):
    parts.append(y)


def first_of_given_away(x, y):
    parts = [x, x]
    append_to(parts, x, y)
    return parts[0]


def chunk(x):
    return x.chunk(2)[0]


def device_on_graph(function, devices, sizes=()):
    graph = jit.script(function).graph
    _C._jit_pass_erase_shape_information(graph)
    inputs = list(graph.inputs())
    for value, device in zip(inputs, devices):
        if device is not None:
            value.setType(value.type().with_device(device))
    for value, size in zip(inputs, sizes):
        value.setType(value.type().with_sizes(size))
    _C._jit_pass_propagate_device(graph)
    assert not _C._jit_pass_propagate_device(graph)
    return next(graph.outputs()).type().device()


@pytest.mark.parametrize(
    ("function", "devices", "expected"),
    [
        (zeros_like, [CUDA], CUDA), (zeros_like_on_cpu, [CUDA], CPU), (zeros, [CUDA], None), (zeros_on_cuda, [CPU], CUDA),
        (new_zeros, [CUDA], CUDA), (new_zeros_on_cpu, [CUDA], CPU), (to_dtype, [CUDA], CUDA), (to_cpu, [None], CPU), (to_cuda, [None], CUDA),
        (add, [CPU, CPU], CPU), (add, [CPU, None], None), (add, [CPU, CUDA], None), (where, [CUDA, CUDA], CUDA), (index, [CUDA, CPU], CUDA),
        (second_of_max, [CUDA], CUDA), (linear, [CUDA, CUDA], CUDA), (linear, [CUDA, CPU], None), (view_as, [CUDA, None], CUDA),
        (view_as, [None, CUDA], None), (type_as, [CUDA, None], None), (type_as, [None, CUDA], CUDA), (plus_new_tensor, [CPU], None),
        (either, [CPU, CPU], CPU), (either, [CPU, CUDA], None), (last, [CPU, CPU], CPU), (last, [CPU, CUDA], None), (last, [CPU, None], None),
        (moves_in_loop, [CPU], None), (moves_in_loop, [CUDA], CUDA), (moves_in_loop, [None], None), (moves_first, [CPU], CPU),
        (moves_first, [CUDA], None),
    ],
)  # fmt: skip
def test_devices(function, devices, expected):
    assert device_on_graph(function, devices) == expected


@pytest.mark.parametrize(
    ("function", "devices", "expected"),
    [
        (size_as_tensor, [CUDA], CPU), (to_other, [CPU, CUDA], CUDA), (cat, [CUDA, CUDA], CUDA), (chunk, [CUDA], CUDA), (cat, [CPU, CUDA], None),
        (raises_or, [CUDA], CUDA),
    ],
)  # fmt: skip
def test_devices_of_which_pytorch_says_nothing(function, devices, expected):
    assert device_on_graph(function, devices) == expected


@pytest.mark.parametrize("function", [cat_of_changed_list, first_of_given_away])
def test_a_list_that_changes_says_nothing(function):
    assert device_on_graph(function, [CPU, CUDA]) is None


@pytest.mark.parametrize(
    ("sizes", "devices", "expected"),
    [
        ([[1, 2, 2], [2, 2]], [CPU, CUDA], None), ([[1, 2, 2], []], [CUDA, CPU], CUDA), ([[], [2]], [CPU, CUDA], CUDA),
        ([[], []], [CPU, CUDA], CUDA), ([[1, 2, 2], []], [CPU, CUDA], None), ([[], []], [CPU, CPU], CPU),
    ],
)  # fmt: skip
def test_a_cpu_tensor_without_dimensions_yields(sizes, devices, expected):
    assert device_on_graph(add, devices, sizes) == expected


@pytest.mark.parametrize("known", [(True, False), (False, True), (False, False), (True, True)])
@pytest.mark.parametrize("sizes", [((1, 2, 2), (2, 2)), ((1, 2, 2), ()), ((), ())])
def test_inferred_types_have_a_device_where_all_operands_have(known, sizes):
    def mul(x, y):
        return x * y

    graph = cresset.jit.script(mul).graph
    for value, size, on_cpu in zip(graph.inputs(), sizes, known):
        value.setType((value.type().with_device(cresset.device("cpu")) if on_cpu else value.type()).with_sizes(size))
    cresset._C._jit_pass_propagate_shapes_on_graph(graph)
    cresset._C._jit_pass_propagate_device(graph)
    assert (next(graph.outputs()).type().device() is not None) == all(known)
