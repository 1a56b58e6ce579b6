"""run_decompositions: an exported graph without writes, of operators that are not composite."""

import cresset
from cresset import fx
from cresset.fx.experimental.proxy_tensor import make_fx
from cresset.utils import _pytree as pytree

from .graph_signature import ExportGraphSignature, InputKind, OutputKind, OutputSpec, TensorArgument

__all__ = ["decomposed"]


def decomposed(program, table):
    """(root, graph, signature) of a program without writes, of operators that are not composite."""
    specs = program.graph_signature.input_specs
    nodes = [n for n in program.graph.nodes if n.op == "placeholder"]
    values = [n.meta.get("val") for n in nodes]
    runner = fx.Interpreter(_without_grad_modes(program.graph_module))

    def flat(*inputs):
        with cresset.no_grad(), fx.traceback.preserve_node_meta():
            return runner.run(*inputs)

    functional = cresset.func.functionalize(flat, remove="mutations")
    traced = make_fx(functional, decomposition_table=table, tracing_mode="fake", _allow_non_fake_inputs=True)(*values)
    graph, at, writes = fx.Graph(), {}, {}
    made = [n for n in traced.graph.nodes if n.op == "placeholder"]
    for node, spec in zip(made, specs):
        at[node] = graph.placeholder(spec.arg.name)
        at[node].meta = dict(node.meta)
    by_node = dict(zip(made, specs))
    for node in traced.graph.nodes:
        if node.op == "call_function" and node.target is cresset.ops.aten.copy_.default and node.args[0] in by_node:
            writes[node.args[0]] = at[node.args[1]]
            at[node] = at[node.args[1]]
        elif node.op == "output":
            results = fx.node.map_arg(tuple(pytree.tree_leaves(node.args[0], is_leaf=lambda x: x is None)), lambda n: at[n])
            outputs = [_mutation(by_node[n], value) for n, value in writes.items()]
            outputs += _renamed(program.graph_signature.output_specs, results)
            graph.output((*writes.values(), *results))
        elif node.op != "placeholder":
            at[node] = graph.node_copy(node, lambda n: at[n])
    graph.eliminate_dead_code()
    signature = ExportGraphSignature(list(specs), outputs)
    return traced, graph, signature


def _without_grad_modes(module):
    graph = fx.Graph()
    at = {}
    for node in module.graph.nodes:
        if node.target is not cresset._C._set_grad_enabled:
            at[node] = graph.node_copy(node, lambda n: at[n])
    return fx.GraphModule(module, graph)


def _mutation(spec, value):
    kind = {InputKind.BUFFER: OutputKind.BUFFER_MUTATION, InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION}.get(spec.kind, OutputKind.USER_INPUT_MUTATION)
    return OutputSpec(kind, TensorArgument(value.name), spec.arg.name if kind is OutputKind.USER_INPUT_MUTATION else spec.target)


def _renamed(specs, results):
    return [
        OutputSpec(spec.kind, TensorArgument(value.name) if isinstance(value, fx.Node) else spec.arg, spec.target) for spec, value in zip(specs, results)
    ]
