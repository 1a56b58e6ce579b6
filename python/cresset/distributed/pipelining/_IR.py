"""`pipeline`: the graph of a module, cut into the modules of stages."""

import threading
from enum import Enum

from cresset import fx, nn
from cresset.utils import _pytree as pytree

from ._utils import PipeInfo
from .stage import PipelineStage

__all__ = ["Pipe", "SplitPoint", "pipe_split", "pipeline"]

_tracing = threading.local()


class SplitPoint(Enum):
    """Where `split_spec` of pipeline() cuts: before a submodule or behind it."""

    BEGINNING = 1
    END = 2


def pipe_split():
    """Ends a stage: pipeline() cuts the graph here. Nothing happens when a module runs."""
    tracer = getattr(_tracing, "tracer", None)
    if tracer is not None:
        tracer.create_node("call_function", pipe_split, (), {})


class _Tracer(fx.Tracer):
    def __init__(self, split_spec):
        super().__init__()
        self.split_spec, self.seen = split_spec, set()

    def call_module(self, m, forward, args, kwargs):
        point = self.split_spec.get(self.path_of_module(m))
        self.seen.add(self.path_of_module(m))
        if point is SplitPoint.BEGINNING:
            pipe_split()
        result = super().call_module(m, forward, args, kwargs)
        if point is SplitPoint.END:
            pipe_split()
        return result


def _traced(module, args, kwargs, split_spec):
    import inspect

    given = inspect.signature(module.forward).bind(*args, **kwargs).arguments
    parameters = inspect.signature(module.forward).parameters
    left_out = {name: p.default for name, p in parameters.items() if name not in given and p.default is not p.empty}
    tracer = _tracing.tracer = _Tracer(split_spec)
    try:
        graph = tracer.trace(module, concrete_args=left_out or None)
    finally:
        _tracing.tracer = None
    missing = set(split_spec) - tracer.seen
    if missing:
        raise ValueError(f"pipeline: split_spec: submodules that the forward calls were required; {sorted(missing)} are none.")
    order = []
    for node in list(graph.nodes):
        if node.op == "placeholder" and node.target in given:
            node.args = ()
            order.append(node.target)
        elif node.op == "placeholder":
            _erase(graph, node)  # what was left out has its default; a trace only checks that it has
    return fx.GraphModule(tracer.root, graph), order


def _erase(graph, node):
    for user in list(node.users):
        _erase(graph, user)
    graph.erase_node(node)


def _stage_numbers(graph):
    """Node -> its stage, for all but inputs, attributes and the output; how many stages there are."""
    numbers, stage = {}, 0
    for node in graph.nodes:
        if node.op == "call_function" and node.target is pipe_split:
            stage += 1
        elif node.op not in ("placeholder", "get_attr", "output"):
            numbers[node] = stage
    return numbers, stage + 1


def _cut(whole, inputs):
    """The GraphModules of stages. Each takes what the one before returns: a tuple of what later stages need."""
    numbers, count = _stage_numbers(whole.graph)
    output = next(node for node in whole.graph.nodes if node.op == "output")
    last_use = {}
    for node in whole.graph.nodes:
        for used in node.all_input_nodes:
            if used.op != "get_attr":
                last_use[used] = max(last_use.get(used, 0), count if node is output else numbers.get(node, 0))
    places = {node.target: node for node in whole.graph.nodes if node.op == "placeholder"}
    live, stages = [places[name] for name in inputs], []
    for stage in range(count):
        passed = [n for n in live if last_use.get(n, -1) > stage]
        passed += [n for n, number in numbers.items() if number == stage and last_use.get(n, -1) > stage]
        final = stage == count - 1
        stages.append(_stage_module(whole, [n for n, number in numbers.items() if number == stage], live, output.args[0] if final else tuple(passed), final))
        live = passed
    return stages


def _stage_module(whole, nodes, inputs, results, final):
    graph, env = fx.Graph(), {}

    def of(node):
        if node not in env:
            if node.op != "get_attr":
                raise RuntimeError(f"pipeline: {node.name} is used before its stage; the graph is not in order.")
            env[node] = graph.get_attr(node.target)
        return env[node]

    for node in inputs:
        env[node] = graph.placeholder(node.target if node.op == "placeholder" else node.name)
    for node in nodes:
        env[node] = graph.node_copy(node, of)
    value = fx.node.map_arg(results, of)
    leaves = pytree.tree_leaves(value)
    graph.output(value if not final else tuple(leaves) if len(leaves) > 1 or isinstance(value, (tuple, list, dict)) else value)
    return fx.GraphModule(whole, graph, "Stage")


class Pipe(nn.Module):
    """A module as stages. Called, it runs them one after the other; the result is a tuple. `build_stage` gives one for a schedule.

    Parameters and buffers of stages have the names that they have in the module. One that several stages use is in each of them.
    """

    def __init__(self, stages, inputs):
        super().__init__()
        self.stages, self.inputs, self.num_stages = nn.ModuleList(stages), inputs, len(stages)

    def forward(self, *args, **kwargs):
        values = [*args, *(kwargs[name] for name in self.inputs[len(args) :] if name in kwargs)]
        if len(values) != len(self.inputs):
            raise TypeError(f"Pipe: the inputs {self.inputs} were required; {len(values)} values were given.")
        for stage in self.stages:
            values = stage(*values)
            values = values if isinstance(values, tuple) else (values,)
        return values

    def get_stage_module(self, stage_idx):
        """The module of a stage. ValueError for a number that there is not."""
        if not 0 <= stage_idx < self.num_stages:
            raise ValueError(f"Invalid stage index {stage_idx}!")
        return self.stages[stage_idx]

    def info(self):
        """The number of stages, and their graphs."""
        return PipeInfo(graph=[stage.graph for stage in self.stages], num_stages=self.num_stages, has_loss_and_backward=False)

    def build_stage(self, stage_index, device, group=None):
        """The PipelineStage of a part, for a schedule."""
        return PipelineStage(self.get_stage_module(stage_index), stage_index, self.num_stages, device, group=group)

    def __str__(self):
        return "\n".join(f"stage {n}:\n{stage.graph}" for n, stage in enumerate(self.stages))


def pipeline(module, mb_args, mb_kwargs=None, split_spec=None, split_policy=None):
    """Cut a module into stages: where its forward calls pipe_split(), or before and behind submodules (`split_spec`: name -> SplitPoint).

    The graph is that of fx.symbolic_trace with `mb_args` and `mb_kwargs`, the arguments of a microbatch: control flow that depends on values of tensors is
    an error, which says where. `split_policy(GraphModule)` gives another graph, with calls of pipe_split in it.
    """
    if split_spec is not None and split_policy is not None:
        raise ValueError("Cannot specify both `split_spec` and `split_policy`. Please use only one of them.")
    whole, inputs = _traced(module, tuple(mb_args), dict(mb_kwargs or {}), dict(split_spec or {}))
    if split_policy is not None:
        whole = split_policy(whole)
    return Pipe(_cut(whole, inputs), inputs)
