"""Numbers in place of what a program asks tensors without values for: `item()`, and how many elements a mask chooses.

A program is run several times with others of them, so that what follows from them shows (export/_dynamic.py). A number that the program gets knows that
it is one: comparisons of it are no truths but conditions, which only `torch._check` takes, and which become assertions of the program.
"""

import itertools
import operator

import cresset
from cresset.utils._python_dispatch import no_dispatch

__all__ = ["CHOOSING", "Condition", "Refused", "UnknownFloat", "UnknownInt", "UnknownValues", "active"]

active = None  # the UnknownValues of the run, None outside of one

_MIRRORED = {operator.lt: operator.gt, operator.le: operator.ge, operator.gt: operator.lt, operator.ge: operator.le, operator.eq: operator.eq, operator.ne: operator.ne}
_WORDS = {operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">=", operator.eq: "==", operator.ne: "!="}
_OPPOSITES = {operator.lt: operator.ge, operator.le: operator.gt, operator.gt: operator.le, operator.ge: operator.lt, operator.eq: operator.ne, operator.ne: operator.eq}
CHOOSING = frozenset({"aten.nonzero.default", "aten.argwhere.default", "aten.masked_select.default", "aten.index.Tensor"})  # whose results' first size depends on values


class Refused(RuntimeError):
    """A check of the program does not take the number that stands for a value; `hints` are others that it may take."""

    def __init__(self, text, place, hints):
        super().__init__(text)
        self.place, self.hints = place, hints


def _unknown(text):
    from cresset.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    return GuardOnDataDependentSymNode(
        f"Could not guard on data-dependent expression {text} (unhinted: {text}). The program decides by a value of a tensor, which export does not know.\n"
        "Use torch.cond for a branch that depends on values, or torch._check to say what they are."
    )


class Condition:
    """A comparison of an unknown number; its truth is not known, unless checks before say it."""

    def __init__(self, values, compare, number, other):
        self.values, self.compare, self.number, self.other = values, compare, number, other
        self.holds = compare(int(number) if isinstance(number, int) else float(number), _bare(other))

    def __str__(self):
        return f"{_text(self.number)} {_WORDS[self.compare]} {_text(self.other)}"

    def __bool__(self):
        known = self._known()
        if known is None and self.values.decides:
            taken = self if self.holds else Condition(self.values, _OPPOSITES[self.compare], self.number, self.other)
            taken.check(RuntimeError, None)
            return self.holds
        if known is None:
            raise _unknown(str(self))
        return known

    def _known(self):
        """What checks before, or the limits of the number, say; or None."""
        if self._key() in self.values.facts:
            return True
        if self._key(_OPPOSITES[self.compare]) in self.values.facts:
            return False
        low, high = self.number.limits()
        less, greater = (self.other.limits() if isinstance(self.other, _Unknown) else (self.other, self.other))
        if self.compare in (operator.lt, operator.ge):
            found = True if high < less else False if low >= greater else None
            return found if self.compare is operator.lt or found is None else not found
        if self.compare in (operator.le, operator.gt):
            found = True if high <= less else False if low > greater else None
            return found if self.compare is operator.le or found is None else not found
        equal = True if low == high == less == greater else False if high < less or low > greater else None
        return equal if self.compare is operator.eq or equal is None else not equal

    def _key(self, compare=None):
        """The comparison, the same however its sides and the parts of sums are ordered."""
        compare = compare or self.compare
        (left, a), (right, b) = sorted(((_sorted_sum(_text(side)), at) for at, side in enumerate((self.number, self.other))))
        return compare if a < b else _MIRRORED[compare], left, right

    def check(self, error, message):
        """What torch._check does: the condition becomes an assertion of the program, and is known from now on."""
        known = self._known()
        if known is True:
            return
        if known is False:
            raise error(message or f"Expected cond to be True, but got False: {self}.")
        if not self.holds:
            other = int(_bare(self.other)) - self.number.moved
            raise Refused(f"{self} does not hold", self.number.place, [n for n in (other, other + 1, other - 1, other + 2, other - 2) if n >= 0])
        self.values.facts.add(self._key())
        self.values.assume(self.number, self.compare, self.other)
        if isinstance(self.other, _Unknown):
            self.values.assume(self.other, _MIRRORED[self.compare], self.number)
        self.values.note(self)


def _bare(value):
    return value if not isinstance(value, _Unknown) else int(value) if isinstance(value, int) else float(value)


def _text(value):
    return value.text if isinstance(value, _Unknown) else str(value)


def _sorted_sum(text):
    """`b + a` as `a + b`, where the text is a plain sum."""
    parts = text.split(" + ")
    return " + ".join(sorted(parts)) if all(part.isalnum() for part in parts) else text


def _comparison(compare):
    def method(self, other):
        if isinstance(other, bool) or not isinstance(other, (int, float)):
            return NotImplemented
        return Condition(self.values, compare, self, other)

    return method


class _Unknown:
    """What the two kinds have in common."""

    __lt__, __le__, __gt__, __ge__, __eq__, __ne__ = map(_comparison, (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne))

    def __bool__(self):
        return bool(self != 0)

    def _become(self, values, place, text, moved=0, plain=True):
        # plain: it is the value of `place` plus `moved`; otherwise its limits are not known.
        self.values, self.place, self.text, self.moved, self.plain = values, place, text, moved, plain
        return self

    def limits(self):
        """The least and the greatest that it may be."""
        low, high = self.values.limits[self.place] if self.plain else (float("-inf"), float("inf"))
        return low + self.moved, high + self.moved


