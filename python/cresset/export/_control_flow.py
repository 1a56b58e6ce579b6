"""torch.cond and torch.while_loop in exported programs: their functions become graphs, and what these use of the program around them operands."""

import cresset
from cresset import _C, fx
from cresset._higher_order import HigherOrderOperator
from cresset._subclasses.fake_tensor import FakeTensor
from cresset.fx.experimental.proxy_tensor import PythonKeyTracer, _note_value, _track_tree, is_fake_object
from cresset.fx.graph import Graph
from cresset.fx.proxy import Proxy
from cresset.utils import _pytree as pytree

from ._effects import has_effect
from ._errors import UserError, UserErrorType

__all__ = ["Operator", "cond_operator", "while_loop_operator", "record_cond", "record_while_loop"]

# A recorder has a `tracer`, which is exchanged while a function is recorded; `switched(on)`, a block in which operators are recorded or not; and
# `values(run, tensors)`: what the program itself goes on with, or None for fakes in its place.


class Operator(HigherOrderOperator):
    """A function of graphs, as programs have it. While a program is recorded it is recorded again."""

    def __call__(self, /, *args, **kwargs):
        flat = pytree.tree_leaves((args, kwargs))
        if _C._has_torch_function(tuple(flat)):
            return cresset.overrides.handle_torch_function(self, tuple(flat), *args, **kwargs)
        return self.run(*args, **kwargs)

    def run(self, *args):
        """What it gives."""
        raise NotImplementedError


class _Cond(Operator):
    """Of two graphs with the same operands, the one that a tensor of one element chooses: its results, a tuple."""

    def __init__(self):
        super().__init__("cond")

    def run(self, pred, true_fn, false_fn, operands=()):
        """See the class."""
        return cresset.cond(pred, true_fn, false_fn, operands)


class _WhileLoop(Operator):
    """A graph of the carried tensors and the operands as long as another one of them gives true: the last carried tensors, a tuple."""

    def __init__(self):
        super().__init__("while_loop")

    def run(self, cond_fn, body_fn, carried_inputs, additional_inputs=()):
        """See the class."""
        return cresset.while_loop(lambda *v: cond_fn(*v, *additional_inputs), lambda *v: tuple(body_fn(*v, *additional_inputs)), tuple(carried_inputs))


cond_operator, while_loop_operator = _Cond(), _WhileLoop()


class _BranchTracer(PythonKeyTracer):
    """Records one function; tensors of the program around it are placeholders that are made when they are first used."""

    def __init__(self, outer):
        super().__init__()
        self.outer, self.fake_mode = outer, outer.fake_mode
        self.root, self.graph, self.tensor_attrs = cresset.nn.Module(), Graph(tracer_cls=PythonKeyTracer), {}
        self.inner = {}  # graph modules of functions in this one, by name
        self.operands = {}  # id -> (tensor, node of the program around, placeholder here), in the order of the placeholders

    def add(self, tensor, initial=None):
        """The placeholder of a tensor from outside, or of one that stands for others of which `initial` is the first."""
        if id(tensor) not in self.operands:
            outside = self.outer.create_arg(self.outer.proxy_of(tensor if initial is None else initial))
            first = next((n for n in self.graph.nodes if n.op != "placeholder"), None)
            with self.graph.inserting_before(first) if first is not None else self.graph.inserting_after():
                node = self.graph.create_node("placeholder", outside.name, (), {}, name=outside.name)
            node.target = node.name
            proxy = Proxy(node, self)
            self.track(tensor, proxy)
            _note_value(self, proxy, tensor)
            self.operands[id(tensor)] = (tensor, outside, node)
        return self.operands[id(tensor)][2]

    def create_node(self, *args, **kwargs):
        node = super().create_node(*args, **kwargs)
        self.outer.describe(node)
        return node

    def describe(self, node):
        """As the tracer around it."""
        self.outer.describe(node)

    @property
    def keeps_operand_names(self):
        """As the tracer around it."""
        return self.outer.keeps_operand_names

    def create_arg(self, a):
        """Tensors that are not known come from outside."""
        if isinstance(a, cresset.Tensor) and not isinstance(a, Proxy):
            return self.add(a)
        if is_fake_object(a):
            raise UserError(UserErrorType.ANTI_PATTERN, f"An object of {a.script_class_name} is used in a branch or loop. Use it outside.")
        return super().create_arg(a)


