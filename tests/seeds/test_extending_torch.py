"""The samples of the page "Extending torch" as they are written there, with the results it prints."""

import functools
import inspect
import logging

import pytest

import cresset as torch


def registry():
    """HANDLED_FUNCTIONS and the decorator `implements`."""
    handled = {}

    def implements(torch_function):
        """Register a torch function override for ScalarTensor"""

        @functools.wraps(torch_function)
        def decorator(func):
            handled[torch_function] = func
            return func

        return decorator

    return handled, implements


class Scalar:
    """ScalarTensor without the protocol."""

    def __init__(self, N, value):
        self._N = N
        self._value = value

    def __repr__(self):
        return "DiagonalTensor(N={}, value={})".format(self._N, self._value)

    def tensor(self):
        return self._value * torch.eye(self._N)


def scalar_tensor(as_classmethod, fall_back):
    HANDLED_FUNCTIONS, implements = registry()

    def answer(func, types, args, kwargs):
        if kwargs is None:
            kwargs = {}
        if func not in HANDLED_FUNCTIONS or not all(issubclass(t, (torch.Tensor, ScalarTensor)) for t in types):
            if not fall_back:
                return NotImplemented
            args = [a.tensor() if hasattr(a, "tensor") else a for a in args]
            return func(*args, **kwargs)
        return HANDLED_FUNCTIONS[func](*args, **kwargs)

    class ScalarTensor(Scalar):
        if as_classmethod:

            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return answer(func, types, args, kwargs)

        else:

            def __torch_function__(self, func, types, args=(), kwargs=None):
                return answer(func, types, args, kwargs)

    def ensure_tensor(data):
        if isinstance(data, ScalarTensor):
            return data.tensor()
        return torch.as_tensor(data)

    @implements(torch.mean)
    def mean(input):
        return float(input._value) / input._N

    @implements(torch.add)
    def add(input, other):
        try:
            if input._N == other._N:
                return ScalarTensor(input._N, input._value + other._value)
            else:
                raise ValueError("Shape mismatch!")
        except AttributeError:
            return torch.add(ensure_tensor(input), ensure_tensor(other))

    return ScalarTensor


def test_scalar_without_protocol():
    d = Scalar(5, 2)
    assert repr(d) == "DiagonalTensor(N=5, value=2)"
    assert repr(d.tensor()) == (
        "tensor([[2., 0., 0., 0., 0.],\n        [0., 2., 0., 0., 0.],\n        [0., 0., 2., 0., 0.],\n        [0., 0., 0., 2., 0.],\n"
        "        [0., 0., 0., 0., 2.]])"
    )
    with pytest.raises(TypeError) as error:
        torch.mean(d)
    assert str(error.value) == "mean(): argument 'input' (position 1) must be Tensor, not Scalar"


@pytest.mark.filterwarnings("ignore:Defining your `__torch_function__` as a plain method")
@pytest.mark.parametrize("as_classmethod", [False, True], ids=["method", "classmethod"])
def test_scalar_tensor(as_classmethod):
    ScalarTensor = scalar_tensor(as_classmethod, fall_back=False)
    assert torch.mean(ScalarTensor(5, 2)) == 0.4
    s, t = ScalarTensor(2, 2), torch.tensor([[1, 1], [1, 1]])
    assert repr(torch.add(s, s)) == "DiagonalTensor(N=2, value=4)"
    assert repr(torch.add(s, t)) == "tensor([[3., 1.],\n        [1., 3.]])"
    with pytest.raises(TypeError, match=r"add\(\) got an unexpected keyword argument 'alpha'"):
        torch.add(s, s, alpha=2)
    with pytest.raises(TypeError) as error:
        torch.mul(s, 3)
    assert str(error.value) == "no implementation found for 'torch.mul' on types that implement __torch_function__: [ScalarTensor]"


@pytest.mark.filterwarnings("ignore:Defining your `__torch_function__` as a plain method")
@pytest.mark.parametrize("as_classmethod", [False, True], ids=["method", "classmethod"])
def test_scalar_tensor_that_falls_back(as_classmethod):
    s = scalar_tensor(as_classmethod, fall_back=True)(2, 2)
    assert repr(torch.mul(s, s)) == "tensor([[4., 0.],\n        [0., 4.]])"


