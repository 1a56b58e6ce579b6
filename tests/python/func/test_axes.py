"""Patterns of axes (functorch.einops._parsing). Words are PyTorch 2.13's."""

import re

import pytest

from cresset.functorch.einops import rearrange
from cresset.functorch.einops._parsing import (
    AnonymousAxis, ParsedExpression, _ellipsis, comma_separate, parse_pattern, validate_rearrange_expressions,
)  # fmt: skip


def test_expressions():
    parsed = ParsedExpression("5 (3 a) ... 1 b")
    assert [[getattr(x, "value", x) for x in axes] for axes in parsed.composition] == [[5], [3, "a"], [_ellipsis], [], ["b"]]
    assert parsed.has_ellipsis and not parsed.has_ellipsis_parenthesized and parsed.has_non_unitary_anonymous_axes
    assert parsed.composition[2] is _ellipsis and {"a", "b", _ellipsis} < parsed.identifiers and len(parsed.identifiers) == 5
    assert ParsedExpression("(a ... b)").has_ellipsis_parenthesized and ParsedExpression("").composition == []
    assert ParsedExpression("() 1 a").composition == [[], [], ["a"]]
    assert ParsedExpression("a _ _", allow_underscore=True).composition == [["a"], ["_"], ["_"]]
    assert ParsedExpression("a a", allow_duplicates=True).composition == [["a"], ["a"]]
    assert repr(AnonymousAxis("2")) == "2-axis" and AnonymousAxis("2") != AnonymousAxis("2")
    with pytest.warns(RuntimeWarning, match="discouraged to use axes names that are keywords: for"):
        assert ParsedExpression.check_axis_name("for")


@pytest.mark.parametrize(
    "text, words",
    [
        ("... a ...", "Expression may contain dots only inside ellipsis (...); only one ellipsis for tensor "),
        ("..a", "Expression may contain dots only inside ellipsis (...)"), ("(a)) b", "Brackets are not balanced"),
        ("((a))", "Axis composition is one-level (brackets inside brackets not allowed)"), ("(a", "Imbalanced parentheses in expression: '(a'"),
        ("1a", "Invalid axis identifier: 1a\nnot a valid python identifier"), ("a a", "Indexing expression contains duplicate dimension 'a'"),
        ("_a", "Invalid axis identifier: _a\naxis name should should not start or end with underscore"),
        ("0", "Anonymous axis should have positive length, not 0"), ("a , b", "Unknown character ','"),
    ],
)  # fmt: skip
def test_no_expressions(text, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        ParsedExpression(text)


@pytest.mark.parametrize(
    "pattern, lengths, kind, words",
    [
        ("a", {}, ValueError, "Pattern must contain a single '->' separator"),
        ("a -> a ...", {}, ValueError, "Ellipsis found in right side, but not left side of a pattern a -> a ..."),
        ("(...) -> ...", {}, ValueError, "Ellipsis is parenthesis in the left side is not allowed: (...) -> ..."),
        ("a -> a", {"…": 2}, ValueError, "'…' is not an allowed axis identifier"),
        ("a b c -> c b a", {"c": "x"}, TypeError, "rearrange axis lengths must be integers, got: <class 'str'>"),
        ("a 2 -> 1 1 a", {}, ValueError, "rearrange only supports unnamed axes of size 1"),
        ("a ... -> a", {}, ValueError, "Identifiers only on one side of rearrange expression (should be on both): {'…'}"),
        ("a b -> b a", {"c": 2}, ValueError, "Identifiers not found in rearrange expression: {'c'}"),
    ],
)
def test_no_patterns(pattern, lengths, kind, words):
    with pytest.raises(kind, match=re.escape(words)):
        validate_rearrange_expressions(*parse_pattern(pattern, lengths), lengths)


def test_texts():
    assert comma_separate(("a", ("b", "c"), "d")) == "a, (b, c), d" and comma_separate([["a"], ["b", "c"], []]) == "(a,), (b, c), ()"
    assert comma_separate(("a",)) == "a" and callable(rearrange)
