"""run_decompositions: programs of core operators that write nothing."""

import contextlib
import copy
import dataclasses

import cresset
from cresset import fx
from cresset._higher_order import HigherOrderOperator
from cresset._subclasses.fake_tensor import FakeTensorMode
from cresset._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode, call_on_values
from cresset._subclasses.unknown_values import UnknownValues
from cresset.fx.experimental._pre_dispatch import below, operators_as_called
from cresset.fx.experimental.proxy_tensor import get_proxy_mode, make_fx
from cresset.utils import _pytree as pytree

from ._control_flow import cond_operator, while_loop_operator
from ._effects import has_effect
from ._module_calls import ModuleCall
from ._objects import fake_of, is_fake_object
from ._scans import associative_scan_operator, map_operator, scan_operator
from ._sizes import SizeExpr, remainders
from ._symbolic_graph import merged, value_symbol
from ._trace_program import Traced, assertion_nodes
from ._unchecked import UNCHECKED
from .decomp_utils import CustomDecompTable, elementary, is_preservable
from .graph_signature import ConstantArgument, CustomObjArgument, ExportGraphSignature, InputKind, OutputKind, OutputSpec, TensorArgument

__all__ = ["decomposed"]


def _whole(op, *args, **kwargs):
    """A composite operator as one node of the graph that is recorded."""
    return call_on_values(get_proxy_mode().record_whole, op, *args, **kwargs)


def _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    """Batch normalisation by operators that write nothing, and the writes to the statistics as copies."""
    aten = cresset.ops.aten
    if not training:
        return _whole(aten._native_batch_norm_legit_no_training.default, input, weight, bias, running_mean, running_var, momentum, eps)[0]
    if running_mean is not None:
        var, mean = aten.var_mean.correction(input.detach(), [d for d in range(input.dim()) if d != 1], correction=1)
        running_mean.copy_(running_mean * (1 - momentum) + mean * momentum)
        running_var.copy_(running_var * (1 - momentum) + var * momentum)
    return _statistics_of_batch(input, weight, bias, momentum, eps)


def _statistics_of_batch(input, weight, bias, momentum, eps):
    """Batch normalisation by the mean and variance of the input alone."""
    return _whole(cresset.ops.aten._native_batch_norm_legit.no_stats, input, weight, bias, True, momentum, eps)[0]


def _dropout(input, p, train):
    return cresset.ops.aten.dropout.default.decompose(input, p, train) if train else input.clone()


def _instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled):
    """Without running statistics the batch normalisation of one image with the channels of all."""
    aten = cresset.ops.aten
    if running_mean is not None or running_var is not None or not use_input_stats:
        return aten.instance_norm.default.decompose(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled)
    batch, channels, *rest = input.shape
    weight, bias = (t if t is None else t.repeat(batch) for t in (weight, bias))
    return _statistics_of_batch(input.reshape(1, batch * channels, *rest), weight, bias, momentum, eps).reshape(input.shape)


def _adaptive_avg_pool(input, output_size):
    """The mean where one element is left of each channel."""
    if all(n == 1 for n in output_size):
        return cresset.ops.aten.mean.dim(input, list(range(-len(output_size), 0)), True)
    return getattr(cresset.ops.aten, f"adaptive_avg_pool{len(output_size)}d").default(input, output_size)


def _one_hot(input, num_classes=-1):
    """Ones where a class's number is the input's, without the check of the input's values."""
    if num_classes < 0:
        return cresset.ops.aten.one_hot.default(input, num_classes)
    return (input.unsqueeze(-1) == cresset.arange(num_classes, device=input.device)).to(cresset.int64)


_RULES = {
    **UNCHECKED,
    "aten.adaptive_avg_pool2d.default": _adaptive_avg_pool, "aten.adaptive_avg_pool3d.default": _adaptive_avg_pool,
    "aten.batch_norm.default": _batch_norm, "aten.dropout.default": _dropout, "aten.instance_norm.default": _instance_norm,
    "aten.lift_fresh_copy.default": cresset.ops.aten.clone.default, "aten.one_hot.default": _one_hot,
}  # fmt: skip


