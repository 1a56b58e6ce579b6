"""What is known about sizes that have no number yet."""

__all__ = ["Equality"]


class Equality:
    """Two sizes that are the same: numbers, or unknown ones."""

    def __init__(self, lhs, rhs):
        self.lhs, self.rhs = lhs, rhs

    def __repr__(self):
        return f"{self.lhs} = {self.rhs}"

    def __eq__(self, other):
        return isinstance(other, Equality) and (self.lhs, self.rhs) == (other.lhs, other.rhs)

    __hash__ = None
