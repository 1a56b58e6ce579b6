"""Runs graphs of scripts in Python, node by node: with the operators that they name, on whatever tensors come, and with Python's lists and dicts."""

import functools
import operator

import cresset
from cresset import _C, _script_operators
from cresset._subclasses.fake_tensor import FakeTensor
from cresset.utils import _pytree as pytree
from cresset.utils._python_dispatch import _disable_current_modes

__all__ = ["Interpreter", "is_supported"]

# By the numbers that graphs have in their place.
_DTYPES = (
    "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32", "complex64", "complex128", "bool", "qint8", "quint8", "qint32",
    "bfloat16",
)  # fmt: skip
_LAYOUTS = ("strided", "sparse_coo", "sparse_csr")
_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
_NUMBERED = {"ScalarType": _DTYPES, "Layout": _LAYOUTS, "MemoryFormat": _FORMATS}


class _Object:
    """An object of a class that Python does not know."""


def _number_of_dtype(dtype):
    return _DTYPES.index(str(dtype).rpartition(".")[2])


@functools.cache
def _schema(text):
    return cresset._ops.parse_schema(text)


@functools.cache
def _overload(qualname, overload):
    namespace, _, name = qualname.partition("::")
    if name.startswith("__"):  # of the language itself, such as __range_length; `ops` has those of tensors
        packet = _script_operators.packet_of(qualname) or getattr(getattr(cresset.ops, namespace), name)
    else:
        packet = getattr(getattr(cresset.ops, namespace), name)
    return getattr(packet, overload or "default")


def _named(kind, value):
    """Graphs have numbers of dtypes, layouts and memory formats."""
    names = _NUMBERED.get(str(kind).rstrip("?"))
    return getattr(cresset, names[value]) if names is not None and type(value) is int else value


def _is_constant(value):
    """Is it written in the graph: a constant, or a list of such?"""
    node = value.node()
    return node.kind() == "prim::Constant" or node.kind() == "prim::ListConstruct" and all(map(_is_constant, node.inputs()))


def _tensor_of_number(n, dtype=None, device=None):
    """A number that the graph computed as a tensor: an operator of the program, and no constant."""
    kinds = {bool: cresset.bool, int: cresset.int64, float: cresset.get_default_dtype(), complex: cresset.complex64}
    return cresset.ops.aten.full.default([], n, dtype=dtype or kinds[type(n)], device=device)


class Interpreter:
    """run(inputs) gives what the graph gives: its one output, or a tuple of several."""

    def __init__(self, graph):
        self.graph = graph
        self.numbers = {}  # {id: (tensor, number)} of tensors that the graph made of numbers
        self.own = [None]  # for each recorded branch around: ids of the lists and dicts that it made

    def run(self, inputs):
        """The graph's result."""
        env = {v.debugName(): x for v, x in zip(self.graph.inputs(), inputs, strict=True)}
        self._nodes(self.graph.nodes(), env)
        outputs = [env[v.debugName()] for v in self.graph.outputs()]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _nodes(self, nodes, env):
        for node in nodes:
            kind = node.kind()
            run = _FLOW.get(kind)
            if run is not None:
                results = run(self, node, env)
            else:
                results = self._call(node, [env[v.debugName()] for v in node.inputs()])
            env.update(zip((v.debugName() for v in node.outputs()), results))

    def _call(self, node, values):
        """The results of a node without blocks."""
        kind = node.kind()
        form = _NODES.get(kind)
        if form is not None:
            return form(self, node, values)
        schema = _schema(node.schema())
        form = _container_form(kind, values)
        if form is not None:
            return [self._on_container(form, schema, values)]
        form = _FORMS.get(kind)
        result = form(self, node, *values) if form is not None else NotImplemented
        if result is NotImplemented:
            result = self._operator(schema, values)
        return [result] if node.outputsSize() == 1 else result or []

    def _operator(self, schema, values):
        arguments = schema.arguments
        values = [_named(a.type, self.plain(a.type, v)) for a, v in zip(arguments, values)]
        split = next((i for i, a in enumerate(arguments) if a.kwarg_only), len(arguments))
        named = {a.name: v for a, v in zip(arguments[split:], values[split:])}
        return _overload(schema.name, schema.overload_name)(*values[:split], **named)

    def plain(self, kind, value):
        """The number in place of a tensor that was made of it, where an operator takes a number."""
        known = self.numbers.get(id(value))
        return known[1] if known is not None and "Tensor" not in str(kind) else value

    def note_number(self, tensor, number):
        """The tensor, which was made of the number."""
        self.numbers[id(tensor)] = tensor, number
        return tensor

    def made(self, container):
        """The list or dict, which a recorded branch may change."""
        if self.own[-1] is not None:
            self.own[-1][id(container)] = container
        return container

    def _on_container(self, form, schema, values):
        written = schema.arguments and schema.arguments[0].is_write
        if written and self.own[-1] is not None and id(values[0]) not in self.own[-1]:
            raise NotImplementedError(f"{schema.name}: a branch on a tensor changes a {type(values[0]).__name__} from outside. Give the new one as a result.")
        result = form(*values)
        return self.made(result) if schema.name in _NEW_CONTAINERS else result

    def block(self, block, inputs, env):
        """The results of a block, whose names are seen there alone."""
        inner = dict(env)
        inner.update(zip((v.debugName() for v in block.inputs()), inputs))
        self._nodes(block.nodes(), inner)
        return [inner[v.debugName()] for v in block.outputs()]


