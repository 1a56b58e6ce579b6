"""Programs as .pt2 archives, in the form that PyTorch 2.13 writes and reads: a graph as JSON, and the bytes of the tensors."""

import io
import json
import operator
import os
import zipfile
from collections import namedtuple

import cresset
from cresset import fx
from cresset.utils import _pytree as pytree
from cresset.utils import _treespec_text

from ._sizes import SizeExpr, int_oo
from .exported_program import ExportedProgram
from .graph_signature import ConstantArgument, CustomObjArgument, InputKind, OutputKind, SymIntArgument

__all__ = ["archive_bytes", "save"]

_SCHEMA = {"major": 8, "minor": 20}
_OPSET = {"aten": 10}
_DTYPES = {
    "uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "float16": 6, "float32": 7, "float64": 8, "complex32": 9, "complex64": 10, "complex128": 11,
    "bool": 12, "bfloat16": 13, "uint16": 28, "float8_e4m3fn": 29, "float8_e5m2": 30, "float8_e4m3fnuz": 31, "float8_e5m2fnuz": 32, "uint32": 34, "uint64": 35,
}  # fmt: skip
_LAYOUTS = {"strided": 7, "sparse_coo": 1, "sparse_csr": 2, "sparse_csc": 3, "sparse_bsr": 4, "sparse_bsc": 5}
_FORMATS = {"contiguous_format": 1, "channels_last": 2, "channels_last_3d": 3, "preserve_format": 4}
_NONE = {"as_none": True}


def _word(value):
    return str(value).rpartition(".")[2]


# --- sizes ---------------------------------------------------------------------------------------------------------------------


def _sum(parts):
    return parts[0] if len(parts) == 1 else f"Add({', '.join(parts)})"


def _expression_text(e):
    """A SizeExpr in sympy's notation of constructors."""
    parts = []
    for coefficient, symbols in e.terms:
        factors = [f"Symbol('{s}', positive=True, integer=True)" for s in symbols]
        factors = factors if coefficient == 1 else [f"Integer({coefficient})", *factors]
        parts.append(factors[0] if len(factors) == 1 else f"Mul({', '.join(factors)})")
    text = _sum([*parts, *([f"Integer({e.inner})"] if e.inner else ())])
    if e.divisor != 1:
        text = f"FloorDiv({text}, Integer({e.divisor}))"
    if e.factor != 1:
        text = f"Mul(Integer({e.factor}), {text})"
    return _sum([text, f"Integer({e.outer})"]) if e.outer else text


def _size(n, hint):
    if isinstance(n, SizeExpr):
        return {"as_expr": {"expr_str": _expression_text(n), "hint": {"as_int": int(hint)}}}
    return {"as_int": int(hint if n is None else n)}  # None: a size of an intermediate without a rule; readers compute it anew


def _device(device):
    return {"type": device.type, "index": device.index}


def _tensor_meta(t, sizes=None):
    shape = sizes or tuple(t.shape)
    return {
        "dtype": _DTYPES[_word(t.dtype)], "sizes": [_size(n, hint) for n, hint in zip(shape, t.shape)], "requires_grad": t.requires_grad,
        "device": _device(t.device), "strides": [{"as_int": s} for s in _strides(t, shape)], "storage_offset": {"as_int": t.storage_offset() if sizes is None else 0},
        "layout": _LAYOUTS[_word(t.layout)],
    }  # fmt: skip


def _strides(t, shape):
    return t.stride() if _word(t.layout) == "strided" else ()


# --- arguments -----------------------------------------------------------------------------------------------------------------


def _is_size(value):
    return isinstance(value, fx.Node) and "expression" in value.meta


