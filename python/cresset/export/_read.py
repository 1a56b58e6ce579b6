"""The graphs of .pt2 files as fx graphs, with their signatures. Nothing in a file is run, and no module is imported because a file names it."""

import json
import math
import operator
import sys

import cresset
from cresset import fx
from cresset._subclasses.fake_tensor import FakeTensorMode
from cresset._subclasses.unknown_values import CHOOSING
from cresset.utils import _pytree as pytree

from ._read_sizes import size_of_text
from ._save import _DTYPES, _FORMATS, _LAYOUTS
from ._sizes import SizeExpr, Symbol, ValueRanges, int_oo
from ._symbolic_values import SizeNumber, with_sizes
from .exported_program import ModuleCallEntry, ModuleCallSignature
from .graph_signature import ConstantArgument, ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec, SymIntArgument, TensorArgument

__all__ = ["Unreadable", "read_program"]

_DTYPE_OF = {number: getattr(cresset, name) for name, number in _DTYPES.items() if hasattr(cresset, name)}
_LAYOUT_OF = {number: getattr(cresset, name) for name, number in _LAYOUTS.items()}
_FORMAT_OF = {number: getattr(cresset, name) for name, number in _FORMATS.items()}
_OPERATORS = frozenset("add sub mul floordiv truediv mod pow neg eq ne lt le gt ge and_ or_ not_ getitem pos".split())
_SYM_FUNCTIONS = frozenset("sym_int sym_float sym_max sym_min sym_not sym_ite sym_sum sym_sqrt _sym_sqrt".split())
_ITEMS = frozenset({"aten.item.default", "aten._local_scalar_dense.default"})


class Unreadable(RuntimeError):
    """The file has what this reader does not know; the text says what."""


def _only(argument):
    """(kind, value) of `{"as_int": 3}`."""
    if not isinstance(argument, dict) or len(argument) != 1:
        raise Unreadable(f"export.load: an argument of one kind was required; {str(argument)[:80]} was given.")
    return next(iter(argument.items()))


def _function(name):
    """The function that a node's target names."""
    first, _, rest = name.partition(".")
    if name.startswith("torch.ops."):
        namespace, *parts = name[len("torch.ops.") :].split(".")
        if namespace == "higher_order":
            from . import _control_flow, _scans

            known = (*vars(_control_flow).values(), *vars(_scans).values())
            found = next((o for o in known if isinstance(o, _control_flow.Operator) and getattr(o, "_name", None) == parts[0]), None)
            return found or getattr(cresset.ops.higher_order, parts[0])
        found = getattr(cresset.ops, namespace)
        for part in parts:
            found = getattr(found, part)
        return found
    if first == "_operator" and rest in _OPERATORS:
        return getattr(operator, rest)
    if first == "torch" and rest in _SYM_FUNCTIONS:
        return getattr(cresset, rest)
    if first == "math" and rest in ("ceil", "floor", "trunc"):
        return getattr(math, rest)
    raise Unreadable(f"export.load: the function {name!r} is not supported.")


def _stack(text):
    """meta["nn_module_stack"]"""
    found = {}
    for entry in text.split(";") if text else ():
        key, path, kind = (*entry.split(",", 2), "", "")[:3]
        found[key] = path, kind
    return found


