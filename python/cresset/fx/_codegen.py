"""Python source from the nodes of a Graph."""

import builtins
import contextlib
import enum
import inspect
import keyword
import math
import re
import types
import typing
from dataclasses import dataclass
from typing import Any, NamedTuple

import cresset

from .. import _C
from ..utils import _pytree as pytree
from . import _names
from . import _pytree as fx_pytree
from ._annotations import describe_tensor, paint, source_comment
from .node import Node, _get_qualified_name, map_arg

__all__ = ["CodeGen", "PythonCode"]


class _CustomBuiltin(NamedTuple):
    """A name that generated code may use without importing it."""

    import_str: str
    obj: Any


_custom_builtins = {}


def _register_custom_builtin(name, import_str, obj):
    _custom_builtins[name] = _CustomBuiltin(import_str, obj)


_register_custom_builtin("inf", "from math import inf", math.inf)
_register_custom_builtin("nan", "from math import nan", math.nan)
_register_custom_builtin("NoneType", "NoneType = type(None)", type(None))
_register_custom_builtin("torch", "import torch", cresset)
_register_custom_builtin("device", "from torch import device", cresset.device)
_register_custom_builtin("fx_pytree", "import torch.fx._pytree as fx_pytree", fx_pytree)
_register_custom_builtin("pytree", "import torch.utils._pytree as pytree", pytree)


class _Namespace:
    """Names that are given once, without those that mean something in generated code."""

    def __init__(self):
        self._obj_to_name, self._used_names, self._highest = {}, set(), {}

    def create_name(self, candidate, obj):
        """The name of obj: the one it has, or the candidate with a number behind it where it is taken."""
        known = self._name_of(obj)
        if known is not None:
            return known
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        if candidate in self._used_names or self._is_taken(candidate, obj):
            numbered = re.fullmatch(r"(.+)_(\d+)", candidate)
            base, number = (numbered[1], int(numbered[2])) if numbered else (candidate, 0)
            number = max(number, self._highest.get(base, 0))
            while candidate in self._used_names or self._is_taken(candidate, obj):
                number += 1
                candidate = f"{base}_{number}"
        self.associate_name_with_obj(candidate, obj)
        return candidate

    def _name_of(self, obj):
        if obj is None:
            return None
        try:
            return self._obj_to_name.get(obj)
        except TypeError:
            return self._obj_to_name.get(("at", id(obj)))

    @staticmethod
    def _is_taken(name, obj):
        if keyword.iskeyword(name):
            return True
        if hasattr(builtins, name):
            return getattr(builtins, name) is not obj
        return name in _custom_builtins and _custom_builtins[name].obj is not obj

    def associate_name_with_obj(self, name, obj):
        """Note a name as given to obj, which may be None."""
        numbered = re.fullmatch(r"(.+)_(\d+)", name)
        if numbered:
            self._highest[numbered[1]] = max(int(numbered[2]), self._highest.get(numbered[1], 0))
        self._used_names.add(name)
        if obj is not None:
            try:
                self._obj_to_name[obj] = name
            except TypeError:
                self._obj_to_name["at", id(obj)] = name

    def _rename_object(self, obj, name):
        self._obj_to_name[obj] = name
        self._used_names.add(name)


@dataclass
class PythonCode:
    """Source of a function and what it names. _lineno_map: line below the head -> number of the node."""

    src: str
    globals: dict
    _lineno_map: dict | None
    _prologue_start: int = 0


magic_methods = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}", "ge": "{} >= {}",
    "pos": "+{}", "neg": "-{}", "invert": "~{}", "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}",
    "truediv": "{} / {}", "div": "{} / {}", "mod": "{} % {}", "pow": "{} ** {}", "lshift": "{} << {}", "rshift": "{} >> {}",
    "and_": "{} & {}", "or_": "{} | {}", "xor": "{} ^ {}", "getitem": "{}[{}]", "matmul": "{} @ {}",
}  # fmt: skip
inplace_methods = {
    "iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}", "imod": "{} %= {}", "imul": "{} *= {}",
    "imatmul": "{} @= {}", "ior": "{} |= {}", "ipow": "{} **= {}", "irshift": "{} >>= {}", "isub": "{} -= {}", "itruediv": "{} /= {}",
    "ixor": "{} ^= {}", "setitem": "{}[{}] = {}",
}  # fmt: skip
_TYPING_NAMES = {list: "List", dict: "Dict", set: "Set", frozenset: "FrozenSet", tuple: "Tuple", type: "Type"}


def _format_target(base, target):
    """`base.a.b`, with getattr for parts that are no names."""
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


