"""A set that remembers the order in which its elements came."""

from collections.abc import MutableSet

__all__ = ["OrderedSet"]


class OrderedSet(MutableSet):
    """A set with the order of insertion; operators of sets give such sets, in the order of the left one."""

    def __init__(self, iterable=None):
        self._dict = dict.fromkeys(iterable or ())

    def __contains__(self, element):
        return element in self._dict

    def __iter__(self):
        return iter(self._dict)

    def __len__(self):
        return len(self._dict)

    def __reversed__(self):
        return reversed(self._dict)

    def __repr__(self):
        return f"{type(self).__name__}({list(self._dict)})"

    def add(self, elem):
        """Put it at the end, unless it is there."""
        self._dict[elem] = None

    def discard(self, elem):
        """Take it out, if it is there."""
        self._dict.pop(elem, None)

    def clear(self):
        """Take all out."""
        self._dict.clear()

    def copy(self):
        """Another one with the same elements."""
        return type(self)(self)

    def update(self, *others):
        """Put in the elements of the others."""
        for other in others:
            self._dict.update(dict.fromkeys(other))

    def difference_update(self, *others):
        """Take out the elements of the others."""
        for other in others:
            for element in list(other):
                self.discard(element)

    def union(self, *others):
        """The elements of all."""
        result = self.copy()
        result.update(*others)
        return result

    def intersection(self, *others):
        """The elements that all have."""
        others = [set(other) for other in others]
        return type(self)(e for e in self if all(e in other for other in others))

    def difference(self, *others):
        """The elements that none of the others has."""
        others = [set(other) for other in others]
        return type(self)(e for e in self if not any(e in other for other in others))

    def issubset(self, other):
        """Has the other all of these?"""
        return all(e in other for e in self)

    def issuperset(self, other):
        """Are all of the other here?"""
        return all(e in self for e in other)