def _argument(value, kind=""):
    """One argument. kind: the type that the operator's schema has for it."""
    kind = kind.rstrip("?")
    if isinstance(value, fx.Node):
        known = value.meta.get("val")
        if isinstance(known, (bool, float)):
            return {"as_sym_bool" if isinstance(known, bool) else "as_sym_float": {"as_name": value.name}}
        if _is_size(value):
            return {"as_sym_int": {"as_name": value.name}}
        if value.op == "get_attr":
            return {"as_graph": value.target}
        return {"as_tensor": {"name": value.name}}
    if value is None:
        return _NONE
    if isinstance(value, bool):
        return {"as_bool": value}
    if isinstance(value, int):
        return {"as_float": float(value)} if kind == "float" else {"as_int": value}
    if isinstance(value, float):
        return {"as_float": value if value == value and abs(value) != float("inf") else {float("inf"): "Infinity", float("-inf"): "-Infinity"}.get(value, "NaN")}
    if isinstance(value, complex):
        return {"as_complex": {"real": value.real, "imag": value.imag}}
    if isinstance(value, str):
        return {"as_string": value}
    for cls, key, table in ((cresset.dtype, "as_scalar_type", _DTYPES), (cresset.layout, "as_layout", _LAYOUTS), (cresset.memory_format, "as_memory_format", _FORMATS)):
        if isinstance(value, cls):
            return {key: table[_word(value)]}
    if isinstance(value, cresset.device):
        return {"as_device": _device(value)}
    if isinstance(value, (list, tuple)):
        return _list_argument(list(value), kind)
    raise TypeError(f"export.save: an argument of the type {type(value).__name__} cannot be written.")


def _list_argument(values, kind):
    if not values:
        return {"as_tensors": []} if kind.startswith("Tensor") else {"as_floats": []} if kind.startswith("float") else {"as_ints": []}
    if any(isinstance(v, fx.Node) and not _is_size(v) for v in values):
        if kind.startswith("Tensor?") or any(v is None for v in values):
            return {"as_optional_tensors": [_NONE if v is None else {"as_tensor": {"name": v.name}} for v in values]}
        return {"as_tensors": [{"name": v.name} for v in values]}
    if any(_is_size(v) for v in values):
        return {"as_sym_ints": [{"as_name": v.name} if isinstance(v, fx.Node) else {"as_int": v} for v in values]}
    if all(isinstance(v, bool) for v in values):
        return {"as_bools": values}
    if all(isinstance(v, int) for v in values):
        return {"as_floats": [float(v) for v in values]} if kind.startswith("float") else {"as_ints": values}
    if all(isinstance(v, (int, float)) for v in values):
        return {"as_floats": [float(v) for v in values]}
    if all(isinstance(v, str) for v in values):
        return {"as_strings": values}
    raise TypeError(f"export.save: a list of {', '.join(sorted({type(v).__name__ for v in values}))} cannot be written.")


def _constant(value):
    """A ConstantValue."""
    found = _argument(value)
    if next(iter(found)) not in ("as_none", "as_int", "as_float", "as_string", "as_bool"):
        raise TypeError(f"export.save: a constant input of the type {type(value).__name__} cannot be written.")
    return found


# --- the graph -----------------------------------------------------------------------------------------------------------------


def _target_text(target):
    if isinstance(target, cresset._C.OpOverload):
        return f"torch.ops.{target}"
    module = getattr(target, "__module__", None)
    if module == "_operator":
        return f"_operator.{target.__name__}"
    if target is cresset._sym_sqrt:
        return "torch._sym_sqrt"
    if hasattr(target, "_ns"):
        return f"torch.ops.{target._ns}.{target._name}"
    raise TypeError(f"export.save: a call of {target} cannot be written; operators of torch.ops were required.")


