"""Rules of operators from outside."""

from .._call import Strategy
from .._rules.registry import _RULES, rule_of
from .._state import dispatcher

__all__ = ["register_sharding"]


def _key(op):
    schema = op._schema
    return f"{schema.name}.{schema.overload_name or 'default'}"


def register_sharding(op):
    """A decorator: what an operator, or each of a list, can run with along one dimension of a mesh.

    The function is called with the arguments, a DTensorSpec in the place of each tensor, and gives a list of (placements of the results, placements of the
    arguments; None for what is no tensor). The cheapest is chosen for each mesh dimension. A rule that there is is replaced.
    """
    ops = op if isinstance(op, (list, tuple)) else [op]

    def add(function):
        def rule(call):
            found = []
            for outputs, inputs in function(*call.args, **call.kwargs):
                wanted = tuple(p for p in inputs if p is not None)
                if len(wanted) != len(call.specs):
                    raise ValueError(f"register_sharding: {call.op}: placements for {len(call.specs)} tensors were required; {len(wanted)} were given.")
                found.append(Strategy(outputs[0] if len(outputs) == 1 else tuple(outputs), wanted))
            return found

        for each in ops:
            _RULES[_key(each)] = rule
        rule_of.cache_clear()
        dispatcher.decisions.clear()
        return function

    return add

