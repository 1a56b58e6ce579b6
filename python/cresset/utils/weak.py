"""Weak references and dictionaries with weak keys that compare by identity: `==` of tensors compares elements, so `weakref`'s own cannot hold them.

A tensor's Python object lives while C++ or Python holds the tensor, so an entry stays as long as the tensor.
"""

import copy
import weakref
from collections.abc import Mapping, MutableMapping

__all__ = ["TensorWeakRef", "WeakIdRef", "WeakIdKeyDictionary", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref):
    """A weak reference with the hash and the equality of the object's identity."""

    __slots__ = ("_id",)

    def __init__(self, key, callback=None):
        self._id = id(key)
        super().__init__(key, callback)

    def __call__(self):
        """The object, which holds its memory again where that had held the object (`_fix_weakref`); None when it is gone."""
        found = super().__call__()
        if found is not None and (own := getattr(found, "_fix_weakref", None)) is not None:
            own()
        return found

    def __hash__(self):
        return self._id

    def __eq__(self, other):
        mine, others = super().__call__(), weakref.ref.__call__(other)
        return mine is others if mine is not None and others is not None else self is other


class _WeakHashRef(weakref.ref):
    """A weak reference with the hash and the equality of the object, which are remembered beyond its end."""

    __slots__ = ("_hash",)

    def __init__(self, key, callback=None):
        self._hash = hash(key)
        super().__init__(key, callback)

    def __hash__(self):
        return self._hash

    def __eq__(self, other):
        mine, others = self(), other()
        return mine == others if mine is not None and others is not None else self is other


class WeakIdKeyDictionary(MutableMapping):
    """A mapping whose keys are held weakly and compared by identity; `ref_type` makes the references. TypeError for keys without weak references.

    Iterating goes over what is there at its start.
    """

    def __init__(self, dict=None, ref_type=WeakIdRef):
        self.ref_type = ref_type
        self.data = {}
        data = self.data
        # The references hold this function, so it must not hold the dictionary.
        self._remove = lambda ref: data.pop(ref, None)
        if dict is not None:
            self.update(dict)

    def _ref(self, key):
        return self.ref_type(key)

    def __getitem__(self, key):
        return self.data[self._ref(key)]

    def __setitem__(self, key, value):
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key):
        del self.data[self._ref(key)]

    def __contains__(self, key):
        try:
            return self._ref(key) in self.data
        except TypeError:
            return False

    def __len__(self):
        return len(self.data)

    def items(self):
        for ref, value in list(self.data.items()):
            key = ref()
            if key is not None:
                yield key, value

    def keys(self):
        return (key for key, _ in self.items())

    def values(self):
        return (value for _, value in self.items())

    __iter__ = keys

    def keyrefs(self):
        """The weak references to the keys, some of which may have died."""
        return list(self.data)

    def get(self, key, default=None):
        return self.data.get(self._ref(key), default)

    def setdefault(self, key, default=None):
        return self.data.setdefault(self.ref_type(key, self._remove), default)

    def pop(self, key, *default):
        return self.data.pop(self._ref(key), *default)

    def popitem(self):
        while True:
            ref, value = self.data.popitem()
            key = ref()
            if key is not None:
                return key, value

    def update(self, other=(), /, **kwargs):
        """Takes over the items of a mapping, of what makes one, or of pairs; all of them are read before the first is put in."""
        items = other if isinstance(other, Mapping) else dict(other)
        for key, value in (*items.items(), *kwargs.items()):
            self[key] = value

    def copy(self):
        """Another dictionary with the same keys and values."""
        return type(self)(self, self.ref_type)

    __copy__ = copy

    def __deepcopy__(self, memo):
        """The same keys with copies of the values."""
        made = type(self)(ref_type=self.ref_type)
        for key, value in self.items():
            made[key] = copy.deepcopy(value, memo)
        return made

    def __or__(self, other):
        if not isinstance(other, Mapping):
            return NotImplemented
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other):
        if not isinstance(other, Mapping):
            return NotImplemented
        made = type(self)(other, self.ref_type)
        made.update(self)
        return made

    def __ior__(self, other):
        self.update(other)
        return self

    def __eq__(self, other):
        if not isinstance(other, Mapping):
            return NotImplemented
        return {id(k): v for k, v in self.items()} == {id(k): v for k, v in other.items()}

    __hash__ = None

    def __repr__(self):
        return f"<{type(self).__name__} at {id(self):#x}>"


WeakTensorKeyDictionary = WeakIdKeyDictionary
WeakTensorRefKey = WeakIdRef


class TensorWeakRef:
    """A weak reference to a tensor: calling it gives the tensor, or None when that is gone. Two are equal while they refer to one tensor."""

    __slots__ = ("ref",)

    def __init__(self, tensor):
        self.ref = WeakIdRef(tensor)

    def __call__(self):
        return self.ref()

    def __eq__(self, other):
        return isinstance(other, TensorWeakRef) and self.ref == other.ref

    def __hash__(self):
        return hash(self.ref)
