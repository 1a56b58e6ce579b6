"""The parts of rearrange's patterns."""

from cresset.func._axes import AnonymousAxis, ParsedExpression, _ellipsis, comma_separate, parse_pattern, validate_rearrange_expressions  # noqa: F401

__all__ = ["AnonymousAxis", "ParsedExpression", "comma_separate", "parse_pattern", "validate_rearrange_expressions"]
