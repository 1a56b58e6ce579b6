"""Which nodes came from one call (what PyTorch's test_source_matcher_utils.py expects of its exported graphs)."""

import cresset
from cresset import nn
from cresset.export import export
from cresset.fx.passes.split_utils import split_by_tags
from cresset.fx.passes.utils.source_matcher_utils import check_subgraphs_connected, get_source_partitions


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear1, self.relu, self.linear2 = nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 5)

    def forward(self, x):
        return self.linear2(self.relu(self.linear1(self.linear1(x))))


def test_calls_of_functions_are_partitions():
    graph = export(Layers(), (cresset.randn(3, 3),)).module().graph
    found = get_source_partitions(graph, ["linear", "relu", "max_pool2d"])
    linear, relu = found["linear"], found["relu"]
    assert set(found) == {"linear", "relu"} and len(linear) == 3 and len(relu) == 1
    assert [check_subgraphs_connected(part, relu[0]) for part in linear] == [False, True, False]
    assert check_subgraphs_connected(relu[0], linear[2])
    assert [n.target for n in linear[2].params] == ["linear2.weight", "linear2.bias"] and linear[2].output_nodes == linear[2].nodes
    assert [n.name for n in relu[0].input_nodes] == ["linear_1"]
    assert get_source_partitions(graph, ["relu"], filter_fn=lambda node: False) == {}


def test_sources_that_meta_names_come_first():
    graph = export(Layers(), (cresset.randn(3, 3),)).graph
    for node in graph.find_nodes(op="call_function", target=cresset.ops.aten.relu.default):
        node.meta["source_fn_stack"] = [("relu", nn.ReLU)]
    assert len(get_source_partitions(graph, [nn.ReLU])[nn.ReLU]) == 1 and get_source_partitions(graph, ["relu"]) == {}


def test_a_split_graph_keeps_the_structure_of_arguments_and_results():
    class Tree(nn.Module):
        def forward(self, pair):
            return {"sum": pair["a"] + pair["b"]}

    given = {"a": cresset.ones(2), "b": cresset.ones(2)}
    module = export(Tree(), (given,)).module()
    for node in module.graph.nodes:
        node.tag = "all"
    assert split_by_tags(module, ["all"])(given)["sum"].tolist() == [2, 2]