class _Writer:
    """Writes one function."""

    def __init__(self, codegen, namespace, root_module, **shown):
        self.codegen, self.namespace, self.root_module = codegen, namespace, root_module
        self.shown = shown  # verbose, include_stride, include_device, colored, expanded_def, additional_meta
        self.globals, self.wrapped, self.free_vars, self.body, self.line_nodes = {}, {}, [], [], []
        self.return_annotation = ""
        self.last_trace = None

    # --- names --------------------------------------------------------------------------------------------------------------

    def global_name(self, hint, obj):
        """The name under which generated code finds obj."""
        if _names.is_from_torch(obj) and obj is not cresset.device and hint.startswith("torch."):
            self._add("torch", cresset)
            return hint
        name = self.namespace.create_name("device" if obj is cresset.device else hint, obj)
        self._add(name, obj)
        return name

    def _add(self, name, obj):
        if name not in self.globals:
            self.namespace.associate_name_with_obj(name, None)
            self.globals[name] = obj

    def type_text(self, kind):
        """An annotation."""
        if kind == ():
            return "()"
        if isinstance(kind, list):
            return f"[{','.join(map(self.type_text, kind))}]"
        text = _names.type_text(kind)
        # Annotations that are objects of a class with parameters, as TensorType, have the two attributes and are not known to typing.
        origin = typing.get_origin(kind) or getattr(kind, "__origin__", None)
        if origin is None:
            return self.global_name(text, kind)
        if not isinstance(kind, types.GenericAlias) and origin in _TYPING_NAMES:
            origin = getattr(typing, _TYPING_NAMES[origin])
        elif origin is types.UnionType:
            origin = typing.Union
        args = [type(None) if a is None else a for a in typing.get_args(kind) or getattr(kind, "__args__", None) or ()]
        if origin is tuple and not args:
            args = [()]
        name = self.global_name(_names.type_text(origin), origin)
        return f"{name}[{','.join(map(self.type_text, args))}]" if args else name

    def value(self, arg):
        """An argument as an expression."""
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            name = self.global_name(_names.type_text(type(arg)), type(arg))
            return f"{name}({', '.join(map(self.value, arg))}{',' if len(arg) == 1 else ''})"
        if isinstance(arg, _C.OpOverload) or type(arg).__name__ in ("OpOverloadPacket", "HigherOrderOperator"):
            return self.global_name(_get_qualified_name(arg), arg)
        if isinstance(arg, enum.Enum):
            return f"{self.global_name(_names.type_text(type(arg)), type(arg))}.{arg.name}"
        if isinstance(arg, tuple) and type(arg) is tuple:
            return f"({', '.join(map(self.value, arg))}{',' if len(arg) == 1 else ''})"
        if isinstance(arg, list):
            return f"[{', '.join(map(self.value, arg))}]"
        if isinstance(arg, dict):
            return f"{{{', '.join(f'{k!r}: {self.value(v)}' for k, v in arg.items())}}}"
        if isinstance(arg, slice):
            return f"slice({self.value(arg.start)}, {self.value(arg.stop)}, {self.value(arg.step)})"
        if isinstance(arg, _PRINTED):
            return repr(arg).replace("cresset.", "torch.")
        return paint(repr(arg), "blue", self.shown.get("colored") and not isinstance(arg, (str, type(None))))

    def arguments(self, args, kwargs):
        """The text between the parentheses of a call."""
        return ", ".join([*map(self.value, args), *(f"{k} = {self.value(v)}" for k, v in kwargs.items())])

    # --- statements ---------------------------------------------------------------------------------------------------------

    def annotation(self, node):
        if self.shown.get("verbose"):
            text = describe_tensor(node, self.shown)
            if text is not None:
                return f': "{text}"'
        return "" if node.type is None else f" : {self.type_text(node.type)}"

    def emit(self, node):
        getattr(self, f"_emit_{node.op}")(node)

    def _emit_placeholder(self, node):
        default = f" = {self.value(node.args[0])}" if node.args else ""
        self.free_vars.append(f"{node.target}{self.annotation(node)}{default}")
        raw = node.target.replace("*", "")
        if raw != repr(node):
            self.body.append(f"{node!r} = {raw}\n")

    def _emit_call_method(self, node):
        call = f"{_format_target(self.value(node.args[0]), node.target)}({self.arguments(node.args[1:], node.kwargs)})"
        self.body.append(f"{node!r}{self.annotation(node)} = {call}")

    def _emit_call_function(self, node):
        target, args = node.target, node.args
        name = getattr(target, "__name__", None)
        if getattr(target, "__module__", None) == "_operator" and not node.kwargs:
            if name in magic_methods:
                self.body.append(f"{node!r}{self.annotation(node)} = {magic_methods[name].format(*map(self.value, args))}")
                return
            if name in inplace_methods:
                text = inplace_methods[name].format(*map(self.value, args))
                self.body.append(f"{text};  {node!r}{self.annotation(node)} = {self.value(args[0])}")
                return
        path = _get_qualified_name(target)
        global_name = self.global_name(path, target)
        if target is getattr and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier() and not node.kwargs:
            self.body.append(f"{node!r}{self.annotation(node)} = {_format_target(self.value(args[0]), args[1])}")
            return
        self.body.append(f"{node!r}{self.annotation(node)} = {global_name}({self.arguments(args, node.kwargs)})")
        if node.meta.get("is_wrapped", False):
            self.wrapped.setdefault(global_name)

    def _emit_call_module(self, node):
        call = f"{_format_target(self.root_module, node.target)}({self.arguments(node.args, node.kwargs)})"
        self.body.append(f"{node!r}{self.annotation(node)} = {call}")

    def _emit_get_attr(self, node):
        self.body.append(f"{node!r}{self.annotation(node)} = {_format_target(self.root_module, node.target)}")

    def _emit_output(self, node):
        if node.type is not None:
            self.return_annotation = f" -> {self.type_text(node.type)}"
        self.body.append(self.codegen._call_generate_output(node.args[0], self.value))

    def release(self, node, dying):
        """`;  x = y = None` behind the last use of x and y."""
        if node.op == "placeholder":
            return
        if node.op == "output":
            self.body.append("\n")
            return
        names = [repr(n) for n in dying]
        if names:
            text = " = ".join([*names, "None"])
            self.body.append(f";  {paint(text, 'dim', self.shown.get('colored'))}\n")
        else:
            self.body.append("\n")


