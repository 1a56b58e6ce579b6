"""Arrays over tensors, and how NumPy's functions are called with them."""

import functools
import inspect
import operator
from types import MappingProxyType

import numpy

import cresset

from . import _dtypes
from ._dtypes import DType, dtype as to_dtype

__all__ = ["array", "asarray", "delegate", "ndarray", "plain", "result_type", "wrap"]


class Flags:
    """What is true of an array's memory, by name or as attributes."""

    def __init__(self, flags, owndata):
        self._flags, self.owndata = flags, owndata

    def __getitem__(self, key):
        return self.owndata if key in ("OWNDATA", "O") else self._flags[key]

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._flags, name)


def plain(value):
    """An array or tensor as NumPy's, over the same memory where it lies in the host's; lists, tuples and dicts of them as well; any other value as it is."""
    if isinstance(value, ndarray):
        value = value.tensor
    if isinstance(value, cresset.Tensor):
        return value.detach().resolve_conj().resolve_neg().cpu().numpy()
    if isinstance(value, DType) or (isinstance(value, type) and issubclass(value, _dtypes.generic) and value.name):
        return _dtypes.to_numpy(value)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(map(plain, value))
    if isinstance(value, dict):
        return {key: plain(v) for key, v in value.items()}
    return value


def wrap(value, given=MappingProxyType({})):
    """What NumPy answers, with arrays over tensors in place of its own (`given`: by id(), those that it had as arguments); TypeError for elements that
    tensors do not have."""
    if id(value) in given:
        return given[id(value)]
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        value = numpy.asarray(value)
        _dtypes.of_numpy(value.dtype)
        if any(s < 0 for s in value.strides) or not value.flags.writeable or not value.dtype.isnative:
            value = value.astype(value.dtype.newbyteorder("="))
        made = ndarray(cresset.from_numpy(value))
        made._owns = value.flags.owndata
        return made
    if isinstance(value, numpy.dtype):
        return _dtypes.of_numpy(value)
    if isinstance(value, tuple):
        parts = [wrap(v, given) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return [wrap(v) for v in value] if isinstance(value, list) else value


def delegate(function, name=None):
    """A function of NumPy's on arrays over tensors. Where it gives back an array that it was given (as `out`), the result is that one, too."""

    @functools.wraps(function, assigned=("__name__", "__doc__"), updated=())
    def call(*args, **kwargs):
        outs = kwargs.get("out")
        outs = outs if isinstance(outs, tuple) else (outs,)
        if not all(o is None or isinstance(o, ndarray) for o in outs):
            raise TypeError("Return arrays must be of ArrayType")
        theirs = [plain(a) for a in args]
        options = {key: plain(v) for key, v in kwargs.items()}
        made = options.get("out")
        both = [*zip(args, theirs), *zip(outs, made if isinstance(made, tuple) else (made,))]
        return wrap(function(*theirs, **options), {id(p): a for a, p in both if isinstance(a, ndarray)})

    call.__name__ = call.__qualname__ = name or function.__name__
    try:
        call.__signature__ = inspect.signature(function)
    except (TypeError, ValueError):
        pass
    return call


class ndarray:
    """An array: `tensor` holds its elements. Functions are NumPy's, on the same memory; no gradient is recorded."""

    def __init__(self, t=None):
        self.tensor = cresset.Tensor() if t is None else t if isinstance(t, cresset.Tensor) else cresset.as_tensor(t)

    __array_priority__ = 1000
    _owns = None  # whether the memory is its own; None where the tensor says so
    __hash__ = None

    @property
    def dtype(self):
        return to_dtype(self.tensor.dtype)

    @property
    def shape(self):
        return tuple(self.tensor.shape)

    @shape.setter
    def shape(self, value):
        self.tensor = self.tensor.reshape(value)

    @property
    def strides(self):
        return tuple(s * self.tensor.element_size() for s in self.tensor.stride())

    @property
    def flags(self):
        # NumPy knows of what it made; there is no telling by the array that stands over the tensor's memory now.
        return Flags(plain(self).flags, self.tensor._base is None if self._owns is None else self._owns)

    @property
    def real(self):
        return ndarray(self.tensor.real)

    @real.setter
    def real(self, value):
        plain(self).real = plain(value)

    @property
    def imag(self):
        return wrap(plain(self).imag)

    @imag.setter
    def imag(self, value):
        plain(self).imag = plain(value)

    @property
    def flat(self):
        return plain(self).flat

    size = property(lambda self: self.tensor.numel())
    ndim = property(lambda self: self.tensor.dim())
    itemsize = property(lambda self: self.tensor.element_size())
    nbytes = property(lambda self: self.size * self.itemsize)
    T = property(lambda self: self.transpose())

    def __repr__(self):
        text = repr(self.tensor.detach()).partition("(")[2][:-1].replace("\n", "\n ")
        return f"torch.ndarray({text.replace('torch.', '').replace('cresset.', '')})"

    __str__ = __repr__

    def __array__(self, dtype=None, copy=None):
        return numpy.asarray(plain(self), dtype=dtype)

    def __dlpack__(self, *, stream=None):
        return self.tensor.__dlpack__(stream=stream)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    @property
    def __array_interface__(self):
        return plain(self).__array_interface__

    def __len__(self):
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return len(self.tensor)

    def __iter__(self):
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return map(ndarray, self.tensor.__iter__())

    def __bool__(self):
        return bool(plain(self))

    def __index__(self):
        return operator.index(plain(self)[()])

    def __int__(self):
        return int(plain(self))

    def __float__(self):
        return float(plain(self))

    def __complex__(self):
        return complex(plain(self))

    def __contains__(self, x):
        return plain(x) in plain(self)

    def is_integer(self):
        """Is the only element a whole number?"""
        return int(self) == self.item()

    def __getitem__(self, index):
        return wrap(plain(self)[plain(index)])

    def __setitem__(self, index, value):
        plain(self)[plain(index)] = plain(value)

    def astype(self, dtype, order="K", casting="unsafe", subok=True, copy=True):
        """The elements as another dtype: a copy, unless it has it and copy=False."""
        return wrap(plain(self).astype(_dtypes.to_numpy(dtype), casting=casting, copy=copy))

    def view(self, dtype=None, type=None):
        """The same memory, as elements of another dtype where one is given."""
        return ndarray(self.tensor.view(self.tensor.dtype if dtype is None else to_dtype(dtype).torch_dtype))

    def resize(self, *new_shape, refcheck=False):
        """Another shape in place: elements that are missing are zero. NotImplementedError with refcheck: nobody counts references."""
        if refcheck:
            raise NotImplementedError(f"resize(..., refcheck={refcheck}) is not implemented.")
        shape = new_shape[0] if len(new_shape) == 1 and not isinstance(new_shape[0], int) else new_shape
        if new_shape and new_shape != (None,):
            made = numpy.zeros(shape, plain(self).dtype)
            flat, old = made.reshape(-1), plain(self).reshape(-1)
            flat[: min(flat.size, old.size)] = old[: flat.size]
            self.tensor = cresset.from_numpy(made)

    def reshape(self, *shape, order="C"):
        """Another shape; of the same memory where that is possible."""
        return wrap(plain(self).reshape(*map(plain, shape), order=order))

    def fill(self, value):
        """Set every element."""
        plain(self).fill(plain(value))

    def tolist(self):
        """The elements as lists of Python numbers."""
        return self.tensor.tolist()

    def item(self, *args):
        """An element as a Python number."""
        return plain(self).item(*args)

    def sort(self, axis=-1, kind=None, order=None):
        """Sort along a dimension in place."""
        plain(self).sort(axis=axis, kind=kind)

    def put(self, indices, values, mode="raise"):
        """Set elements by their numbers in the flattened array."""
        plain(self).put(plain(indices), plain(values), mode)


def _method(name):
    if hasattr(numpy.ndarray, name):
        found = delegate(getattr(numpy.ndarray, name), name)
    else:  # of older versions
        found = delegate(getattr(numpy, name), name)
    found.__doc__ = f"As {name} of NumPy's arrays."
    return found


for _name in """all any argmax argmin argsort choose clip conj conjugate copy cumprod cumsum diagonal dot flatten max mean min nonzero prod ptp ravel repeat round
                searchsorted squeeze std sum swapaxes take trace transpose var""".split():
    setattr(ndarray, _name, _method(_name))


def _binary(name):
    of_numpy = getattr(numpy.ndarray, name)

    def call(self, other):
        if not isinstance(other, (ndarray, cresset.Tensor, numpy.ndarray, numpy.generic, int, float, complex, list, tuple)):
            return NotImplemented
        result = of_numpy(plain(self), plain(other))
        return result if result is NotImplemented else wrap(result)

    return call


def _in_place(name):
    of_numpy = getattr(numpy.ndarray, name)

    def call(self, other):
        of_numpy(plain(self), plain(other))
        return self

    return call


for _name in "add sub mul truediv floordiv mod pow lshift rshift and or xor matmul divmod".split():
    for _form in (f"__{_name}__", f"__r{_name}__"):
        setattr(ndarray, _form, _binary(_form))
    if _name != "divmod":
        setattr(ndarray, f"__i{_name}__", _in_place(f"__i{_name}__"))
for _name in "eq ne lt le gt ge".split():
    setattr(ndarray, f"__{_name}__", _binary(f"__{_name}__"))
for _name in "neg pos abs invert".split():
    setattr(ndarray, f"__{_name}__", delegate(getattr(numpy.ndarray, f"__{_name}__"), f"__{_name}__"))


def array(obj, dtype=None, *, copy=True, order="K", subok=False, ndmin=0, like=None):
    """An array of numbers, sequences of them, arrays or tensors. NotImplementedError for elements that tensors do not have."""
    if subok is not False or like is not None:
        raise NotImplementedError("'subok' and 'like' parameters are not supported.")
    wanted = None if dtype is None else _dtypes.to_numpy(dtype)
    if isinstance(obj, (ndarray, cresset.Tensor)):
        made = plain(obj)
        made = numpy.array(made, dtype=wanted, ndmin=ndmin) if copy else numpy.asarray(made, dtype=wanted)[(None,) * max(0, ndmin - made.ndim)]
        if not copy and isinstance(obj, ndarray) and wanted in (None, plain(obj).dtype) and ndmin <= obj.ndim:
            return obj
        return wrap(made)
    try:
        made = numpy.array(plain(obj), ndmin=ndmin)
        if wanted is not None:  # whole numbers wrap around
            made = made.astype(wanted)
        return wrap(made)
    except (TypeError, ValueError) as error:
        raise NotImplementedError(f"failed to convert {obj} to ndarray. \nInternal error is: {error}") from error


def asarray(a, dtype=None, order="K", *, like=None):
    """The array itself where it has the dtype, or an array of it."""
    return array(a, dtype, copy=False, order=order, like=like)


_dtypes.make.append(asarray)


def result_type(*arrays_and_dtypes):
    """The dtype that an operation of these has."""
    return _dtypes.of_numpy(numpy.result_type(*(_dtypes.to_numpy(a) if isinstance(a, (DType, type, cresset.dtype, str)) else plain(a) for a in arrays_and_dtypes)))