class _GraphReader:
    """One graph. known: the numbers that symbols of the file have in examples."""

    def __init__(self, document, mode, known):
        self.document, self.mode, self.known = document, mode, known
        self.graph, self.nodes, self.root = fx.Graph(), {}, cresset.nn.Module()
        used = set()
        _names_in(document["outputs"], used)
        for node in document["nodes"]:
            _names_in(node["inputs"], used)
        self.used = used

    # --- values

    def _size(self, entry):
        """(the number, the number or expression; None where it is not known)"""
        kind, value = _only(entry)
        if kind == "as_int":
            return value, value
        found, hint = size_of_text(value["expr_str"]), value.get("hint") or {}
        number = hint.get("as_int") if hint else None
        if isinstance(found, SizeExpr):
            if number is None:
                number = found.value({s: self.known.setdefault(s, 2) for s in found.symbols()})
            elif found.symbol is not None:
                self.known.setdefault(found.symbol, number)
        return (2 if number is None else number), found

    def _tensor(self, node, name):
        meta = self.document["tensor_values"].get(name)
        if meta is None:
            return
        pairs = [self._size(n) for n in meta["sizes"]]
        shape, sizes = [n for n, _ in pairs], tuple(e for _, e in pairs)
        strides = [n for n, _ in map(self._size, meta["strides"])]
        layout, dtype = _LAYOUT_OF[meta["layout"]], _DTYPE_OF[meta["dtype"]]
        plain = layout is cresset.strided and len(strides) == len(shape)
        with cresset.no_grad():
            same = all(isinstance(n, int) for n in sizes)
            real = cresset.empty_strided(shape, strides, dtype=dtype, device="meta") if plain and same else cresset.empty(shape, dtype=dtype, device="meta")
        value = self.mode._wrap(real, cresset.device(meta["device"]["type"], meta["device"]["index"]) if meta["device"]["index"] is not None else cresset.device(meta["device"]["type"]))
        if meta["requires_grad"] and (dtype.is_floating_point or dtype.is_complex):
            value.requires_grad_()
        if not same:
            node.meta["sizes"], value = sizes, with_sizes(value, sizes)
            if str(node.target) in CHOOSING and isinstance(sizes[0], SizeExpr) and _place(sizes[0]) is not None:
                node.meta["value"] = _place(sizes[0])
        node.meta["val"] = value

    def _number(self, node, name):
        number, expression = self._size(self.document["sym_int_values"][name])
        node.meta["expression"] = expression if isinstance(expression, SizeExpr) else None
        node.meta["val"] = SizeNumber(number, expression) if isinstance(expression, SizeExpr) else number
        self._asked(node)

    def _float(self, node, name):
        value = self.document["sym_float_values"][name].get("as_expr") or {}
        hint = value.get("hint") or {}
        node.meta["val"], node.meta["expression"] = float(hint.get("as_float", 2.5)), size_of_text(value.get("expr_str", ""))
        self._asked(node)

    def _asked(self, node):
        if str(node.target) in _ITEMS and isinstance(node.meta["expression"], SizeExpr) and _place(node.meta["expression"]) is not None:
            node.meta["value"] = _place(node.meta["expression"])

    def _note(self, node, argument):
        """meta["val"] of a node that gives what the argument says."""
        kind, value = _only(argument)
        if kind == "as_tensor":
            self._tensor(node, value["name"])
        elif kind == "as_sym_int":
            self._number(node, value["as_name"])
        elif kind == "as_sym_float":
            self._float(node, value["as_name"])
        elif kind == "as_sym_bool":
            node.meta["val"] = True

    # --- arguments

    def _named(self, name):
        if name not in self.nodes:
            raise Unreadable(f"export.load: a value that was computed before ({name!r}) was required.")
        return self.nodes[name]

    def _sym(self, value):
        kind, one = _only(value)
        return self._named(one) if kind == "as_name" else one

    def argument(self, argument):
        """A node or a value."""
        kind, value = _only(argument)
        if kind == "as_none":
            return None
        if kind in ("as_int", "as_bool", "as_string", "as_ints", "as_bools", "as_strings"):
            return value
        if kind in ("as_float", "as_floats"):
            return list(map(float, value)) if kind == "as_floats" else float(value)  # "Infinity", "NaN"
        if kind == "as_complex":
            return complex(value["real"], value["imag"])
        if kind == "as_tensor":
            return self._named(value["name"])
        if kind == "as_tensors":
            return [self._named(t["name"]) for t in value]
        if kind in ("as_optional_tensors", "as_nested_tensors"):
            return [self.argument(t) if "name" not in t else self._named(t["name"]) for t in value]
        if kind == "as_optional_tensor":
            return self.argument(value)
        if kind in ("as_sym_int", "as_sym_float", "as_sym_bool"):
            return self._sym(value)
        if kind in ("as_sym_ints", "as_sym_floats", "as_sym_bools"):
            return [self._sym(v) for v in value]
        if kind == "as_scalar_type":
            return _DTYPE_OF[value]
        if kind == "as_layout":
            return _LAYOUT_OF[value]
        if kind == "as_memory_format":
            return _FORMAT_OF[value]
        if kind == "as_device":
            return cresset.device(value["type"]) if value.get("index") is None else cresset.device(value["type"], value["index"])
        if kind == "as_graph":
            return self._inner(value)
        raise Unreadable(f"export.load: an argument of the kind {kind!r} is not supported.")

    def _inner(self, value):
        """The node of the graph module of a branch or a loop."""
        name = value["name"]
        if not hasattr(self.root, name):
            reader = _GraphReader(value["graph"], self.mode, self.known)
            for at, entry in enumerate(value["graph"]["inputs"]):
                reader.placeholder(entry, f"arg_{at}")
            setattr(self.root, name, reader.module(name))
        return self.graph.create_node("get_attr", name, name=name)

    def placeholder(self, argument, name):
        """An input, which has its own name where it is a tensor or a number that varies."""
        kind, value = _only(argument)
        if isinstance(value, dict):
            name = value.get("name", value.get("as_name", name))
        node = self.nodes[name] = self.graph.create_node("placeholder", name, (), {}, name=name)
        self._note(node, argument)
        if "val" not in node.meta and not isinstance(value, dict):
            node.meta["val"] = self.argument(argument)
        return node

    # --- nodes

    def _arguments(self, function, inputs):
        schema, args, kwargs = getattr(function, "_schema", None), [], {}
        if schema is None:
            for entry in inputs:
                if entry.get("kind") == 2:
                    kwargs[entry["name"]] = self.argument(entry["arg"])
                else:
                    value = self.argument(entry["arg"])
                    args.append(tuple(value) if isinstance(value, list) and str(function) in ("cond", "while_loop") else value)
            return tuple(args), kwargs
        given, left_out = {entry["name"]: entry for entry in inputs}, False
        for parameter in schema.arguments:
            entry = given.pop(parameter.name, None)
            if entry is None:
                left_out = True
                continue
            value = self.argument(entry["arg"])
            if isinstance(value, int) and not isinstance(value, bool) and parameter.type == "float":
                value = float(value)
            if entry.get("kind") == 2 or parameter.kwarg_only or left_out:
                kwargs[parameter.name] = value
            else:
                args.append(value)
        if given:
            raise Unreadable(f"export.load: {function} has no argument {next(iter(given))!r}.")
        return tuple(args), kwargs

    def _metadata(self, node, text):
        if text.get("stack_trace"):
            node.meta["stack_trace"] = text["stack_trace"] + "\n"
        if "nn_module_stack" in text:
            node.meta["nn_module_stack"] = _stack(text["nn_module_stack"])
        if text.get("custom"):
            node.meta["custom"] = json.loads(text["custom"])
        if text.get("torch_fn"):
            node.meta["torch_fn"] = tuple(text["torch_fn"].split(";"))

    def _parts(self, node, outputs):
        """The nodes of the tensors in a result of several."""
        values, sizes = [], []
        for at, output in enumerate(outputs):
            kind, value = _only(output)
            name = value["name"] if kind == "as_tensor" else value.get("as_name") if isinstance(value, dict) else None
            if name is None:
                values.append(None)
                continue
            part = self.graph.create_node("call_function", operator.getitem, (node, at), {}, name=name)
            self._note(part, output)
            values.append(part.meta.get("val"))
            sizes.append(part.meta.get("sizes") or tuple(getattr(values[-1], "shape", ())))
            part.meta.update((k, v) for k, v in node.meta.items() if k in ("stack_trace", "nn_module_stack", "torch_fn"))
            self.nodes[name] = part
            if name not in self.used:
                self.graph.erase_node(part)
        node.meta["val"] = values
        if any(not isinstance(n, int) for s in sizes for n in s):
            node.meta["sizes"] = sizes

    def _node(self, entry):
        function, outputs = _function(entry["target"]), entry["outputs"]
        args, kwargs = self._arguments(function, entry["inputs"])
        kind, value = _only(outputs[0]) if len(outputs) == 1 else (None, None)
        single = kind is not None and kind != "as_tensors" and entry.get("is_hop_single_tensor_return") is not False
        name = (value.get("name", value.get("as_name")) if isinstance(value, dict) else None) if single else None
        node = self.graph.create_node("call_function", function, args, kwargs, name=name or entry.get("name") or None)
        self._metadata(node, entry["metadata"])
        if single:
            self._note(node, outputs[0])
            if name:
                self.nodes[name] = node
        elif kind == "as_tensors":
            self._parts(node, [{"as_tensor": t} for t in value])
        elif outputs:
            self._parts(node, outputs)
            node.meta["val"] = tuple(node.meta["val"])
        else:
            node.meta["val"] = None

    def run(self):
        """The graph, after its placeholders."""
        for entry in self.document["nodes"]:
            self._node(entry)
        values = [self.argument(a) for a in self.document["outputs"]]
        self.graph.output(values[0] if self.document.get("is_single_tensor_return") and len(values) == 1 else tuple(values))

    def module(self, name="GraphModule"):
        """The graph module."""
        self.run()
        return fx.GraphModule(self.root, self.graph, name)