# --- control flow: (interpreter, node, values by name) -> results


def _if(run, node, env):
    condition = env[node.input().debugName()]
    blocks = list(node.blocks())
    if not isinstance(condition, cresset.Tensor):
        return run.block(blocks[0 if condition else 1], [], env)
    others, specs = [], []

    def branch(block):
        def recorded():
            run.own.append({})
            try:
                leaves, spec = pytree.tree_flatten(run.block(block, [], env))
            finally:
                run.own.pop()
            specs.append(spec)
            others.append([None if isinstance(x, cresset.Tensor) else (x,) for x in leaves])
            return tuple(x for x in leaves if isinstance(x, cresset.Tensor))

        return recorded

    found = iter(cresset.cond(condition, branch(blocks[0]), branch(blocks[1]), ()))
    if specs[0] != specs[1] or others[0] != others[1]:
        raise NotImplementedError("TS2EPConverter: the branches on a tensor give different values that are no tensors, or lists of different lengths. Make tensors of them.")
    return pytree.tree_unflatten([next(found) if other is None else other[0] for other in others[0]], specs[0])


def _loop(run, node, env):
    count, condition, *carried = (env[v.debugName()] for v in node.inputs())
    (block,) = node.blocks()
    at = 0
    while True:
        if isinstance(condition, cresset.Tensor):
            raise NotImplementedError("TS2EPConverter: the end of a loop depends on a tensor. Write it with torch.while_loop.")
        if not condition or at >= count:
            return carried
        condition, *carried = run.block(block, [at, *carried], env)
        at += 1


_FLOW = {"prim::If": _if, "prim::Loop": _loop}


# --- nodes of the language: (interpreter, node, values) -> results


def _constant(run, node, values):
    value = None if node.mustBeNone() else node.output().toIValue()
    # One element as a constant whose value is known, as if the program wrote it down.
    return [cresset.ops.aten.lift_fresh.default(value) if isinstance(value, cresset.Tensor) and value.numel() == 1 else value]


def _set_attribute(run, node, values):
    owner, value = values
    if run.own[-1] is not None and id(owner) not in run.own[-1]:
        raise NotImplementedError(f"TS2EPConverter: a branch on a tensor assigns the attribute {node.s('name')}. Assign it behind the branch.")
    setattr(owner, node.s("name"), value)
    return []


def _object(run, node, values):
    cls = cresset.jit._classes.class_of_type(node.output().type())
    return [run.made(_Object() if cls is None else cls.__new__(cls))]


def _method(run, node, values):
    owner, *rest = values
    return [getattr(owner, node.s("name"))(*rest)]


def _raise(run, node, values):
    message, *kind = values
    raise cresset.jit.Error(f"{kind[0] if kind and kind[0] else 'Exception'}: {message}")


def _number_to_tensor(run, node, values):
    (number,) = values
    return [number if isinstance(number, cresset.Tensor) else run.note_number(_tensor_of_number(number), number)]