class _GraphWriter:
    """One graph as JSON. inner: {name: graph module} of the graphs that higher-order operators call."""

    def __init__(self, graph, inner):
        self.graph, self.inner = graph, inner
        self.tensors, self.sizes, self.floats, self.truths, self.nodes = {}, {}, {}, {}, []

    def _note(self, node):
        value = node.meta.get("val")
        if isinstance(value, bool):
            self.truths[node.name] = {"as_expr": {"expr_str": "true"}}
        elif isinstance(value, float):
            self.floats[node.name] = {"as_expr": {"expr_str": f"Symbol('{node.meta['expression']}')", "hint": {"as_float": value}}}
        elif _is_size(node):
            self.sizes[node.name] = _size(node.meta["expression"] or value, value)
        elif isinstance(value, cresset.Tensor):
            self.tensors[node.name] = _tensor_meta(value, node.meta.get("sizes") if isinstance(node.meta.get("sizes"), tuple) else None)

    def _results(self, node):
        """The outputs of a node: its own name, or those of the nodes that take its parts."""
        value = node.meta.get("val")
        if not isinstance(value, (list, tuple)):
            return [] if value is None else [_argument(node)]
        parts = {u.args[1]: u for u in node.users if u.target is operator.getitem}
        names = []
        for i, item in enumerate(value):
            if not isinstance(item, cresset.Tensor):
                names.append(None)
                continue
            names.append(parts[i].name if i in parts else f"{node.name}_unused_{i}")
            if i not in parts:
                self.tensors[names[-1]] = _tensor_meta(item, node.meta["sizes"][i] if isinstance(node.meta.get("sizes"), list) else None)
        schema = getattr(node.target, "_schema", None)
        if schema is not None and len(schema.returns) == 1:
            return [{"as_tensors": [{"name": n} for n in names]}]
        return [_NONE if n is None else {"as_tensor": {"name": n}} for n in names]

    def _inputs(self, node):
        schema = getattr(node.target, "_schema", None)
        if schema is None:
            names = ["a", "b"] if getattr(node.target, "__module__", None) == "_operator" else [""] * len(node.args)
            return [{"name": n, "arg": self._any(a), "kind": 1} for n, a in zip(names, node.args)]
        found = [{"name": p.name, "arg": _argument(a, p.type), "kind": 1} for p, a in zip(schema.arguments, node.args)]
        types = {p.name: p.type for p in schema.arguments}
        return found + [{"name": k, "arg": _argument(v, types[k]), "kind": 2} for k, v in node.kwargs.items()]

    def _any(self, value):
        if isinstance(value, fx.Node) and value.op == "get_attr":
            module = self.inner[value.target]
            return {"as_graph": {"name": value.target, "graph": _GraphWriter(module.graph, dict(module.named_children())).run()}}
        return _argument(value, "Tensor[]" if value in ((), []) else "")

    def _metadata(self, node):
        found = {}
        if node.meta.get("stack_trace"):
            found["stack_trace"] = node.meta["stack_trace"].rstrip()
        if node.meta.get("custom"):
            found["custom"] = json.dumps(node.meta["custom"])
        if node.meta.get("torch_fn"):
            found["torch_fn"] = ";".join(node.meta["torch_fn"])
        if node.meta.get("nn_module_stack"):
            found["nn_module_stack"] = ";".join(f"{k},{path},{kind}" for k, (path, kind) in node.meta["nn_module_stack"].items())
        return found

    def run(self):
        """The JSON of the graph."""
        inputs, outputs, single_result = [], [], False
        for node in self.graph.nodes:
            self._note(node)
            if node.op == "placeholder":
                inputs.append({"as_tensor": {"name": node.name}} if isinstance(node.meta.get("val"), cresset.Tensor) else _argument(node.meta.get("val")))
            elif node.op == "output":
                single_result = not isinstance(node.args[0], (list, tuple))
                values = [node.args[0]] if single_result else node.args[0]
                outputs = [_argument(v) for v in values]
            elif node.op == "call_function" and node.target is not operator.getitem:
                single = {"is_hop_single_tensor_return": False} if not hasattr(node.target, "_schema") and hasattr(node.target, "_ns") else {"is_hop_single_tensor_return": None}
                self.nodes.append({
                    "target": _target_text(node.target), "inputs": self._inputs(node), "outputs": self._results(node), "metadata": self._metadata(node), **single,
                    "name": node.name,
                })  # fmt: skip
        return {
            "inputs": inputs, "outputs": outputs, "nodes": self.nodes, "tensor_values": self.tensors, "sym_int_values": self.sizes, "sym_bool_values": self.truths,
            "is_single_tensor_return": single_result, "custom_obj_values": {}, "sym_float_values": self.floats,
        }  # fmt: skip


