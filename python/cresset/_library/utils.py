"""What libraries of operators ask about operators by their names and about schemas."""

import inspect

from .._ops import FunctionSchema, ops

__all__ = ["hop_schema_from_fx_node", "is_builtin", "is_functional_schema", "is_tensorlist_like_type", "lookup_op", "parse_namespace"]


def parse_namespace(qualname):
    """("ns", "name") of "ns::name". ValueError for another form."""
    parts = qualname.split("::")
    if len(parts) != 2:
        raise ValueError(
            f"Expected `qualname` to be of the form 'namespace::name', but got {qualname}. The qualname passed to the torch.library "
            "APIs must consist of a namespace and a name, e.g. aten::sin"
        )
    return parts[0], parts[1]


def is_builtin(op):
    """Is an overload one of the library itself, and of no package?"""
    return op.namespace in {"aten", "prim", "prims"}


def lookup_op(qualname):
    """The overload of "ns::name" or "ns::name.overload"; without an overload the one called `default`. AttributeError when there is none."""
    namespace, name = parse_namespace(qualname)
    name, _, overload = name.partition(".")
    return getattr(getattr(getattr(ops, namespace), name), overload or "default")


def is_functional_schema(schema):
    """Does an operator (its schema, or the text of one) return something, write to nothing and return no view?"""
    if not isinstance(schema, FunctionSchema):
        schema = FunctionSchema(str(schema))
    return bool(schema.returns) and not any(a.is_write for a in schema.arguments) and not any(r.alias for r in schema.returns)


def is_tensorlist_like_type(kind):
    """Is the type of an argument a list of tensors, of tensors or None, or either of them or None?"""
    return str(kind).removeprefix("Optional[").rstrip("?]") in ("Tensor[", "Tensor?[", "List[Tensor", "List[Optional[Tensor")


def _type_word(value):
    """The type of an argument or a result in the text of a schema."""
    if isinstance(value, (list, tuple)):
        words = list(dict.fromkeys(map(_type_word, value)))
        return f"{words[0]}[{len(value)}]" if len(words) == 1 else f"({', '.join(map(_type_word, value))})"
    for base, word in _SYMBOLS:
        if isinstance(value, base):
            return word
    return "Tensor" if hasattr(value, "dtype") and hasattr(value, "shape") else type(value).__name__


_SYMBOLS = ((bool, "SymBool"), (int, "SymInt"), (float, "SymFloat"))


def _argument_word(argument):
    if isinstance(argument, (list, tuple)):
        words = list(dict.fromkeys(map(_argument_word, argument)))
        return f"{words[0]}[{len(argument)}]" if len(words) == 1 else f"({', '.join(map(_argument_word, argument))})"
    if getattr(argument, "op", None) == "get_attr":
        return "GraphModule"
    return _type_word(argument.meta["val"]) if hasattr(argument, "meta") else type(argument).__name__


def hop_schema_from_fx_node(node):
    """The schema of a higher-order operator as a node of an exported program calls it, as text: `cond(Tensor pred, GraphModule true_fn, …) -> Tensor[1]`."""
    names = list(inspect.signature(node.target.run).parameters)
    arguments = ", ".join(f"{_argument_word(a)} {name}" for a, name in zip(node.args, names))
    return f"{node.target.name()}({arguments}) -> {_type_word(node.meta['val'])}"
