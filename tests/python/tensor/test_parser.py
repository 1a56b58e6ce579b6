"""How calls are matched against operators, and the words of the errors."""

import pytest

import cresset as torch


@pytest.fixture
def x():
    return torch.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda x: torch.relu("a"), r"relu\(\): argument 'input' \(position 1\) must be Tensor, not str"),
        (lambda x: torch.relu(x, 1, 2), r"relu\(\) takes 1 positional argument but 3 were given"),
        (lambda x: torch.relu(), r'relu\(\) missing 1 required positional arguments: "input"'),
        (lambda x: torch.relu(x, foo=1), r"relu\(\) got an unexpected keyword argument 'foo'"),
        (lambda x: torch.add(x, "a"), r"add\(\): argument 'other' \(position 2\) must be Tensor, not str"),
        (lambda x: x.add("a"), r"add\(\): argument 'other' \(position 1\) must be Tensor, not str"),
        (lambda x: torch.add(x, 1, alpha="s"), r"add\(\): argument 'alpha' must be Number, not str"),
        (lambda x: torch.transpose(x, 0), r'transpose\(\) missing 1 required positional arguments: "dim1"'),
        (lambda x: torch.transpose(x, 0, 1, dim1=1), r"transpose\(\) got multiple values for argument 'dim1'"),
        (lambda x: torch.transpose(x, torch.tensor(0.0), 1), r"argument 'dim0' \(position 2\) must be int, not Tensor"),
        (lambda x: x.transpose(True, 1), r"argument 'dim0' \(position 1\) must be int, not bool"),
        (lambda x: torch.cat(x), r"cat\(\): argument 'tensors' \(position 1\) must be tuple of Tensors, not Tensor"),
        (lambda x: torch.cat([x, 1]), r"expected Tensor as element 1 in argument 0, but got int"),
        (lambda x: x.size("a"), r"size\(\): argument 'dim' \(position 1\) must be int, not str"),
        (lambda x: x.requires_grad_(3), r"requires_grad_\(\): argument 'requires_grad' \(position 1\) must be bool, not int"),
        (lambda x: torch.empty(2, requires_grad=1), r"empty\(\): argument 'requires_grad' must be bool, not int"),
        (lambda x: torch.tensor(), r'tensor\(\) missing 1 required positional arguments: "data"'),
        (lambda x: torch.tensor(1, foo=2), r"tensor\(\) got an unexpected keyword argument 'foo'"),
        (lambda x: x.numpy(1, 2, 3), r"numpy\(\) takes 0 positional arguments but 3 were given"),
        (lambda x: x.add(), r"add\(\) missing 1 required positional arguments: \"other\""),
    ],
)
def test_errors(x, call, words):
    with pytest.raises(TypeError, match=words):
        call(x)


def test_several_signatures_are_listed(x):
    with pytest.raises(TypeError) as caught:
        torch.arange(3.0, "a")
    text = str(caught.value)
    assert text.startswith("arange() received an invalid combination of arguments - got (float, str), but expected one of:\n * (Number end, *,")
    assert "Number start, Number end, Number step = 1" in text
    with pytest.raises(TypeError, match=r"view\(\) received an invalid combination of arguments - got \(str\)"):
        x.view("a")


def test_sizes_one_by_one_or_together(x):
    for y in (x.view(3, 2), x.view((3, 2)), x.view([3, 2]), x.view(size=(3, 2)), x.view(torch.Size([3, 2])), x.reshape(3, -1)):
        assert y.shape == (3, 2)
    assert x.permute(1, 0).shape == x.permute((1, 0)).shape == (3, 2)
    assert x.expand(2, 2, 3).shape == (2, 2, 3)
    assert x.repeat(2, 1).shape == (4, 3)
    assert x.view(torch.int32).dtype is torch.int32


def test_numpy_names(x):
    assert x.sum(axis=0).tolist() == x.sum(0).tolist()
    assert x.sum(dim=1, keepdims=True).shape == (2, 1)
    assert torch.sum(input=x).item() == 15
    assert torch.add(x=x, other=1).tolist() == (x + 1).tolist()


def test_one_int_for_a_list(x):
    assert x.sum((0, 1)).item() == 15 and x.sum([0]).shape == (3,)
    assert torch.nn.functional.max_pool2d(torch.ones(1, 1, 4, 4), 2).shape == (1, 1, 2, 2)


def test_out(x):
    out = torch.empty(2, 3)
    assert torch.add(x, 1, out=out) is out
    assert out.tolist() == (x + 1).tolist()
    assert torch.add(x, 1, out=None).tolist() == out.tolist()
    values, indices = torch.empty(0), torch.empty(0, dtype=torch.int64)
    result = torch.max(x, 1, out=(values, indices))
    assert values.tolist() == [2.0, 5.0] and indices.tolist() == [2, 2]
    assert result[0] is values and result.indices is indices