# --- the signature -------------------------------------------------------------------------------------------------------------


def _spec_argument(argument):
    if isinstance(argument, ConstantArgument):
        return _argument(argument.value)
    if isinstance(argument, SymIntArgument):
        return {"as_sym_int": {"as_name": argument.name}}
    return {"as_tensor": {"name": argument.name}}


def _input_spec(spec):
    name = {"name": spec.arg.name}
    if spec.kind is InputKind.PARAMETER:
        return {"parameter": {"arg": name, "parameter_name": spec.target}}
    if spec.kind is InputKind.BUFFER:
        return {"buffer": {"arg": name, "buffer_name": spec.target, "persistent": bool(spec.persistent)}}
    if spec.kind is InputKind.CONSTANT_TENSOR:
        return {"tensor_constant": {"arg": name, "tensor_constant_name": spec.target}}
    if isinstance(spec.arg, ConstantArgument):
        return {"constant_input": {"name": spec.arg.name, "value": _constant(spec.arg.value)}}
    return {"user_input": {"arg": _spec_argument(spec.arg)}}


def _output_spec(spec):
    name = {"name": spec.arg.name}
    if spec.kind is OutputKind.BUFFER_MUTATION:
        return {"buffer_mutation": {"arg": name, "buffer_name": spec.target}}
    if spec.kind is OutputKind.PARAMETER_MUTATION:
        return {"parameter_mutation": {"arg": name, "parameter_name": spec.target}}
    if spec.kind is OutputKind.USER_INPUT_MUTATION:
        return {"user_input_mutation": {"arg": name, "user_input_name": spec.target}}
    return {"user_output": {"arg": _spec_argument(spec.arg)}}


def _namedtuples(spec, found):
    if spec.type is namedtuple:
        kind = spec.context
        found[_treespec_text._namedtuples[kind]] = list(kind._fields)
    for child in getattr(spec, "children_specs", ()):
        _namedtuples(child, found)
    return found


def _call_entry(entry):
    if entry.signature is None:
        return {"fqn": entry.fqn, "signature": None}
    s = entry.signature
    return {
        "fqn": entry.fqn,
        "signature": {
            "inputs": [_spec_argument(a) for a in s.inputs], "outputs": [_spec_argument(a) for a in s.outputs], "in_spec": pytree.treespec_dumps(s.in_spec),
            "out_spec": pytree.treespec_dumps(s.out_spec), "forward_arg_names": s.forward_arg_names,
        },
    }  # fmt: skip


def _limit(n):
    return None if n == int_oo or n == -int_oo else int(n)


def _program(ep):
    signature = ep.module_call_graph[0].signature
    fields = _namedtuples(signature.out_spec, _namedtuples(signature.in_spec, {}))
    specs, custom = ep.graph_signature, ep.graph_module.meta.get("custom")
    custom = {} if custom is None else {"custom": json.dumps(custom)}
    return {
        "graph_module": {
            "graph": _GraphWriter(ep.graph, dict(ep.graph_module.named_children())).run(),
            "signature": {"input_specs": [_input_spec(s) for s in specs.input_specs], "output_specs": [_output_spec(s) for s in specs.output_specs]},
            "module_call_graph": [_call_entry(e) for e in ep.module_call_graph], "metadata": custom, "treespec_namedtuple_fields": fields,
        },
        "opset_version": _OPSET,
        "range_constraints": {str(s): {"min_val": _limit(r.lower), "max_val": _limit(r.upper)} for s, r in ep.range_constraints.items()},
        "schema_version": _SCHEMA, "verifiers": [ep.dialect], "torch_version": "2.13.0", "guards_code": [],
    }  # fmt: skip