def _place(expression):
    """The number in `u0` and `zuf0`, the symbols of values; None for others."""
    text = str(expression.symbol or "")
    digits = text.removeprefix("zuf").removeprefix("u")
    return int(digits) if digits.isdigit() and digits != text else None


def _names_in(value, found):
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "as_graph":
                continue
            if key in ("name", "as_name") and isinstance(inner, str):
                found.add(inner)
            _names_in(inner, found)
    elif isinstance(value, list):
        for inner in value:
            _names_in(inner, found)


# --- signatures ----------------------------------------------------------------------------------------------------------------


def _spec_argument(argument, reader):
    kind, value = _only(argument)
    if kind == "as_tensor":
        return TensorArgument(value["name"])
    if kind == "as_sym_int" and "as_name" in value:
        return SymIntArgument(value["as_name"])
    if kind in ("as_sym_float", "as_sym_bool") and "as_name" in value:
        return TensorArgument(value["as_name"])
    return ConstantArgument("", reader.argument(argument))


def _input(entry, reader):
    kind, spec = _only(entry)
    name = spec.get("name") if kind == "constant_input" else spec["arg"].get("name")
    if kind == "user_input":
        return InputSpec(InputKind.USER_INPUT, _spec_argument(spec["arg"], reader), None)
    if kind == "constant_input":
        return InputSpec(InputKind.USER_INPUT, ConstantArgument(name, reader.argument(spec["value"])), None)
    if kind == "parameter":
        return InputSpec(InputKind.PARAMETER, TensorArgument(name), spec["parameter_name"])
    if kind == "buffer":
        return InputSpec(InputKind.BUFFER, TensorArgument(name), spec["buffer_name"], spec.get("persistent", True))
    if kind == "tensor_constant":
        return InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(name), spec["tensor_constant_name"])
    raise Unreadable(f"export.load: an input of the kind {kind!r} is not supported.")


