"""run_decompositions: programs of core operators that write nothing."""

import copy
import functools

import cresset
from cresset import _C, fx
from cresset._higher_order import HigherOrderOperator
from cresset._subclasses.fake_tensor import FakeTensorMode
from cresset._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode
from cresset.fx.experimental.proxy_tensor import keeping, make_fx
from cresset.utils import _pytree as pytree

from ._effects import has_effect
from ._module_calls import ModuleCall
from ._sizes import SizeExpr
from ._symbolic_graph import merged
from ._trace_program import Traced
from ._unchecked import UNCHECKED
from .graph_signature import ConstantArgument, ExportGraphSignature, InputKind, OutputKind, OutputSpec, TensorArgument

__all__ = ["decomposed", "table"]


def table():
    """{overload: None} of the package's composite operators."""
    found = {}
    for schema in _C._jit_get_all_schemas():
        if schema.name.startswith("aten::"):
            overload = getattr(getattr(cresset.ops.aten, schema.name[6:]), schema.overload_name or "default")
            if overload.has_kernel_for_dispatch_key("CompositeImplicitAutograd"):
                found[overload] = None
    return found


@functools.cache
def _core():
    """Operators of PyTorch's core set that are composite here."""
    aten = cresset.ops.aten
    return frozenset({aten._native_batch_norm_legit_no_training.default, aten._native_batch_norm_legit.no_stats})


def _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    """Batch normalisation by operators that write nothing, and the writes to the statistics as copies."""
    aten = cresset.ops.aten
    if not training:
        return aten._native_batch_norm_legit_no_training.default(input, weight, bias, running_mean, running_var, momentum, eps)[0]
    if running_mean is not None:
        var, mean = aten.var_mean.correction(input, [d for d in range(input.dim()) if d != 1], correction=1)
        running_mean.copy_(running_mean * (1 - momentum) + mean * momentum)
        running_var.copy_(running_var * (1 - momentum) + var * momentum)
    return aten._native_batch_norm_legit.no_stats(input, weight, bias, True, momentum, eps)[0]


def _one_hot(input, num_classes=-1):
    """Ones where a class's number is the input's, without the check of the input's values."""
    if num_classes < 0:
        return cresset.ops.aten.one_hot.default(input, num_classes)
    return (input.unsqueeze(-1) == cresset.arange(num_classes, device=input.device)).to(cresset.int64)


_RULES = {**UNCHECKED, "aten.batch_norm.default": _batch_norm, "aten.one_hot.default": _one_hot}


class _Replaying(fx.Interpreter):
    """Runs a flat graph; operators that write to arguments without their schema saying so, or look at values, come apart first."""

    def __init__(self, module, whole, kept):
        super().__init__(module)
        self.whole, self.kept = whole, dict.fromkeys(kept)

    def run_node(self, n):
        """What the node gives, noted for the names in `kept`: what is written later does not change it."""
        result = super().run_node(n)
        if n.name in self.kept:
            self.kept[n.name] = result.from_functional() if isinstance(result, FunctionalTensor) else result
        return result

    def call_function(self, target, args, kwargs):
        """What the operator gives."""
        if isinstance(target, HigherOrderOperator):
            raise NotImplementedError(f"run_decompositions: the operator {target} with graphs as arguments does not come apart.")
        rule = _RULES.get(str(target))
        if rule is not None and target not in self.whole:
            return rule(*args, **kwargs)
        return super().call_function(target, args, kwargs)


def _kept_names(program):
    """Nodes that signatures of modules name, without the placeholders."""
    named = {a.name for e in program.module_call_graph[1:] if e.signature is not None for a in (*e.signature.inputs, *e.signature.outputs)}
    return [n.name for n in program.graph.nodes if n.op == "call_function" and n.name in named]


def _functional_run(program, whole):
    """A function of the flat inputs that gives (new values of inputs that were written, in their order; outputs; values that signatures of modules name),
    and where it notes which inputs were."""
    written = []

    def run(*inputs):
        with FunctionalTensorMode() as mode, cresset.no_grad():
            wrapped = [FunctionalTensor(x, mode) if isinstance(x, cresset.Tensor) else x for x in inputs]
            replay = _Replaying(program.graph_module, whole, _kept_names(program))
            outputs = replay.run(*wrapped)
            outputs = pytree.tree_map(lambda x: x.from_functional() if isinstance(x, FunctionalTensor) else x, tuple(outputs))
            written[:] = [i for i, w in enumerate(wrapped) if isinstance(w, FunctionalTensor) and w._storage.generation]
            values = [wrapped[i].from_functional() for i in written]
        return (*values, *outputs, *replay.kept.values())

    return run, written


def _inputs_at(program, sample):
    """Fake inputs for {symbol: size}."""
    mode, found = FakeTensorMode(allow_non_fake_inputs=True), []
    for node in program.graph.nodes:
        if node.op != "placeholder":
            continue
        value = node.meta.get("val")
        if isinstance(value, cresset.Tensor):
            shape = [n.value(sample) if isinstance(n, SizeExpr) else n for n in node.meta.get("sizes", value.shape)]
            same = tuple(shape) == tuple(value.shape)
            with cresset.no_grad():
                real = cresset.empty_strided(shape, value.stride(), dtype=value.dtype, device="meta") if same else cresset.empty(shape, dtype=value.dtype, device="meta")
            found.append(mode._wrap(real, value.device))
        else:
            found.append(value)
    return found