_PRINTED = (cresset.dtype, cresset.layout, cresset.memory_format, cresset.Size)


def _last_uses(nodes):
    """{node: the nodes whose last user it is, and itself when nobody uses it}"""
    seen, dying = set(), {}
    for node in reversed(nodes):
        own = dying.setdefault(node, [])

        def note(argument):
            if argument not in seen:
                seen.add(argument)
                own.append(argument)

        map_arg(node.args, note)
        map_arg(node.kwargs, note)
        if not node.users and node.op not in ("placeholder", "output"):
            own.append(node)
    return dying


class CodeGen:
    """Turns nodes into source. Derive from it, and give it to Graph.set_codegen, to change how generated functions look.

    gen_fn_def writes the head, generate_output the return, process_inputs and process_outputs do in an Interpreter what these do in source.
    """

    _sym_repr = staticmethod(repr)

    def __init__(self):
        self._body_transformer = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars, maybe_return_annotation, *, expanded_def=False):
        """The head of the function. free_vars: parameters as text; self is put in front of them."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        if expanded_def:
            return f"def {self._func_name}(\n" + "".join(f"    {v},\n" for v in free_vars) + f"){maybe_return_annotation}:"
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args, *, descs=None, repr_fn=None):
        """The return statement."""
        return f"return {(repr_fn or repr)(output_args)}"

    def process_inputs(self, *args):
        """What the placeholders get for the arguments of a call."""
        return args

    def process_outputs(self, outputs):
        """What a call gives for the value of the output node."""
        return outputs

    def additional_globals(self):
        """[(name, object)] that the generated function needs besides."""
        return []

    def _call_generate_output(self, args, repr_fn):
        if "repr_fn" in inspect.signature(self.generate_output).parameters:
            return self.generate_output(args, repr_fn=repr_fn)
        return self.generate_output(args)

    def _head(self, writer):
        if "expanded_def" in inspect.signature(self.gen_fn_def).parameters:
            return self.gen_fn_def(writer.free_vars, writer.return_annotation, expanded_def=bool(writer.shown.get("expanded_def")))
        return self.gen_fn_def(writer.free_vars, writer.return_annotation)

    def _gen_python_code(self, nodes, root_module, namespace, *, verbose=False, **shown):
        nodes = list(nodes)
        writer = _Writer(self, namespace, root_module, verbose=verbose, **shown)
        for name, value in self.additional_globals():
            writer.global_name(name, value)
        dying, ends = _last_uses(nodes), []
        for number, node in enumerate(nodes):
            if verbose and node.op not in ("placeholder", "output"):
                writer.body.append(source_comment(writer, node))
            writer.emit(node)
            writer.release(node, dying[node])
            ends.append((sum(text.count("\n") for text in writer.body), number))
        body = writer.body or ["pass\n"]
        if self._body_transformer:
            text = "".join(body)
            body = self._body_transformer(body)
            at = "".join(body).find(text)
            ends = [] if at < 0 else _shifted(ends, "".join(body)[:at].count("\n"))
        for name, builtin in _custom_builtins.items():
            writer.globals.setdefault(name, builtin.obj)
        code = "\n".join("    " + line for line in "".join(body).lstrip("\n").split("\n"))
        head = self._head(writer)
        wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in writer.wrapped if name.isidentifier())  # others are of modules that wrap them
        front = f"\n{wraps}\n\n{head}"
        source = f"{front}\n{code}"
        return PythonCode(source, writer.globals, _line_map(ends), front.count("\n") + 1)


def _shifted(ends, lines):
    return [(-lines, None), *((end, number) for end, number in ends)] if lines else ends


def _line_map(ends):
    table, line = {}, 0
    if ends and ends[0][1] is None:
        shift = -ends[0][0]
        return {key + shift: value for key, value in _line_map(ends[1:]).items()}
    for end, number in ends:
        while line < end:
            line += 1
            table[line] = number
    if ends:
        table[line + 1] = ends[-1][1]
    return table


class _PyTreeInfo(NamedTuple):
    """Names of a function's parameters, structure of its arguments and of its result."""

    orig_args: list
    in_spec: Any
    out_spec: Any