class _Probe(_BranchTracer):
    """Leaves no trace in the program around: for what a function uses of it."""

    def add(self, tensor, initial=None):
        """A placeholder."""
        if id(tensor) not in self.operands:
            node = self.graph.create_node("placeholder", f"operand_{len(self.operands)}", (), {})
            self.track(tensor, Proxy(node, self))
            self.operands[id(tensor)] = (tensor, None, node)
        return self.operands[id(tensor)][2]


def _recorded(recorder, function, operands, initial, kind=_BranchTracer):
    """The tracer of one function, and its result. initial: of the tensors among the operands those outside, None where they are the same."""
    outer = recorder.tracer
    tracer = recorder.tracer = kind(outer)
    try:
        tensors = [leaf for leaf in pytree.tree_leaves(operands) if isinstance(leaf, cresset.Tensor)]
        for tensor, first in zip(tensors, initial or [None] * len(tensors)):
            tracer.add(tensor, first)
        with recorder.switched(True):
            result = function(*operands)
    finally:
        recorder.tracer = outer
    return tracer, result


def _branch(recorder, function, operands):
    tracer, result = _recorded(recorder, function, operands, None)
    leaves, spec = pytree.tree_flatten(result)
    if not all(isinstance(x, cresset.Tensor) for x in leaves):
        raise UserError(UserErrorType.INVALID_OUTPUT, "torch.cond: a branch must give tensors, or containers of tensors.")
    return tracer, leaves, spec, [tracer.create_arg(tracer.proxy_of(x)) for x in leaves]


def _check(tracer, place):
    given = {node for _, _, node in tracer.operands.values()}
    for node in tracer.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if schema is not None and schema.is_mutable and given & set(node.all_input_nodes):
            raise UserError(UserErrorType.ANTI_PATTERN, f"{place} writes to a tensor from outside ({node.target}). Write to a copy.")


def _form(tensor):
    return tuple(tensor.shape), tensor.dtype, tensor.device


def _shown(tensors):
    return ", ".join(f"{x.dtype}{list(x.shape)}" if isinstance(x, cresset.Tensor) else type(x).__name__ for x in tensors)


def record_cond(recorder, *arguments):
    """What torch.cond gives while a program is recorded: nodes for both branches. UserError for branches that do not fit together."""
    with recorder.switched(False):
        return _record_cond(recorder, *arguments)


def record_while_loop(recorder, *arguments):
    """What torch.while_loop gives while a program is recorded: nodes for one pass. UserError for functions that do not fit the carried tensors."""
    with recorder.switched(False):
        return _record_while_loop(recorder, *arguments)


def _record_cond(recorder, pred, true_fn, false_fn, operands):
    outer = recorder.tracer
    (one, leaves, spec, nodes), (other, other_leaves, other_spec, other_nodes) = (_branch(recorder, fn, operands) for fn in (true_fn, false_fn))
    if spec != other_spec or [_form(x) for x in leaves] != [_form(x) for x in other_leaves]:
        words = f"torch.cond: the branches give different results: ({_shown(leaves)}) and ({_shown(other_leaves)})."
        raise UserError(UserErrorType.INVALID_OUTPUT, words)
    _unite(one, other)
    graphs = _installed(outer, ("true_graph", one, tuple(nodes)), ("false_graph", other, tuple(other_nodes)), place="torch.cond: a branch")
    outside = tuple(Proxy(node, outer) for _, node, _ in one.operands.values())
    proxy = outer.create_proxy("call_function", cond_operator, (outer.proxy_of(pred), *graphs, outside), {}, name="cond")
    found = recorder.values(lambda: pytree.tree_leaves((true_fn if pred else false_fn)(*operands)), (pred, *leaves, *other_leaves))
    return pytree.tree_unflatten(_results(outer, leaves if found is None else found, proxy, found is None), spec)