_MUTATIONS = {InputKind.BUFFER: OutputKind.BUFFER_MUTATION, InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION}


def _traced(program, given, sample):
    inputs = _inputs_at(program, sample)
    rules = {op: rule for op, rule in (given or {}).items() if callable(rule)}
    whole = _core() if given is None else _core() | (table().keys() - given.keys())
    run, written = _functional_run(program, whole)
    with keeping(whole), fx.traceback.preserve_node_meta():
        module = make_fx(run, rules, "fake")(*inputs)
    module.graph.eliminate_dead_code(has_effect)
    return _renamed(program, module.graph, written)


def _renamed(program, graph, written):
    """The Traced with the program's names of inputs, which stand in the old order; constants that were made are not possible here."""
    result, specs = Traced(), program.graph_signature
    result.inputs, result.constants = copy.deepcopy(specs.input_specs), {}
    new, nodes, names = fx.Graph(), {}, [s.arg.name for s in specs.input_specs]
    placeholders = iter(names)
    for node in graph.nodes:
        if node.op == "placeholder":
            name = next(placeholders)
            nodes[node] = new.create_node("placeholder", name, (), {}, name=name)
        elif node.op == "get_attr":
            raise NotImplementedError(f"run_decompositions: a decomposition made the constant tensor {node.target}.")
        elif node.op == "output":
            values = pytree.tree_map(lambda n: nodes[n] if isinstance(n, fx.Node) else n, tuple(node.args[0]))
            kept = _kept_names(program)
            values, named = values[: len(values) - len(kept)], values[len(values) - len(kept) :]
            new.output(values)
            result.calls = _calls(program, {**{n.name: n for n in new.nodes if n.op == "placeholder"}, **dict(zip(kept, named))})
            result.outputs = _outputs(specs, written, values)
            continue
        else:
            nodes[node] = new.node_copy(node, lambda n: nodes[n])
        nodes[node].meta = copy.copy(node.meta)
    for old, node in zip((n for n in program.graph.nodes if n.op == "placeholder"), (n for n in new.nodes if n.op == "placeholder")):
        node.meta = copy.copy(old.meta)
    result.graph, result.out_spec = new, program.call_spec.out_spec
    return result


def _calls(program, nodes):
    """{path and number: ModuleCall} of the signatures of modules, with {name in the program: node}."""
    found = {}
    for entry in program.module_call_graph[1:]:
        if (old := entry.signature) is not None:
            call = found[entry.fqn] = ModuleCall([a.value if isinstance(a, ConstantArgument) else nodes[a.name] for a in old.inputs], old.in_spec)
            call.outputs, call.out_spec = [a.value if isinstance(a, ConstantArgument) else nodes[a.name] for a in old.outputs], old.out_spec
    return found


def _outputs(specs, written, values):
    found = []
    for at, value in zip(written, values):
        spec = specs.input_specs[at]
        kind = _MUTATIONS.get(spec.kind, OutputKind.USER_INPUT_MUTATION)
        found.append(OutputSpec(kind, TensorArgument(value.name), spec.target if spec.kind in _MUTATIONS else spec.arg.name))
    already = [s for s in specs.output_specs if s.kind is not OutputKind.USER_OUTPUT]
    for spec, value in zip(specs.output_specs, values[len(written) :]):
        argument = TensorArgument(value.name) if isinstance(value, fx.Node) else ConstantArgument("", value)
        found.append(OutputSpec(spec.kind, argument, spec.target))
    return sorted(found, key=lambda s: s.kind is OutputKind.USER_OUTPUT) if already else found


def _samples(program):
    """Sizes to run at, those of the examples first."""
    symbols = list(program.range_constraints)
    if not symbols:
        return [{}]
    from ._dynamic import _Root

    hints = {}
    for node in program.graph.nodes:
        for n, hint in zip(node.meta.get("sizes") or (), getattr(node.meta.get("val"), "shape", ())):
            if isinstance(n, SizeExpr) and n.symbol is not None:
                hints.setdefault(n.symbol, hint)
    options = [_Root(None, "dim", hints.get(s, 2), r.lower, r.upper, [], "").samples() for s, r in program.range_constraints.items()]
    first = {s: o[0] for s, o in zip(symbols, options)}
    found = [first, *({**first, s: n} for s, o in zip(symbols, options) for n in o[1:])]
    if len(symbols) > 1:
        found += [{s: o[(k + i) % len(o)] for i, (s, o) in enumerate(zip(symbols, options))} for k in (1, 2, 3)]
    return found


def decomposed(program, given):
    """The program with core operators; see ExportedProgram.run_decompositions."""
    samples = _samples(program)
    runs = [_traced(program, given, sample) for sample in samples]
    traced = runs[0]
    if samples[0]:
        placeholders = [n for n in program.graph.nodes if n.op == "placeholder"]
        users = [n for n, s in zip(placeholders, program.graph_signature.input_specs) if s.kind is InputKind.USER_INPUT]
        inputs = {(i, d): e for i, n in enumerate(users) for d, e in enumerate(n.meta.get("sizes") or ()) if isinstance(e, SizeExpr)}
        traced = merged(runs, samples, inputs)
    module = fx.GraphModule(cresset.nn.Module(), traced.graph, "GraphModule")
    module.training = program.graph_module.training
    result = program._update(module, ExportGraphSignature(traced.inputs, traced.outputs), dialect="ATEN", calls=traced.calls)
    result.validate()
    return result
