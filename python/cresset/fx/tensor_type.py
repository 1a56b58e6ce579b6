"""Types of tensors whose sizes may be unknown."""

__all__ = ["TensorType", "Dyn", "is_consistent", "is_more_precise"]


class TensorType:
    """A tensor of these sizes; Dyn stands for an unknown one."""

    def __init__(self, dim):
        self.__origin__ = TensorType
        self.__args__ = dim

    def __repr__(self):
        return f"TensorType[{self.__args__}]"

    def __eq__(self, other):
        return isinstance(other, self.__class__) and list(self.__args__) == list(other.__args__)

    @staticmethod
    def __class_getitem__(*args):
        return TensorType(tuple(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else args)

    __hash__ = None

    @property
    def dims(self):
        """The sizes."""
        return self.__args__


class _DynType:
    """Nothing is known."""

    def __init__(self):
        self.__name__ = "_DynType"

    def __eq__(self, other):
        return isinstance(other, self.__class__)

    __hash__ = None

    def __str__(self):
        return "Dyn"

    __repr__ = __str__


Dyn = _DynType()


def _pairwise(t1, t2, holds):
    return len(t1.__args__) == len(t2.__args__) and all(holds(a, b) for a, b in zip(t1.__args__, t2.__args__))


def is_consistent(t1, t2):
    """Can both types be true of one value?"""
    if t1 == t2 or t1 == Dyn or t2 == Dyn:
        return True
    return isinstance(t1, TensorType) and isinstance(t2, TensorType) and _pairwise(t1, t2, is_consistent)


def is_more_precise(t1, t2):
    """Does t1 say at least what t2 says?"""
    if t1 == t2 or isinstance(t2, _DynType):
        return True
    return isinstance(t1, TensorType) and isinstance(t2, TensorType) and _pairwise(t1, t2, is_more_precise)
