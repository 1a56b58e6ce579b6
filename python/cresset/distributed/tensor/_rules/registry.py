"""Which placements an operator can run with: a rule for each family of operators.

A rule is called with a Call and gives Strategies, of which one is chosen for each mesh dimension: the cheapest, the first among equals. The whole on
every rank is always one of them, and comes first. An operator whose row says how it runs on a batch of examples needs no entry: what vmap may put in
front, ranks may divide among themselves. So the words "pointwise", "random", "leading" and "fold" of the table (docs/design/operator-table.md, Batches)
have rules here, which are made with the number behind the word; operators made of others that have the tag `pointwise` count as such.
"""

from functools import lru_cache

import cresset
from cresset import _C

__all__ = ["batch_word", "register", "register_word", "rule_of"]

_OF_WORDS = {}  # "fold" → a function that makes the rule, of the number behind the word
_RULES = {}  # "aten::name", or "aten::name.overload" → rule


def register(*names):
    """A decorator: the rule of these operators of `aten` (all overloads, in place and out forms too, unless an overload is named)."""

    def add(rule):
        for name in names:
            _RULES[name if "::" in name else f"aten::{name}"] = rule
        return rule

    return add


def register_word(word, make):
    """Let operators whose row has this word of the key `batch`, and no rule of their own here, have the rule `make(number behind it)`."""
    _OF_WORDS[word] = make


def _base(name):
    """The name of the operator without the underscore of its in-place form."""
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


def _functional(op):
    """The functional form of an in-place or out form, None where there is none."""
    namespace, name = _base(op._schema.name).split("::")
    packet = getattr(getattr(cresset.ops, namespace), name, None)
    names = [a.name for a in op._schema.arguments if not a.is_out]
    for overload in packet.overloads() if packet is not None else ():
        found = getattr(packet, overload)
        if found is not op and [a.name for a in found._schema.arguments] == names:
            return found
    return None


@lru_cache(maxsize=None)
def batch_word(op):
    """(word, number) of the row key `batch`; an in-place or out form has that of the functional form."""
    word, number = _C._batch_rule(op._schema.name + (f".{op._schema.overload_name}" if op._schema.overload_name else ""))
    if word in ("functional", "out") and (other := _functional(op)) is not None:
        return batch_word(other)
    return word, number


@lru_cache(maxsize=None)
def rule_of(op):
    """The rule of an operator, or None."""
    schema = op._schema
    keys = [f"{schema.name}.{schema.overload_name}" if schema.overload_name else f"{schema.name}.default", schema.name, _base(schema.name)]
    for key in keys:
        if key in _RULES:
            return _RULES[key]
    word, number = ("pointwise", 0) if cresset.Tag.pointwise in op.tags else batch_word(op)
    return _OF_WORDS[word](number) if word in _OF_WORDS else None
