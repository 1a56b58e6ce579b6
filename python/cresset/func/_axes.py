"""Patterns of axes in the notation of einops: names, groups in brackets, an ellipsis, sizes without a name."""

import keyword
import warnings

__all__ = ["AnonymousAxis", "ParsedExpression", "comma_separate", "parse_pattern", "validate_rearrange_expressions"]

_ellipsis = "…"  # as one character, so that it is an axis like others
_DOTS = "..."
_ONE_ELLIPSIS = "Expression may contain dots only inside ellipsis (...)"


class AnonymousAxis:
    """An axis without a name, of a size. Two of them are never equal."""

    def __init__(self, value):
        self.value = int(value)
        if self.value < 1:
            raise ValueError(f"Anonymous axis should have positive length, not {self.value}")

    def __repr__(self):
        return f"{self.value}-axis"


class ParsedExpression:
    """One side of a pattern. ValueError for a text that is none.

    composition: for each dimension the list of its axes ([] of size 1), or the ellipsis; identifiers: the set of all axes, names and AnonymousAxis;
    has_ellipsis, has_ellipsis_parenthesized (in brackets), has_non_unitary_anonymous_axes: whether it has such.
    """

    def __init__(self, expression, *, allow_underscore=False, allow_duplicates=False):
        self.has_ellipsis = self.has_ellipsis_parenthesized = self.has_non_unitary_anonymous_axes = False
        self.identifiers, self.composition = set(), []
        self._allow_underscore, self._allow_duplicates = allow_underscore, allow_duplicates
        if "." in expression:
            if _DOTS not in expression:
                raise ValueError(_ONE_ELLIPSIS)
            if expression.count(_DOTS) != 1 or expression.count(".") != 3:
                raise ValueError(f"{_ONE_ELLIPSIS}; only one ellipsis for tensor ")
            expression = expression.replace(_DOTS, _ellipsis)
            self.has_ellipsis = True
        self._parse(expression)

    def _parse(self, expression):
        group, word = None, ""
        for char in f"{expression} ":
            if char in "() ":
                if word:
                    self._add(word, group)
                word = ""
            if char == "(":
                if group is not None:
                    raise ValueError("Axis composition is one-level (brackets inside brackets not allowed)")
                group = []
            elif char == ")":
                if group is None:
                    raise ValueError("Brackets are not balanced")
                self.composition.append(group)
                group = None
            elif char.isalnum() or char in ("_", _ellipsis):
                word += char
            elif char != " ":
                raise ValueError(f"Unknown character '{char}'")
        if group is not None:
            raise ValueError(f"Imbalanced parentheses in expression: '{expression}'")

    def _add(self, name, group):
        if name in self.identifiers and not (self._allow_underscore and name == "_") and not self._allow_duplicates:
            raise ValueError(f"Indexing expression contains duplicate dimension '{name}'")
        if name == _ellipsis:
            self.identifiers.add(_ellipsis)
            self.has_ellipsis_parenthesized = group is not None
            (self.composition if group is None else group).append(_ellipsis)
        elif name.isdecimal():
            if int(name) == 1:
                if group is None:
                    self.composition.append([])
                return
            axis = AnonymousAxis(name)
            self.has_non_unitary_anonymous_axes = True
            self._put(axis, group)
        else:
            fits, reason = self.check_axis_name_return_reason(name, self._allow_underscore)
            if not fits:
                raise ValueError(f"Invalid axis identifier: {name}\n{reason}")
            self._put(name, group)

    def _put(self, axis, group):
        self.identifiers.add(axis)
        if group is None:
            self.composition.append([axis])
        else:
            group.append(axis)

    @staticmethod
    def check_axis_name_return_reason(name, allow_underscore=False):
        """(Is it a name of an axis, and why not.)"""
        if not name.isidentifier():
            return False, "not a valid python identifier"
        if name.startswith("_") or name.endswith("_"):
            return (True, "") if name == "_" and allow_underscore else (False, "axis name should should not start or end with underscore")
        if keyword.iskeyword(name):
            warnings.warn(f"It is discouraged to use axes names that are keywords: {name}", RuntimeWarning, stacklevel=2)
        if name == "axis":
            warnings.warn("It is discouraged to use 'axis' as an axis name and will raise an error in future", FutureWarning, stacklevel=2)
        return True, ""

    @staticmethod
    def check_axis_name(name):
        """Is it a name of an axis?"""
        return ParsedExpression.check_axis_name_return_reason(name)[0]


def parse_pattern(pattern, axes_lengths):
    """(left, right) of a pattern with an arrow, as ParsedExpressions. ValueError for one that is none, or whose right side alone has an ellipsis."""
    if pattern.count("->") != 1:
        raise ValueError("Pattern must contain a single '->' separator")
    if _ellipsis in axes_lengths:
        raise ValueError(f"'{_ellipsis}' is not an allowed axis identifier")
    left, right = map(ParsedExpression, pattern.split("->"))
    if not left.has_ellipsis and right.has_ellipsis:
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    if left.has_ellipsis and left.has_ellipsis_parenthesized:
        raise ValueError(f"Ellipsis is parenthesis in the left side is not allowed: {pattern}")
    return left, right


def validate_rearrange_expressions(left, right, axes_lengths):
    """TypeError for sizes that are no int, ValueError unless both sides have the same axes, all of them with names, and sizes are those of such."""
    for length in axes_lengths.values():
        if not isinstance(length, int):
            raise TypeError(f"rearrange axis lengths must be integers, got: {type(length)}")
    if left.has_non_unitary_anonymous_axes or right.has_non_unitary_anonymous_axes:
        raise ValueError("rearrange only supports unnamed axes of size 1")
    if difference := left.identifiers ^ right.identifiers:
        raise ValueError(f"Identifiers only on one side of rearrange expression (should be on both): {difference}")
    if unknown := axes_lengths.keys() - left.identifiers:
        raise ValueError(f"Identifiers not found in rearrange expression: {unknown}")


def comma_separate(collection):
    """Names with commas: `d0, d1`; groups of names in brackets: `(d0,), (d1, d2)`."""
    return ", ".join(x if isinstance(x, str) else f"({comma_separate(x)}{',' if len(x) == 1 else ''})" for x in collection)