class UnknownInt(_Unknown, int, cresset.SymInt):
    """A whole number that stands for the value of a tensor."""

    __hash__ = int.__hash__

    def _result(self, number, text, moved=None):
        made = UnknownInt(number)
        return made._become(self.values, self.place, text, moved or 0, plain=self.plain and moved is not None)

    def __add__(self, other):
        if type(other) is int:
            return self._result(int(self) + other, f"{self.text} + {other}", self.moved + other)
        return self._result(int(self) + int(other), f"{self.text} + {_text(other)}") if isinstance(other, UnknownInt) else int(self) + other

    __radd__ = __add__

    def __sub__(self, other):
        if type(other) is int:
            return self._result(int(self) - other, f"{self.text} - {other}", self.moved - other)
        return self._result(int(self) - int(other), f"{self.text} - {_text(other)}") if isinstance(other, UnknownInt) else int(self) - other

    def __rsub__(self, other):
        return self._result(other - int(self), f"{other} - {self.text}") if type(other) is int else other - int(self)

    def __mul__(self, other):
        return self._result(int(self) * int(other), f"{self.text}*{_text(other)}") if isinstance(other, int) else int(self) * other

    __rmul__ = __mul__

    def __floordiv__(self, other):
        return self._result(int(self) // int(other), f"({self.text})//{_text(other)}") if isinstance(other, int) else int(self) // other

    def __mod__(self, other):
        return self._result(int(self) % int(other), f"({self.text}) % {_text(other)}") if isinstance(other, int) else int(self) % other

    def __neg__(self):
        return self._result(-int(self), f"-{self.text}")


class UnknownFloat(_Unknown, float, cresset.SymFloat):
    """A number that stands for the value of a tensor. What is computed from it outside of tensors is a number of this run."""

    __hash__ = float.__hash__


class UnknownValues:
    """The values of one run. `chosen` has the number for each of them by their places, 2 (or 2.5) where it has none; `kinds` becomes {place: int, float, bool, or
    None for a number of elements}. Places are 0, 1, … in the order of the run, or those of `places`."""

    def __init__(self, chosen=(), places=None):
        self._places = itertools.count() if places is None else iter(places)
        self.chosen, self.kinds, self.limits = dict(chosen), {}, {}
        self.decides = False  # do conditions hold as they do for the numbers at hand, and become assertions?
        self.facts = set()  # keys of the conditions that checks have said
        self.made = None  # the place of the one that the operator which runs has asked for
        self.assertions = None  # a function that records a condition as an assertion of the program
        self._armed, self._of_tensor = None, {}

    def __enter__(self):
        global active
        self._before, active = active, self
        return self

    def __exit__(self, *error):
        global active
        active = self._before

    def allowed(self, what):
        """What may be asked now: `items` or `sizes`; gives what could be asked before."""
        before, self._armed = self._armed, what
        return before

    def _next(self, kind, real=None):
        place = self.made = next(self._places)
        self.kinds[place] = kind
        self.limits[place] = {None: (0, float("inf")), bool: (0, 1)}.get(kind, (float("-inf"), float("inf")))
        return self.chosen.setdefault(place, real if real is not None else 2.5 if kind is float else 1 if kind is bool else 2)

    def item(self, tensor):
        """A number for the value of a tensor of one element, or None: none may be asked now, or not of this type."""
        real = getattr(tensor, "real_tensor", None) if self.decides else None
        with no_dispatch():
            real = None if real is None or real.is_complex() else real.item() if real.is_floating_point() else int(real.item())
        kind = float if tensor.is_floating_point() else bool if tensor.dtype == cresset.bool else int if not tensor.is_complex() else None
        if self._armed != "items" or kind is None:
            return None
        key = id(tensor), tensor._version
        if key not in self._of_tensor:
            number = self._next(kind, real)
            self._of_tensor[key] = tensor, self.made, number  # held, so that no other has its number
        _, self.made, number = self._of_tensor[key]
        return number

    def size(self, real=None):
        """A number of elements, that of the real tensors where there are some; or None."""
        return self._next(None, real if self.decides else None) if self._armed == "sizes" else None

    def wrapped(self, value, place):
        """The number as programs get it."""
        made = (UnknownInt if isinstance(value, int) else UnknownFloat)(value)
        return made._become(self, place, f"{'u' if isinstance(value, int) else 'zuf'}{place}")

    def assume(self, number, compare, other):
        """Note what a check said of a number's limits."""
        if not number.plain:
            return
        low, high = self.limits[number.place]
        least, greatest = other.limits() if isinstance(other, _Unknown) else (other, other)
        step = 1 if isinstance(number, int) else 0
        if compare in (operator.ge, operator.gt, operator.eq):
            low = max(low, least - number.moved + step * (compare is operator.gt))
        if compare in (operator.le, operator.lt, operator.eq):
            high = min(high, greatest - number.moved - step * (compare is operator.lt))
        self.limits[number.place] = low, high

    def note(self, condition):
        """An assertion of the program."""
        if self.assertions is not None:
            self.assertions(condition)
