"""A smaller graph that fails, too: parts are taken away as long as the failure stays."""

import cresset
from cresset import fx

from .compile_utils import get_outputs, get_placeholders

__all__ = ["minifier"]


def _module(graph, attributes):
    graph.lint()
    return fx.GraphModule(attributes, graph)


class _Search:
    """The smallest (module, inputs) so far."""

    def __init__(self, module, inputs, fails, most=None):
        self.root, self.fails, self.most = module, fails, most
        self.graph, self.inputs = module.graph, list(inputs)

    def accept(self, graph, inputs):
        """Does the smaller one fail? Then it is what is looked at from now on."""
        module = _module(graph, self.root)
        module.graph.eliminate_dead_code()
        inputs = _without_unused_inputs(module.graph, inputs)
        module.recompile()
        if not self.fails(module, list(inputs)):
            return False
        self.graph, self.inputs = module.graph, inputs
        return True

    def copy(self):
        """(graph that may be changed, {node of the present one: its})."""
        graph, nodes = fx.Graph(), {}
        result = graph.graph_copy(self.graph, nodes)
        graph.output(result)
        return graph, nodes

    def values(self):
        """{node: what it gives for the inputs}."""
        found = {}

        class Values(fx.Interpreter):
            def run_node(self, node):
                found[node] = super().run_node(node)
                return found[node]

        Values(_module(self.graph, self.root)).run(*self.inputs)
        return found

    def operators(self):
        """The nodes that are no inputs and no output."""
        return [n for n in self.graph.nodes if n.op not in ("placeholder", "output", "get_attr")]

    def shorten(self):
        """End at an earlier node: the first, by halving, that fails."""
        candidates = [n for n in self.graph.nodes if n.op != "output" and n.op != "get_attr"]
        low, high = 0, len(candidates) - 1  # the last one is where it ends now
        while low < high:
            middle = (low + high) // 2
            graph, nodes = self.copy()
            graph.output_node().args = ((nodes[candidates[middle]],),)
            if self.accept(graph, self.inputs):
                return True
            low = middle + 1
        return False

    def fewer_outputs(self):
        """One output less."""
        outputs = list(get_outputs(self.graph))
        if len(outputs) < 2:
            return False
        for at in range(len(outputs)):
            graph, nodes = self.copy()
            graph.output_node().args = (tuple(nodes[o] if isinstance(o, fx.Node) else o for o in outputs[:at] + outputs[at + 1 :]),)
            if self.accept(graph, self.inputs):
                return True
        return False

    def fewer_operators(self):
        """Inputs with their values in the place of operators: of halves of them, of quarters, …, of single ones."""
        values, operators = self.values(), self.operators()
        count = min(len(operators), self.most or len(operators))
        while count >= 1:
            for start in range(0, len(operators), count):
                if self._as_inputs([n for n in operators[start : start + count] if isinstance(values[n], cresset.Tensor)], values):
                    return True
            count //= 2
        return False

    def _as_inputs(self, replaced, values):
        if not replaced:
            return False
        graph, nodes = self.copy()
        inputs = list(self.inputs)
        last = get_placeholders(graph)[-1] if get_placeholders(graph) else None
        for node in replaced:
            with graph.inserting_after(last) if last is not None else graph.inserting_before(next(iter(graph.nodes))):
                last = graph.placeholder(nodes[node].name + "_value")
            nodes[node].replace_all_uses_with(last)
            inputs.append(values[node])
        return self.accept(graph, inputs)


def _without_unused_inputs(graph, inputs):
    kept = []
    for node, value in zip(get_placeholders(graph), inputs):
        if node.users:
            kept.append(value)
        else:
            graph.erase_node(node)
    return kept


def minifier(fail_f, inps, module_fails, dump_state=None, *, skip_sanity=False, max_granularity=None):
    """(GraphModule, inputs) of a part of a graph for which module_fails(module, inputs) is true, as it is for the whole of it.

    fail_f: a GraphModule without modules inside that keep state; inps: its inputs. Values of operators become inputs, outputs and inputs go,
    as long as it fails. dump_state(module, inputs) is called with the result. max_granularity: how many operators are replaced at once, at most.
    RuntimeError when the whole graph does not fail, unless skip_sanity says that it does.
    """
    search = _Search(fail_f, inps, module_fails, max_granularity)
    if not skip_sanity and not module_fails(fail_f, list(inps)):
        raise RuntimeError("Input graph did not fail the tester")
    while search.shorten() or search.fewer_outputs() or search.fewer_operators():
        pass
    module = _module(search.graph, search.root)
    if dump_state is not None:
        dump_state(module, search.inputs)
    return module, search.inputs