class _Replaying(fx.Interpreter):
    """Runs a flat graph; operators that write to arguments without their schema saying so, or look at values, come apart first."""

    def __init__(self, module, rules, kept):
        super().__init__(module)
        self.rules, self.kept, self.compared = rules, dict.fromkeys(kept), {}  # compared: {comparison that is asserted: its numbers}

    def run_node(self, n):
        """What the node gives, noted for the names in `kept`: what is written later does not change it."""
        if n.target is cresset.ops.aten._assert_scalar.default and isinstance(n.args[0], fx.Node):
            assertion_nodes(get_proxy_mode().tracer.create_node, n.args[0].target, self.compared[n.args[0]], n.args[1])
            return None
        if any(user.target is cresset.ops.aten._assert_scalar.default for user in n.users):
            self.compared[n] = [self.env[a] if isinstance(a, fx.Node) else a for a in n.args]  # the numbers are gone by then
        result = super().run_node(n)
        if n.name in self.kept:
            self.kept[n.name] = result.from_functional() if isinstance(result, FunctionalTensor) else result
        return result

    def call_function(self, target, args, kwargs):
        """What the operator gives."""
        if any(map(is_fake_object, args)) or any(map(is_fake_object, kwargs.values())):
            return target(*args, **kwargs)
        if target is cond_operator:
            pred, true_fn, false_fn, operands = args
            branches = [self._functional(f) for f in (true_fn, false_fn)]
            return call_on_values(lambda pred, operands: tuple(cresset.cond(pred, *branches, operands)), pred, tuple(operands))
        if target is while_loop_operator:
            return call_on_values(self._loop, *args)
        if target in (map_operator, scan_operator, associative_scan_operator):
            return call_on_values(lambda *rest: target.run(self._functional(args[0]), *rest), *args[1:])
        if isinstance(target, HigherOrderOperator) and any(isinstance(a, fx.GraphModule) for a in args):
            raise NotImplementedError(f"run_decompositions: the operator {target} with graphs as arguments does not come apart.")
        if str(target) == "aten.lift_fresh_copy.default":  # always, also without rules
            return cresset.ops.aten.clone.default(*args)
        kept = is_preservable(target)
        if target in elementary() or kept and target not in self.rules:
            return _whole(target, *args, **kwargs)
        rule = _RULES.get(str(target))
        if rule is None and kept:
            rule = self.rules[target]
            if getattr(rule, "__self__", None) is not target:  # a function of the user
                with operators_as_called(self._inside):
                    return rule(*args, **kwargs)
        return super().call_function(target, args, kwargs) if rule is None else rule(*args, **kwargs)

    def _inside(self, op, args, kwargs):
        """An operator that such a function calls: those that the table leaves whole stay whole."""
        with below():
            whole = op not in self.rules and is_preservable(op) and any(isinstance(t, FunctionalTensor) for t in pytree.tree_leaves((args, kwargs)))
            return _whole(op, *args, **kwargs) if whole else op(*args, **kwargs)

    def _functional(self, module):
        """A function that runs the graph of a branch or of a loop, decomposed."""

        def run(*values):
            with FunctionalTensorMode() as mode:
                outputs = _Replaying(module, self.rules, ()).run(*(FunctionalTensor(x, mode) if isinstance(x, cresset.Tensor) else x for x in values))
                return pytree.tree_map_only(FunctionalTensor, lambda x: x.from_functional(), outputs)

        return run

    def _loop(self, cond_fn, body_fn, carried, more):
        test, body = self._functional(cond_fn), self._functional(body_fn)
        return tuple(cresset.while_loop(lambda *values: test(*values, *more), lambda *values: body(*values, *more), tuple(carried)))


def _kept_names(program):
    """Nodes that signatures of modules name, without the placeholders."""
    named = {a.name for e in program.module_call_graph[1:] if e.signature is not None for a in (*e.signature.inputs, *e.signature.outputs)}
    return [n.name for n in program.graph.nodes if n.op == "call_function" and n.name in named]


