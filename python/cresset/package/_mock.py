"""What stands in a package for names of modules that were mocked: an object that says so when it is used. Packages hold this file."""

_OPERATIONS = """
abs add and aiter anext await bool bytes call ceil complex contains copy deepcopy delattr delitem dir divmod enter eq exit float floor floordiv ge
getattr getitem getstate gt hash iadd iand ifloordiv ilshift imatmul imod imul index instancecheck int invert ior ipow irshift isub iter itruediv ixor
le len lshift lt matmul mod mul ne neg next or pos pow radd rand rdivmod reduce reversed rfloordiv rlshift rmatmul rmod rmul ror round rpow rrshift
rshift rsub rtruediv rxor setattr setitem setstate sizeof sub subclasscheck truediv trunc xor
""".split()


class MockedObject:
    _name: str

    def __new__(cls, *args, **kwargs):
        # A class that derives from a mocked one is made with the arguments of a class.
        if not kwargs.get("_suppress_err", False):
            raise NotImplementedError(f"Object '{cls._name}' was mocked out during packaging but it is being used in {cls.__new__}")
        return super().__new__(cls)

    def __init__(self, name, _suppress_err):
        self.__dict__["_name"] = name

    def __repr__(self):
        return f"MockedObject({self._name})"

    def __mro_entries__(self, bases):
        raise NotImplementedError(f"Object '{self._name}' was mocked out during packaging but it is being used as a base class")


def _refusal(name):
    def refuse(self, *args, **kwargs):
        raise NotImplementedError(f"Object '{self._name}' was mocked out during packaging but it is being used in {name}")

    return refuse


for _operation in _OPERATIONS:
    _method = f"__{_operation}__"
    setattr(MockedObject, _method, _refusal(_method))