class _PyTreeCodeGen(CodeGen):
    """A function whose arguments and result are trees of what the graph has."""

    def __init__(self, pytree_info):
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs):
        """The leaves of the arguments."""
        return fx_pytree.tree_flatten_spec(list(inputs), self.pytree_info.in_spec) if not self._by_name() else pytree.arg_tree_leaves(*inputs)

    def _by_name(self):
        spec = self.pytree_info.in_spec
        return spec.num_children == 2 and spec.type is tuple and spec.children_specs[0].type is tuple and spec.children_specs[1].type is dict

    def process_outputs(self, out):
        """The tree of the results."""
        if not isinstance(out, (list, tuple)) or isinstance(out, Node):
            out = [out]
        return pytree.tree_unflatten(out, self.pytree_info.out_spec) if self.pytree_info.out_spec is not None else out

    def gen_fn_def(self, free_vars, maybe_return_annotation, *, expanded_def=False):
        """The head, and the line that flattens the arguments."""
        if self.pytree_info is None:
            return super().gen_fn_def(free_vars, maybe_return_annotation, expanded_def=expanded_def)
        names = list(self.pytree_info.orig_args)
        has_self = bool(names) and names[0] == "self"
        if has_self:
            names.remove("self")
        head = super().gen_fn_def(["self", *names], maybe_return_annotation, expanded_def=expanded_def)
        if free_vars and free_vars[0] == "self":
            free_vars = free_vars[1:]
        if not free_vars:
            return head
        bare = [re.split(r"\s*[:=]", v, maxsplit=1)[0] for v in free_vars]
        annotated = [v.split("=")[0].strip() for v in free_vars if ":" in v]
        if annotated:
            head += "\n    " + "".join(f"{v}; " for v in annotated) + "\n"
        if self._by_name():
            keywords = self.pytree_info.in_spec.children_specs[1].context
            positional = [n for n in names if n not in keywords]
            tree = f"(({', '.join(positional)}{',' if len(positional) == 1 else ''}), {{{', '.join(f'{k!r}:{k}' for k in keywords)}}})"
        else:
            tree = f"[{', '.join(names)}]"
        return f"{head}\n    {', '.join(bare)}, = fx_pytree.tree_flatten_spec({tree}, self._in_spec)"

    def generate_output(self, output_args, *, descs=None, repr_fn=None):
        """The return of the tree."""
        repr_fn = repr_fn or repr
        if self.pytree_info is not None and self.pytree_info.out_spec is not None:
            if isinstance(output_args, (list, tuple)):
                text = f"[{', '.join(map(repr_fn, output_args))}]"
            else:
                text = f"[{repr_fn(output_args)}]"
            return f"return pytree.tree_unflatten({text}, self._out_spec)"
        return super().generate_output(output_args, descs=descs, repr_fn=repr_fn)


@contextlib.contextmanager
def nodes_named_in(namespace, nodes):
    """For a block nodes read as their names in the namespace."""
    nodes = list(nodes)
    before = [n._repr_fn for n in nodes]
    for node in nodes:
        node._repr_fn = lambda n: namespace.create_name(n.name, n)
    try:
        yield
    finally:
        for node, old in zip(nodes, before):
            node._repr_fn = old