def _is_instance(run, node, values):
    kind = _C._jit_try_infer_type(values[0]).type()
    return [any(kind.isSubtypeOf(k) for k in node.tys("types"))]


def _to_list(run, node, values):
    return [values[0].tolist()]


def _same(run, node, values):
    return [values[0]]


_NODES = {
    "prim::Constant": _constant,
    "prim::GetAttr": lambda run, node, values: [getattr(values[0], node.s("name"))],
    "prim::SetAttr": _set_attribute,
    "prim::CreateObject": _object,
    "prim::CallMethod": _method,
    "prim::Enter": lambda run, node, values: [values[0].__enter__()],
    "prim::Exit": lambda run, node, values: [values[0].__exit__(None, None, None)],
    "prim::ListConstruct": lambda run, node, values: [run.made(list(values))],
    "prim::TupleConstruct": lambda run, node, values: [tuple(values)],
    "prim::DictConstruct": lambda run, node, values: [run.made(dict(zip(values[::2], values[1::2])))],
    "prim::ListUnpack": lambda run, node, values: list(values[0]),
    "prim::TupleUnpack": lambda run, node, values: list(values[0]),
    "prim::TupleIndex": lambda run, node, values: [values[0][values[1]]],
    "prim::TupleSlice": lambda run, node, values: [values[0][node.i("beg") : node.i("end")]],
    "prim::RaiseException": _raise,
    "prim::NumToTensor": _number_to_tensor,
    "prim::isinstance": _is_instance,
    "prim::tolist": _to_list,
    "prim::Uninitialized": lambda run, node, values: [None],
    "prim::Print": lambda run, node, values: [],
    "prim::unchecked_cast": _same,
    "prim::unchecked_unwrap_optional": _same,
    "prim::data": lambda run, node, values: [values[0].detach()],
    **dict.fromkeys(("profiler::_record_function_enter", "profiler::_record_function_enter_new"), lambda run, node, values: [None]),
    "profiler::_record_function_exit": lambda run, node, values: [],
}


# --- operators with another meaning in Python: (interpreter, node, arguments) -> result, NotImplemented where the operator itself is called


def _known_number(run, value):
    """The number of a tensor that the graph made of one, or that is a constant; of a number itself. None where it is not known."""
    if not isinstance(value, cresset.Tensor):
        return value
    known = run.numbers.get(id(value))
    if known is not None:
        return known[1]
    constant = value.constant if isinstance(value, FakeTensor) else value
    if constant is None:
        return None
    with _disable_current_modes():
        return constant.item()


def _number(kind):
    def form(run, node, value):
        known = _known_number(run, value)
        return kind(value.item() if known is None else known)

    return form


def _truth(run, node, value):
    """A tensor stays one, for the branches on it; numbers and known tensors become truths."""
    known = _known_number(run, value)
    return value if known is None else bool(known)


def _not(run, node, value):
    return cresset.logical_not(value) if isinstance(value, cresset.Tensor) else not value


def _both(of_tensors, of_truths):
    def form(run, node, a, b):
        either = isinstance(a, cresset.Tensor) or isinstance(b, cresset.Tensor)
        return NotImplemented if either and "Tensor" in _schema(node.schema()).overload_name else (of_tensors if either else of_truths)(a, b)

    return form


def _tensor(run, node, data, dtype=None, device=None, requires_grad=False):
    dtype = _named("ScalarType", dtype)
    if isinstance(data, cresset.Tensor):
        return data.detach().clone() if dtype is None else data.to(dtype)
    if _is_constant(next(iter(node.inputs()))):
        return cresset.tensor(data, dtype=dtype, device=device)
    return _stacked(data, dtype, device)


def _as_tensor(run, node, data, dtype=None, device=None):
    if isinstance(data, cresset.Tensor):
        return data.to(device=data.device if device is None else device, dtype=data.dtype if dtype is None else _named("ScalarType", dtype))
    return _tensor(run, node, data, dtype, device)


def _stacked(data, dtype, device):
    if isinstance(data, (list, tuple)):
        return cresset.stack([_stacked(x, dtype, device) for x in data]) if data else cresset.empty(0, dtype=dtype, device=device)
    return _tensor_of_number(data, dtype, device)


