"""`script([1, 2])` and `script({"a": 1})`: lists and dictionaries that live on the side of scripts.

A function of a script that gets one works on the very same container; plain lists and dicts are copied when they are passed.
"""

from cresset import _C

from ._types import UnknownType, type_of_value

__all__ = ["ScriptDict", "ScriptDictIterator", "ScriptDictKeyIterator", "ScriptList", "ScriptListIterator", "script_container"]

_INT, _STR = _C.IntType.get(), _C.StringType.get()
# The names that operators on dictionaries have for the types of keys.
_KEY_NAMES = {"int": "int", "str": "str", "bool": "bool", "float": "float", "complex": "complex", "Tensor": "Tensor"}


def script_container(value):
    """The ScriptList or ScriptDict of a list or dict; its type is that of its elements, which must agree."""
    if not value:
        kind = _C.ListType.ofTensors() if isinstance(value, list) else _C.DictType(_STR, _C.TensorType.get())
    else:
        try:
            kind = type_of_value(value)
        except UnknownType as error:
            raise RuntimeError(f"Unable to infer type of {'list' if isinstance(value, list) else 'dictionary'}: {error}") from None
    return (ScriptList if isinstance(value, list) else ScriptDict)(value, kind)


class _Iterator:
    """An iterator over what a container held when it was asked for."""

    def __init__(self, values):
        self._values = iter(values)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._values)


class ScriptListIterator(_Iterator):
    """Elements of a ScriptList."""


class ScriptDictIterator(_Iterator):
    """(key, value) pairs of a ScriptDict."""


class ScriptDictKeyIterator(_Iterator):
    """Keys of a ScriptDict."""


class _Container(_C._ScriptContainer):
    def __repr__(self):
        return self._run("aten::str")

    def __eq__(self, other):
        return self._value() == (other._value() if isinstance(other, _C._ScriptContainer) else other)

    __hash__ = None


class ScriptList(_Container):
    """A list of scripts with Python's protocol."""

    @property
    def _element(self):
        return self._script_type_.getElementType()

    def __len__(self):
        return self._run("aten::len.t")

    def __getitem__(self, index):
        if isinstance(index, slice):
            return ScriptList(self._value()[index], self._script_type_)
        return self._run("aten::__getitem__.t", index, _INT)

    def __setitem__(self, index, value):
        if not isinstance(index, slice):
            self._run("aten::_set_item.t", index, _INT, value, self._element)
            return
        elements = self._value()
        elements[index] = list(value)
        fresh = ScriptList(elements, self._script_type_)  # raises before anything is changed
        self.clear()
        self.extend(fresh)

    def __delitem__(self, index):
        self._run("aten::Delete.t", index, _INT)

    def __iter__(self):
        return ScriptListIterator(self._value())

    def __contains__(self, value):
        self._check_element(value)
        return value in self._value()

    def _check_element(self, value):
        ScriptList([value], self._script_type_)  # TypeError for what no element can be

    def append(self, value):
        """Add an element at the end."""
        self._run("aten::append.t", value, self._element)

    def extend(self, values):
        """Add the elements of a list (or another iterable) at the end."""
        self._run("aten::extend.t", values if isinstance(values, ScriptList) else list(values), self._script_type_)

    def insert(self, index, value):
        """Put an element in front of the one at `index`."""
        self._run("aten::insert.t", index, _INT, value, self._element)

    def pop(self, index=-1):
        """Take out and give an element, by default the last."""
        return self._run("aten::pop.t", index, _INT)

    def remove(self, value):
        """Take out the first element equal to `value`; ValueError when there is none."""
        if value not in self:
            raise ValueError("list.remove(x): x not in list")
        del self[self._value().index(value)]

    def count(self, value):
        """How many elements are equal to `value`?"""
        self._check_element(value)
        return self._value().count(value)

    def clear(self):
        """Take out all elements."""
        self._run("aten::clear.t")


class ScriptDict(_Container):
    """A dictionary of scripts with Python's protocol."""

    def _on_key(self, operator, key, *rest):
        kind = self._script_type_.getKeyType()
        return self._run(f"aten::{operator}{_KEY_NAMES[str(kind)]}", key, kind, *rest)

    def __len__(self):
        return len(self._value())

    def __getitem__(self, key):
        try:
            return self._on_key("__getitem__.Dict_", key)
        except TypeError:  # of another type than the keys
            raise KeyError(key) from None

    def __setitem__(self, key, value):
        self._on_key("_set_item.", key, value, self._script_type_.getValueType())

    def __delitem__(self, key):
        self._on_key("Delete.Dict_", key)

    def __contains__(self, key):
        try:
            return self._on_key("__contains__.", key)
        except TypeError:
            raise KeyError(key) from None

    def __iter__(self):
        return ScriptDictKeyIterator(list(self._value()))

    def keys(self):
        """The keys, in the order they were added."""
        return ScriptDictKeyIterator(list(self._value()))

    def items(self):
        """Pairs of keys and values."""
        return ScriptDictIterator(list(self._value().items()))

    def values(self):
        """The values."""
        return list(self._value().values())

    def get(self, key, default=None):
        """The value of a key, or `default`."""
        return self[key] if key in self else default