# --- tensors -------------------------------------------------------------------------------------------------------------------


def _bytes(t):
    flat = t.detach().cpu().contiguous().reshape(-1)
    return bytes(memoryview(flat.view(cresset.uint8))) if flat.numel() else b""


def _tensors(named, stem):
    """(config, {file: bytes}): tensors over one memory share a file."""
    config, files, known = {}, {}, {}
    for name, t in named.items():
        whole = t.detach()
        storage = whole.untyped_storage()
        meta = _tensor_meta(t)
        if storage.nbytes() == whole.numel() * whole.element_size() and not whole.is_contiguous() or storage.nbytes() > whole.numel() * whole.element_size():
            whole = whole.as_strided((storage.nbytes() // whole.element_size(),), (1,), 0)
        key = (storage._cdata, storage.nbytes())
        if key not in known:
            known[key] = f"{stem}_{len(files)}"
            files[known[key]] = _bytes(whole)
        config[name] = {"path_name": known[key], "is_param": isinstance(t, cresset.nn.Parameter), "use_pickle": False, "tensor_meta": meta}
    return {"config": config}, files


def _is_builtin(spec):
    return spec.type in (None, tuple, list, dict) and all(map(_is_builtin, spec.children()))


def _examples(ep):
    """The example inputs as a checkpoint; nothing where they have containers of the user's classes, which no other program knows."""
    if ep.example_inputs is None or not _is_builtin(ep.call_spec.in_spec):
        return b""
    buffer = io.BytesIO()
    cresset.save(ep.example_inputs, buffer)
    return buffer.getvalue()


def archive_bytes(ep, name="archive", extra_files=None):
    """The archive of a program. TypeError for arguments that the format does not have."""
    for spec in ep.graph_signature.input_specs:
        if isinstance(spec.arg, CustomObjArgument):
            raise NotImplementedError(f"torch.export.save: the program takes an object of {spec.arg.class_fqn} ({spec.arg.name}), and a file loads no objects. Take it out.")
    weights, weight_files = _tensors(ep.state_dict, "weight")
    constants, constant_files = _tensors(ep.constants, "tensor")
    entries = {f"data/weights/{k}": v for k, v in weight_files.items()}
    entries["data/weights/model_weights_config.json"] = json.dumps(weights)
    entries.update((f"data/constants/{k}", v) for k, v in constant_files.items())
    entries["data/constants/model_constants_config.json"] = json.dumps(constants)
    entries["models/model.json"] = json.dumps(_program(ep))
    entries["data/sample_inputs/model.pt"] = _examples(ep)
    entries.update((f"extra/{k}", v) for k, v in (extra_files or {}).items())
    entries.update({"archive_format": "pt2", "archive_version": "0", ".data/version": "6\n", "byteorder": "little", ".data/serialization_id": "0" * 40})
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as z:
        for path, data in entries.items():
            z.writestr(f"{name}/{path}", data)
    return buffer.getvalue()


def save(ep, f, *, extra_files=None, opset_version=None, pickle_protocol=2):
    """Write a program to a path or a file object, as PyTorch's torch.export.save does: torch.export.load reads it, and so does `load` here.

    extra_files: {name: text} that go into the file. TypeError for what is no ExportedProgram.
    """
    del opset_version, pickle_protocol
    for text in (extra_files or {}).values():
        if not isinstance(text, str):
            raise AssertionError(f"Expected string but got {type(text)}")
    if not isinstance(ep, ExportedProgram):
        raise TypeError(f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}' instead.")
    stem = "archive" if hasattr(f, "write") else os.path.splitext(os.path.basename(os.fspath(f)))[0]
    data = archive_bytes(ep, stem, extra_files)
    if hasattr(f, "write"):
        f.write(data)
        return
    with open(f, "wb") as out:
        out.write(data)