def _attribute(name):
    return lambda run, node, value: getattr(value, name)


def _sizes(run, node, value, dim=None):
    return list(value.shape) if dim is None else value.shape[dim]


_FORMS = {
    "aten::Bool": _truth, "aten::Int": _number(int), "aten::IntImplicit": _number(int), "aten::Float": _number(float), "aten::FloatImplicit": _number(float),
    "aten::Complex": lambda run, node, *values: NotImplemented if len(values) > 1 else _number(complex)(run, node, *values),
    "aten::ScalarImplicit": _number(lambda x: x), "aten::item": _number(lambda x: x),
    "aten::__is__": lambda run, node, a, b: a is b, "aten::__isnot__": lambda run, node, a, b: a is not b, "aten::__not__": _not,
    "aten::__and__": _both(cresset.logical_and, lambda a, b: a & b), "aten::__or__": _both(cresset.logical_or, lambda a, b: a | b),
    "aten::tensor": _tensor, "aten::as_tensor": _as_tensor, "aten::size": _sizes, "prim::shape": _sizes,
    "aten::stride": lambda run, node, t, d=None: list(t.stride()) if d is None else t.stride(d),
    "aten::dim": lambda run, node, t: t.dim(), "aten::numel": lambda run, node, t: t.numel(), "prim::dtype": lambda run, node, t: _number_of_dtype(t.dtype),
    "prim::layout": lambda run, node, t: _LAYOUTS.index(str(t.layout).rpartition(".")[2]), "aten::_unwrap_optional": lambda run, node, x: x,
    "aten::is_floating_point": lambda run, node, t: t.is_floating_point(), "aten::is_complex": lambda run, node, t: t.is_complex(), "aten::get_device": lambda run, node, t: t.get_device(),
    **{f"prim::{name}": _attribute(name) for name in ("device", "is_cuda", "is_cpu", "is_sparse", "is_quantized", "is_mkldnn", "is_meta", "requires_grad", "ndim", "itemsize", "type")},
}  # fmt: skip


# --- lists, dicts and tuples: they are Python's, so that what changes them changes the one object


def _set_item(container, key, value):
    container[key] = value


def _append(container, value):
    container.append(value)
    return container


def _delete(container, key):
    del container[key]


def _changed(name):
    def form(container, *values):
        return getattr(container, name)(*values)

    return form


def _sorted(container, reverse=False):
    container.sort(reverse=bool(reverse))


_CONTAINERS = {
    "aten::__getitem__": lambda c, k: c[k], "aten::_set_item": _set_item, "aten::append": _append, "aten::Delete": _delete, "aten::len": len,
    "aten::__contains__": lambda c, k: k in c, "aten::add": operator.add, "aten::add_": operator.iadd, "aten::mul": operator.mul,
    "aten::slice": lambda c, start=None, end=None, step=1: c[start:end:step],
    "aten::eq": operator.eq, "aten::ne": operator.ne, "aten::list": list, "aten::copy": lambda c: c.copy(), "aten::keys": lambda c: list(c), "aten::values": lambda c: list(c.values()),
    "aten::items": lambda c: list(c.items()), "aten::get": lambda c, k, default=None: c.get(k, default), "aten::sort": _sorted, "aten::sorted": sorted, "aten::dict": dict,
    **{f"aten::{name}": _changed(name) for name in ("extend", "insert", "pop", "clear", "reverse", "remove", "index", "count", "setdefault", "update", "popitem")},
}  # fmt: skip


_NEW_CONTAINERS = frozenset(f"aten::{name}" for name in ("add", "mul", "slice", "list", "copy", "keys", "values", "items", "sorted", "dict"))


def _container_form(kind, values):
    return _CONTAINERS.get(kind) if values and isinstance(values[0], (list, dict, tuple)) else None


def is_supported(node):
    """Is it known how a node runs? What depends on values is not seen."""
    kind = node.kind()
    if kind in _FLOW or kind in _NODES or kind in _FORMS or kind in _CONTAINERS:
        return True
    text = node.schema()
    if "::" not in text:
        return False
    schema = _schema(text)
    try:
        _overload(schema.name, schema.overload_name)
    except AttributeError:
        return False
    return True