def _output(entry, reader):
    kind, spec = _only(entry)
    if kind == "user_output":
        return OutputSpec(OutputKind.USER_OUTPUT, _spec_argument(spec["arg"], reader), None)
    if kind in ("buffer_mutation", "parameter_mutation", "user_input_mutation"):
        target = spec[{"user_input_mutation": "user_input_name"}.get(kind, kind.replace("mutation", "name"))]
        return OutputSpec(OutputKind[kind.upper()], TensorArgument(spec["arg"]["name"]), target)
    raise Unreadable(f"export.load: an output of the kind {kind!r} is not supported.")


def _structure(text):
    """A TreeSpec; Unreadable where it names what would have to be imported."""
    _check_structure(json.loads(text))
    try:
        return pytree.treespec_loads(text)
    except NotImplementedError as problem:
        raise Unreadable(f"export.load: {problem}") from problem


def _check_structure(value):
    if isinstance(value, str) and value[:1] in '[{"':
        try:
            value = json.loads(value)
        except ValueError:
            return
    if isinstance(value, dict):
        named = [value[k] for k in ("fqn", "default_factory_module") if isinstance(value.get(k), str)]
        if any(name.partition(":")[0] not in sys.modules for name in named):
            raise Unreadable(f"export.load: inputs and outputs that name {named[0]!r} are not supported unless it is imported before.")
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_structure(inner)


def _call(entry, reader):
    s = entry.get("signature")
    if s is None:
        return ModuleCallEntry(entry["fqn"], None)
    inputs, outputs = ([_spec_argument(a, reader) for a in s[k]] for k in ("inputs", "outputs"))
    return ModuleCallEntry(entry["fqn"], ModuleCallSignature(inputs, outputs, _structure(s["in_spec"]), _structure(s["out_spec"]), s.get("forward_arg_names")))


def _ranges(document):
    return {Symbol(s): ValueRanges(-int_oo if r["min_val"] is None else r["min_val"], int_oo if r["max_val"] is None else r["max_val"]) for s, r in document.items()}


def read_program(text):
    """(GraphModule, ExportGraphSignature, ranges, [ModuleCallEntry], dialect) of the JSON of a file. Unreadable for what this reader does not know."""
    document = json.loads(text)
    parts = document["graph_module"]
    reader = _GraphReader(parts["graph"], FakeTensorMode(allow_fallback_kernels=True, allow_non_fake_inputs=True), {})
    inputs = [_input(entry, reader) for entry in parts["signature"]["input_specs"]]
    for spec, argument in zip(inputs, parts["graph"]["inputs"], strict=True):
        reader.placeholder(argument, spec.arg.name)
    module = reader.module()
    if (parts.get("metadata") or {}).get("custom"):
        module.meta["custom"] = json.loads(parts["metadata"]["custom"])
    outputs = [_output(entry, reader) for entry in parts["signature"]["output_specs"]]
    calls = [_call(entry, reader) for entry in parts["module_call_graph"]]
    verifiers = document.get("verifiers") or ["TRAINING"]
    return module, ExportGraphSignature(inputs, outputs), _ranges(document["range_constraints"]), calls, verifiers[0]
