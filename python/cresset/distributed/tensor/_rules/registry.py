"""Which placements an operator can run with: a rule for each family of operators.

A rule is called with a Call and gives Strategies, of which one is chosen for each mesh dimension: the cheapest, the first among equals. The whole on
every rank is always one of them, and comes first. Pointwise operators and their kin need no entry: `rule_of` finds them by their tags.
"""

from functools import lru_cache

import cresset

__all__ = ["register", "rule_of", "rule_of_tag"]

_OF_TAGS = {}  # "pointwise" → the rule of operators with that tag
_RULES = {}  # "aten::name", or "aten::name.overload" → rule


def register(*names):
    """A decorator: the rule of these operators of `aten` (all overloads, in place and out forms too, unless an overload is named)."""

    def add(rule):
        for name in names:
            _RULES[name if "::" in name else f"aten::{name}"] = rule
        return rule

    return add


def rule_of_tag(tag, rule):
    """Let operators with a tag and no rule of their own have this one."""
    _OF_TAGS[tag] = rule


def _base(name):
    """The name of the operator without the underscore of its in-place form."""
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


@lru_cache(maxsize=None)
def rule_of(op):
    """The rule of an operator, or None."""
    schema = op._schema
    keys = [f"{schema.name}.{schema.overload_name}" if schema.overload_name else f"{schema.name}.default", schema.name, _base(schema.name)]
    for key in keys:
        if key in _RULES:
            return _RULES[key]
    return _OF_TAGS.get("pointwise") if cresset.Tag.pointwise in op.tags else None