class MetadataMethod(object):
    def __init__(self, data, metadata=None, **kwargs):
        self._t = torch.as_tensor(data, **kwargs)
        self._metadata = metadata

    def __repr__(self):
        return "Metadata:\n{}\n\ndata:\n{}".format(self._metadata, self._t)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if kwargs is None:
            kwargs = {}
        args = [a._t if hasattr(a, "_t") else a for a in args]
        ret = func(*args, **kwargs)
        return MetadataMethod(ret, metadata=self._metadata)


class MetadataClassmethod(MetadataMethod):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if kwargs is None:
            kwargs = {}
        metadatas = tuple(a._metadata for a in args if hasattr(a, "_metadata"))
        args = [a._t if hasattr(a, "_t") else a for a in args]
        assert len(metadatas) > 0
        ret = func(*args, **kwargs)
        return MetadataClassmethod(ret, metadata=metadatas[0])


@pytest.mark.filterwarnings("ignore:Defining your `__torch_function__` as a plain method")
@pytest.mark.parametrize("MetadataTensor", [MetadataMethod, MetadataClassmethod])
def test_metadata_tensor(MetadataTensor):
    metadata = {"owner": "Ministry of Silly Walks"}
    m = MetadataTensor([[1, 2], [3, 4]], metadata=metadata)
    t = torch.tensor([[1, 2], [1, 2]])
    head = "Metadata:\n{'owner': 'Ministry of Silly Walks'}\n\ndata:\n"
    assert repr(torch.add(t, m)) == head + "tensor([[2, 4],\n        [4, 6]])"
    assert repr(torch.mul(t, m)) == head + "tensor([[1, 4],\n        [3, 8]])"


class SubTensor(torch.Tensor):
    pass


class SubTensor2(SubTensor):
    pass


class OtherSubTensor(torch.Tensor):
    pass


def test_subclasses():
    assert type(torch.add(SubTensor([0]), SubTensor([1]))).__name__ == "SubTensor"
    assert type(torch.add(SubTensor([0]), torch.tensor([1]))).__name__ == "SubTensor"
    assert type(torch.add(SubTensor2([0]), SubTensor([1]))).__name__ == "SubTensor2"
    assert type(torch.add(SubTensor2([0]), torch.tensor([1]))).__name__ == "SubTensor2"
    with pytest.raises(TypeError) as error:
        torch.add(SubTensor([0]), OtherSubTensor([1]))
    assert str(error.value) == "no implementation found for 'torch.add' on types that implement __torch_function__: [SubTensor, OtherSubTensor]"


def test_logging_tensor(caplog):
    class LoggingTensor(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            # NOTE: Logging calls Tensor.__repr__, so we can't log __repr__ without infinite recursion
            if func is not torch.Tensor.__repr__:
                logging.info(f"func: {func.__name__}, args: {args!r}, kwargs: {kwargs!r}")
            if kwargs is None:
                kwargs = {}
            return super().__torch_function__(func, types, args, kwargs)

    with caplog.at_level(logging.INFO):
        result = torch.add(LoggingTensor([1.0]), 1)
    assert type(result) is LoggingTensor
    assert caplog.messages == ["func: add, args: (LoggingTensor([1.]), 1), kwargs: None"]


@pytest.mark.parametrize("module", ["cresset._overrides", "cresset.overrides"])
def test_coverage(module):
    import importlib

    overrides = importlib.import_module(module)
    nn_funcs = overrides.get_overridable_functions()[torch.nn.functional]
    assert [f.__name__ for f in nn_funcs[:5]] == [
        "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool1d_with_indices",
    ]  # fmt: skip
    dummy_add = overrides.get_testing_overrides()[torch.add]
    assert repr(inspect.signature(dummy_add)) == "<Signature (input, other, out=None)>"
    assert dummy_add(1, 2) == -1
    assert torch.zeros in overrides.get_ignored_functions()