def _functional_run(program, rules):
    """A function of the flat inputs that gives (new values of inputs that were written, in their order; outputs; values that signatures of modules name),
    and where it notes which inputs were."""
    written = []

    def run(*inputs):
        with FunctionalTensorMode() as mode, cresset.no_grad():
            wrapped = [FunctionalTensor(x, mode) if isinstance(x, cresset.Tensor) else x for x in inputs]
            replay = _Replaying(program.graph_module, rules, _kept_names(program))
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
            found.append(fake_of(mode, value) if isinstance(value, CustomObjArgument) else value)
    return found


_MUTATIONS = {InputKind.BUFFER: OutputKind.BUFFER_MUTATION, InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION}


def _asking(module):
    """The nodes that ask for values of tensors, those of branches too, in the order in which they are recorded."""
    found = []
    for node in module.graph.nodes:
        if "value" in node.meta:
            found.append(node)
        elif node.op == "get_attr" and isinstance(inner := getattr(module, node.target, None), fx.GraphModule):
            found += _asking(inner)
    return found


def _traced(program, given, sample):
    inputs, asking = _inputs_at(program, sample), _asking(program.graph_module)
    values = UnknownValues({n.meta["value"]: sample[value_symbol(n)] for n in asking}, [n.meta["value"] for n in asking])
    values.allowed("items")
    rules = CustomDecompTable() if given is None else given.materialize() if isinstance(given, CustomDecompTable) else given
    run, written = _functional_run(program, rules)
    with fx.traceback.preserve_node_meta(), values if asking else contextlib.nullcontext():
        module = make_fx(run, rules, "fake", _error_on_data_dependent_ops=not asking)(*inputs)
    module.graph.eliminate_dead_code(lambda node: "value" in node.meta or has_effect(node))
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
            inner = getattr(graph.owning_module, node.target)
            if not isinstance(inner, fx.GraphModule):
                raise NotImplementedError(f"run_decompositions: a decomposition made the constant tensor {node.target}.")
            result.inner[node.target] = inner
            nodes[node] = new.node_copy(node)
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
        if isinstance(spec.arg, CustomObjArgument):
            argument = dataclasses.replace(spec.arg, name=value.name)
        else:
            argument = TensorArgument(value.name) if isinstance(value, fx.Node) else ConstantArgument("", value)
        found.append(OutputSpec(spec.kind, argument, spec.target))
    return sorted(found, key=lambda s: s.kind is OutputKind.USER_OUTPUT) if already else found


def _samples(program):
    """Sizes to run at, those of the examples first."""
    symbols = list(program.range_constraints)
    if not symbols and not _asking(program.graph_module):
        return [{}]
    from ._dynamic import _Root

    hints = {}
    for node in program.graph.nodes:
        for n, hint in zip(node.meta.get("sizes") or (), getattr(node.meta.get("val"), "shape", ())):
            if isinstance(n, SizeExpr) and n.symbol is not None:
                hints.setdefault(n.symbol, hint)
    known = dict(program.graph_module.meta.get("values") or {})
    for node in _asking(program.graph_module):
        known.setdefault(value_symbol(node), [node.meta["val"]] if isinstance(node.meta["val"], float) else None)
    symbols += [s for s in known if s not in symbols]
    options = [known.get(s) or _Root(None, "dim", hints.get(s, 2), r.lower, r.upper, [], "").samples() for s in symbols for r in (program.range_constraints.get(s),)]
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
        more = remainders(traced.divisors, samples, program.range_constraints)
        if more:
            traced = merged(runs + [_traced(program, given, sample) for sample in more], samples + more, inputs)
    root = cresset.nn.Module()
    for name, inner in traced.inner.items():
        setattr(root, name, inner)
    module = fx.GraphModule(root, traced.graph, "GraphModule")
    module.training = program.graph_module.training
    result = program._update(module, ExportGraphSignature(traced.inputs, traced.outputs), dialect="ATEN", calls=traced.calls)
    result.validate()
    return result
