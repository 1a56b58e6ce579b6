"""What libraries declare for PyTorch's exporter to ONNX: translations by name and version, with arguments read as they say."""

import pytest

import cresset as torch
from cresset import onnx


class Graph:
    """Writes down the nodes that a translation makes."""

    def __init__(self):
        self.nodes = []

    def op(self, name, *inputs, **attributes):
        self.nodes.append((name, inputs, attributes))
        return f"%{len(self.nodes)}"


@onnx.symbolic_helper.parse_args("v", "f", "i", "is", "none")
def halve(g, x, threshold, axis, sizes, nothing=None):
    x = onnx.symbolic_opset11.unsqueeze(g, x, axis)
    return onnx.symbolic_opset9.select(g, onnx.symbolic_opset9.squeeze(g, x), 1, threshold > 0.5)


def test_translations_by_version():
    onnx.register_custom_op_symbolic("mine::halve", halve, 11)
    newer = lambda g, x: x  # noqa: E731
    onnx.register_custom_op_symbolic("mine::halve", newer, 16)
    find = onnx.symbolic_helper.find
    assert find("mine::halve", 10) is None and find("mine::halve", 15) is halve and find("mine::halve", 20) is newer
    graph = Graph()
    find("mine::halve", 11)(graph, "%0", 1, 2.0, (1, 2), None)
    assert [name for name, _, _ in graph.nodes] == ["Unsqueeze", "Squeeze", "Constant", "Gather"]
    assert graph.nodes[0][2] == {"axes_i": [2]} and graph.nodes[3][2] == {"axis_i": 1}
    onnx.unregister_custom_op_symbolic("mine::halve", 16)
    assert find("mine::halve", 20) is halve
    onnx.unregister_custom_op_symbolic("mine::halve", 11)


def test_words():
    with pytest.raises(onnx.OnnxExporterError, match="Failed to register operator abc. The symbolic name must match the format domain::name"):
        onnx.register_custom_op_symbolic("abc", halve, 9)
    with pytest.raises(onnx.OnnxExporterError, match="writes no ONNX files"):
        onnx.export(torch.nn.Linear(1, 1), (torch.ones(1),), "x.onnx")
    with pytest.raises(onnx.OnnxExporterError, match="expected None"):
        halve(Graph(), "%0", 1, 2, (1,), 5)
    assert not onnx.is_in_onnx_export() and onnx.TensorProtoDataType.INT64 == 7 and onnx.TrainingMode.EVAL == 0