def _record_while_loop(recorder, cond_fn, body_fn, carried):
    outer = recorder.tracer
    # What is carried is another tensor in each pass.
    copies = [outer.fake_mode.snapshot(x) if isinstance(x, FakeTensor) else x.detach().clone() for x in carried]
    test, goes_on = _recorded(recorder, cond_fn, copies, carried)
    if not isinstance(goes_on, cresset.Tensor) or goes_on.numel() != 1:
        raise UserError(UserErrorType.INVALID_OUTPUT, f"torch.while_loop: cond_fn must give a tensor of one element, but gave {_shown([goes_on])}.")
    body, new = _recorded(recorder, body_fn, copies, carried)
    new = list(new) if isinstance(new, (tuple, list)) else [new]
    if not all(isinstance(x, cresset.Tensor) for x in new) or [_form(x) for x in new] != [_form(x) for x in carried]:
        words = f"Expected body_fn_output and carried_inputs to have same metadata but found: ({_shown(new)}) and ({_shown(carried)})."
        raise UserError(UserErrorType.INVALID_OUTPUT, words)
    ends = test.create_arg(test.proxy_of(goes_on)), tuple(body.create_arg(body.proxy_of(x)) for x in new)
    _unite(test, body)
    graphs = _installed(
        outer, ("while_loop_cond_graph", test, ends[0]), ("while_loop_body_graph", body, ends[1]), place="torch.while_loop: one of the functions"
    )
    outside = [Proxy(node, outer) for _, node, _ in test.operands.values()]
    arguments = (*graphs, tuple(outside[: len(carried)]), tuple(outside[len(carried) :]))
    proxy = outer.create_proxy("call_function", while_loop_operator, arguments, {}, name="while_loop")
    found = recorder.values(lambda: _looped(cond_fn, body_fn, carried), (*carried, *new))
    return tuple(_results(outer, new if found is None else found, proxy, found is None))


def _looped(cond_fn, body_fn, carried):
    while cond_fn(*carried):
        new = body_fn(*carried)
        carried = tuple(new) if isinstance(new, (tuple, list)) else (new,)
    return carried


def _unite(one, other):
    """Both functions have the same operands, in the order of the first."""
    for tensor, *_ in list(one.operands.values()):
        other.add(tensor)
    for tensor, *_ in list(other.operands.values()):
        one.add(tensor)
    for tracer in (one, other):
        for key in reversed(one.operands):
            tracer.graph._root.append(tracer.operands[key][2])


def _installed(outer, *functions, place):
    """The graphs of (kind, tracer, output) as modules of the program around, and what gets them there."""
    found = []
    for kind, tracer, output in functions:
        tracer.graph.output(output)
        _check(tracer, place)
        if kind not in outer.keeps_operand_names:
            _number(tracer.graph)
        tracer.graph.eliminate_dead_code(lambda node: "value" in node.meta or has_effect(node))
        name = f"{kind}_{sum(known.startswith(kind) for known in outer.inner)}"
        root = cresset.nn.Module()
        for path, module in tracer.inner.items():
            setattr(root, path, module)
        outer.inner[name] = fx.GraphModule(root, tracer.graph, name)
        found.append(Proxy(outer.graph.create_node("get_attr", name, (), {}, name=name), outer))
    return found


def _number(graph):
    """Placeholders are arg0_1, arg1_1, …"""
    placeholders = [n for n in graph.nodes if n.op == "placeholder"]
    for prefix, last in (("_operand_", ""), ("arg", "_1")):  # the names may be each other's
        for i, node in enumerate(placeholders):
            node._rename(f"{prefix}{i}{last}")
            node.target = node.name


def _results(outer, leaves, proxy, fakes):
    own = outer.fake_mode.snapshot if fakes else cresset.Tensor.detach
    results = tuple(own(x) if isinstance(x, cresset.Tensor) else x for x in leaves)
    _track_tree(outer, results, proxy)
    return list(results)