def test_named_results(x):
    result = x.max(1)
    assert result.values.tolist() == [2.0, 5.0] and result.indices.tolist() == [2, 2]
    values, indices = result
    assert values is result[0] and indices is result[1]
    assert type(result).__name__ == "max" and type(result) is torch.return_types.max
    assert repr(result).startswith("cresset.return_types.max(\nvalues=tensor([2., 5.]),\nindices=")


def test_lists_come_as_tuples(x):
    assert type(x.unbind()) is tuple and type(torch.split(x, 1)) is tuple
    assert type(torch.ops.aten.unbind.int(x)) is list


def test_numbers_of_python_and_numpy(x):
    np = pytest.importorskip("numpy")
    for two in (2, 2.0, np.float32(2), np.int64(2), torch.tensor(2)):
        assert torch.mul(x, two).tolist() == (x * 2).tolist()
        assert x.mul(two).dtype is torch.float32
    assert torch.add(2, x).tolist() == (x + 2).tolist()
    assert torch.add(2, 3).item() == 5
    assert torch.pow(2, torch.arange(3)).tolist() == [1, 2, 4]
    assert torch.transpose(x, torch.tensor(0), np.int64(1)).shape == (3, 2)
    assert torch.full((2,), torch.tensor(3)).tolist() == [3, 3]


def test_dtypes_of_python():
    assert torch.zeros(1, dtype=float).dtype is torch.float64
    assert torch.zeros(1, dtype=int).dtype is torch.int64
    assert torch.zeros(1, dtype=bool).dtype is torch.bool
    assert torch.ones(1).to(complex).dtype is torch.complex128


def test_to(x):
    assert x.to("cpu") is x and x.to(torch.float32) is x and x.to(x) is x
    assert x.to(torch.float32, copy=True) is not x
    assert x.to("cpu", torch.float64).dtype is torch.float64
    assert x.to(dtype=torch.int32).dtype is torch.int32
    assert x.to(torch.zeros(1, dtype=torch.int64)).dtype is torch.int64
    assert x.to("meta").is_meta
    with pytest.raises(TypeError, match=r"to\(\) received an invalid combination"):
        x.to([1])
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        x.to("meta").to("cpu")


def test_functions_describe_themselves():
    assert torch.add.__name__ == "add" and torch.Tensor.add.__qualname__ == "Tensor.add"
    assert "add(Tensor input, Tensor other, *, Number alpha = 1, Tensor out = None)" in torch.add.__doc__
    assert torch.add._overloads[0] == "aten::add.Tensor"


def test_a_method_needs_a_tensor():
    with pytest.raises(TypeError, match="doesn't apply to a 'int' object"):
        torch.Tensor.add(1, 2)
    with pytest.raises(TypeError, match="needs an argument"):
        torch.Tensor.add()


def test_the_one_signature_of_so_many_arguments_complains():
    with pytest.raises(TypeError, match=r"^arange\(\): argument 'end' \(position 1\) must be Number, not str$"):
        torch.arange("a")
    with pytest.raises(TypeError, match=r"^randint\(\): argument 'size' \(position 2\) must be tuple of ints, not int$"):
        torch.randint(5, 2)


def test_types_in_messages():
    numpy = pytest.importorskip("numpy")
    for call, words in [
        (lambda: torch.ones(1).to(torch.float32, "a"), r"got \(torch.dtype, str\), but"),
        (lambda: torch.ones(2).view([2.5, 2]), r"got \(list\), but"),
        (lambda: torch.relu(numpy.ones(2)), r"must be Tensor, not numpy.ndarray"),
        (lambda: torch.relu(torch.float32), r"must be Tensor, not torch.dtype"),
        (lambda: torch.relu(torch.relu), r"must be Tensor, not builtin_function_or_method"),
        (lambda: torch.cat([torch.ones(1), numpy.float64(1)]), r"expected Tensor as element 1 in argument 0, but got numpy.float64"),
    ]:
        with pytest.raises(TypeError, match=words):
            call()


def test_numbers_of_numpy_in_lists_of_floats():
    numpy = pytest.importorskip("numpy")
    image = torch.ones(1, 1, 2, 2)
    for factors in ([numpy.float32(2), 1], [numpy.int64(2), 1.0], [2.0, numpy.bool_(True)]):
        assert torch._C._nn.upsample_nearest2d(image, None, factors).shape == (1, 1, 4, 2)
    with pytest.raises(TypeError, match="upsample_nearest2d"):
        torch._C._nn.upsample_nearest2d(image, None, [torch.tensor(2.0), 1.0])
