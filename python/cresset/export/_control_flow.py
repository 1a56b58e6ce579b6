"""torch.cond in exported programs: both branches become graphs, and what they use of the program around them becomes operands."""

import cresset
from cresset import fx
from cresset._higher_order import HigherOrderOperator
from cresset.fx.experimental.proxy_tensor import PythonKeyTracer, _note_value, _track_tree
from cresset.fx.graph import Graph
from cresset.fx.proxy import Proxy
from cresset.utils import _pytree as pytree

from ._errors import UserError, UserErrorType

__all__ = ["cond_operator", "record_cond"]


class _Cond(HigherOrderOperator):
    """Of two graphs with the same operands, the one that a tensor of one element chooses: its results, a tuple."""

    def __init__(self):
        super().__init__("cond")

    def __call__(self, pred, true_fn, false_fn, operands):
        return (true_fn if pred else false_fn)(*operands)


cond_operator = _Cond()


class _BranchTracer(PythonKeyTracer):
    """Records one branch; tensors of the program around it are placeholders that are made when they are first used."""

    def __init__(self, outer):
        super().__init__()
        self.outer, self.fake_mode = outer, outer.fake_mode
        self.root, self.graph, self.tensor_attrs = cresset.nn.Module(), Graph(tracer_cls=PythonKeyTracer), {}
        self.operands = {}  # id -> (tensor, node of the program around, placeholder here), in the order of the placeholders

    def add(self, tensor):
        """The placeholder of a tensor from outside."""
        if id(tensor) not in self.operands:
            outside = self.outer.create_arg(self.outer.proxy_of(tensor))
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

    def create_arg(self, a):
        """Tensors that are not known come from outside."""
        if isinstance(a, cresset.Tensor) and not isinstance(a, Proxy):
            return self.add(a)
        return super().create_arg(a)


def _branch(recorder, function, operands):
    outer = recorder.tracer
    tracer = recorder.tracer = _BranchTracer(outer)
    try:
        for leaf in pytree.tree_leaves(operands):
            if isinstance(leaf, cresset.Tensor):
                tracer.add(leaf)
        with recorder.switched(True):
            result = function(*operands)
        leaves, spec = pytree.tree_flatten(result)
        if not all(isinstance(x, cresset.Tensor) for x in leaves):
            raise UserError(UserErrorType.INVALID_OUTPUT, "torch.cond: a branch must give tensors, or containers of tensors.")
        nodes = [tracer.create_arg(tracer.proxy_of(x)) for x in leaves]
    finally:
        recorder.tracer = outer
    return tracer, leaves, spec, nodes


def _check(tracer):
    given = {node for _, _, node in tracer.operands.values()}
    for node in tracer.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if schema is not None and schema.is_mutable and given & set(node.all_input_nodes):
            raise UserError(UserErrorType.ANTI_PATTERN, f"torch.cond: a branch writes to a tensor from outside ({node.target}). Write to a copy.")


def _form(tensor):
    return tuple(tensor.shape), tensor.dtype, tensor.device


def record_cond(recorder, traced, *arguments):
    """What torch.cond gives while a program is recorded: nodes for both branches. UserError for branches that do not fit together."""
    with recorder.switched(False):
        return _record(recorder, traced, *arguments)


def _record(recorder, traced, pred, true_fn, false_fn, operands):
    outer = recorder.tracer
    branches = [_branch(recorder, fn, operands) for fn in (true_fn, false_fn)]
    (one, leaves, spec, _), (other, other_leaves, other_spec, _) = branches
    if spec != other_spec or [_form(x) for x in leaves] != [_form(x) for x in other_leaves]:
        shown = [", ".join(f"{x.dtype}{list(x.shape)}" for x in part) for part in (leaves, other_leaves)]
        raise UserError(UserErrorType.INVALID_OUTPUT, f"torch.cond: the branches give different results: ({shown[0]}) and ({shown[1]}).")
    for tensor, *_ in list(one.operands.values()):
        other.add(tensor)
    for tensor, *_ in list(other.operands.values()):
        one.add(tensor)
    number, graphs = len(traced.inner) // 2, []
    for (tracer, _, _, nodes), kind in zip(branches, ("true", "false")):
        tracer.graph.output(tuple(nodes))
        _check(tracer)
        tracer.graph.eliminate_dead_code()
        _in_order(tracer, list(one.operands))
        name = f"{kind}_graph_{number}"
        traced.inner[name] = fx.GraphModule(cresset.nn.Module(), tracer.graph, name)
        graphs.append(Proxy(outer.graph.create_node("get_attr", name, (), {}, name=name), outer))
    outside = tuple(Proxy(node, outer) for _, node, _ in one.operands.values())
    proxy = outer.create_proxy("call_function", cond_operator, (outer.proxy_of(pred), *graphs, outside), {}, name="cond")
    results = tuple(outer.fake_mode.snapshot(x) for x in leaves)
    _track_tree(outer, results, proxy)
    return pytree.tree_unflatten(list(results), spec)


def _in_order(tracer, keys):
    """The placeholders in the order of the operands."""
    for key in reversed(keys):
        tracer.graph._root.append(tracer.operands[key][2])
