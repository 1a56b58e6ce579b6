"""Types of elements: the scalar types, which make arrays without dimensions, and `dtype` objects for them."""

import builtins

import numpy

import cresset

__all__ = ["DType", "can_cast", "dtype", "issubdtype", "sctypes", "typecodes", "make", "of_numpy", "to_numpy"]


make = []  # the function that makes an array, when it is there


class generic:
    """The base of all types of elements. Calling a type converts a number or numbers to an array of it."""

    name = ""

    def __new__(cls, value=0):
        if cls.name == "":
            raise TypeError(f"cannot create '{cls.__name__}' instances")
        return make[0](value).astype(cls)


class number(generic):
    """Numbers."""


class integer(number):
    """Whole numbers."""


class inexact(number):
    """Floating and complex numbers."""


class signedinteger(integer):
    """Whole numbers with a sign."""


class unsignedinteger(integer):
    """Whole numbers without a sign."""


class floating(inexact):
    """Floating numbers."""


class complexfloating(inexact):
    """Complex numbers."""


_TYPES = {
    generic: "bool_", signedinteger: "int8 int16 int32 int64", unsignedinteger: "uint8 uint16 uint32 uint64", floating: "float16 float32 float64",
    complexfloating: "complex64 complex128",
}  # fmt: skip
_ALIASES = {
    "u1 ubyte": "uint8", "i1 byte": "int8", "i2 short": "int16", "i4 intc": "int32", "i8 int_ intp longlong": "int64", "ulonglong": "uint64", "f2 half": "float16",
    "f4 single": "float32", "f8 float_ double": "float64", "c8 csingle singlecomplex": "complex64", "c16 cdouble cfloat complex_": "complex128",
}  # fmt: skip
_by_name = {}
for _base, _names in _TYPES.items():
    for _name in _names.split():
        _plain = _name.rstrip("_")
        _type = type(_name, (_base,), {"name": _plain, "typecode": numpy.dtype(_plain).char, "torch_dtype": getattr(cresset, _plain), "__module__": __name__,
                                       "__doc__": f"Elements of {_plain}."})  # fmt: skip
        globals()[_name] = _by_name[_name] = _by_name[_plain] = _type
        __all__.append(_name)
for _names, _name in _ALIASES.items():
    for _alias in _names.split():
        _by_name[_alias] = _by_name[_name]
        if not _alias[-1].isdigit():
            globals()[_alias] = _by_name[_name]
            __all__.append(_alias)
for _type in set(_by_name.values()):
    _by_name.setdefault(_type.typecode, _type)
for _abstract in (generic, number, integer, inexact, signedinteger, unsignedinteger, floating, complexfloating):
    __all__.append(_abstract.__name__)
_PYTHON = {builtins.bool: "bool", builtins.int: "int64", builtins.float: "float64", builtins.complex: "complex128"}
_PYTHON_NAMES = {kind.__name__: name for kind, name in _PYTHON.items()}  # a text may name one, too

sctypes = {
    "int": [_by_name[n] for n in _TYPES[signedinteger].split()], "uint": [_by_name[n] for n in _TYPES[unsignedinteger].split()],
    "float": [_by_name[n] for n in _TYPES[floating].split()], "complex": [_by_name[n] for n in _TYPES[complexfloating].split()], "others": [_by_name["bool"]],
}  # fmt: skip
typecodes = {"All": "efdFDBbhil?", "AllFloat": "efdFD", "AllInteger": "Bbhil", "Integer": "bhil", "UnsignedInteger": "B", "Float": "efd", "Complex": "FD"}


class DType:
    """What kind of elements an array has; of a type, its name or code, a dtype of Cresset or NumPy, or Python's bool, int, float or complex."""

    def __init__(self, arg):
        self._scalar_type = _scalar_type(arg)

    name = property(lambda self: self._scalar_type.name, doc="The name, such as float32.")
    type = property(lambda self: self._scalar_type, doc="The type of elements.")
    typecode = property(lambda self: self._scalar_type.typecode, doc="NumPy's letter for it.")
    torch_dtype = property(lambda self: self._scalar_type.torch_dtype, doc="The dtype of tensors with such elements.")
    kind = property(lambda self: numpy.dtype(self.name).kind, doc="The letter for the kind: b, i, u, f or c.")
    itemsize = property(lambda self: numpy.dtype(self.name).itemsize, doc="Bytes of an element.")

    def __eq__(self, other):
        try:
            return self._scalar_type is _scalar_type(other)
        except TypeError:
            return False

    def __hash__(self):
        return hash(self._scalar_type.name)

    def __repr__(self):
        return f'dtype("{self.name}")'

    def __str__(self):
        return self.name

    def __reduce__(self):
        return DType, (self.name,)

    @property
    def names(self):
        return None  # there are no fields


def _scalar_type(arg):
    if isinstance(arg, DType):
        return arg._scalar_type
    if arg is None:
        return _by_name["float64"]
    if isinstance(arg, builtins.type) and issubclass(arg, generic) and arg.name:
        return arg
    if isinstance(arg, cresset.dtype):
        name = str(arg).rpartition(".")[2]
    elif isinstance(arg, numpy.dtype) or (isinstance(arg, builtins.type) and issubclass(arg, numpy.generic)):
        name = numpy.dtype(arg).name
    elif isinstance(arg, builtins.type):
        name = _PYTHON.get(arg)
    else:
        name = arg if isinstance(arg, str) else getattr(getattr(arg, "dtype", None), "name", None)
    name = _PYTHON_NAMES.get(name, name)
    if not isinstance(name, str) or name not in _by_name:
        raise TypeError(f"data type {arg!r} not understood")
    return _by_name[name]


def dtype(arg):
    """The DType of what stands for one. TypeError for anything else."""
    return arg if isinstance(arg, DType) else DType(arg)


def of_numpy(arg):
    """The DType of one of NumPy's; TypeError for elements that tensors do not have."""
    return DType(numpy.dtype(arg))


def to_numpy(arg):
    """NumPy's dtype of a DType or of what stands for one."""
    return numpy.dtype(_scalar_type(arg).name)


def issubdtype(arg1, arg2):
    """Is the first a kind of the second? Both may be abstract types, such as floating."""
    first, second = (a if isinstance(a, builtins.type) and issubclass(a, generic) else _scalar_type(a) for a in (arg1, arg2))
    return issubclass(first, second)


def can_cast(from_, to, casting="safe"):
    """May elements of the first dtype, or of an array, be converted to the second under NumPy's rule `casting`?"""
    from_ = getattr(from_, "dtype", from_)
    return numpy.can_cast(to_numpy(from_), to_numpy(to), casting)
