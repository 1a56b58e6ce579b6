"""The check behind a trace: made again, it must be the same graph, and give what Python gives."""

import difflib
import re
import warnings

import cresset
from cresset._C import TracerWarning

__all__ = ["check", "TracingCheckError"]


class TracingCheckError(Exception):
    """A trace that differs from what the program does."""

    def __init__(self, graph_diff_error, tensor_compare_error, extra_msg=None):
        self.message = "Tracing failed sanity checks!\n"
        if extra_msg is not None:
            self.message += extra_msg + "\n"
        if graph_diff_error is not None:
            self.message += "ERROR: Graphs differed across invocations!\n" + _indent(graph_diff_error) + "\n"
        if tensor_compare_error is not None:
            self.message += (
                "ERROR: Tensor-valued Constant nodes differed in value "
                "across invocations. This often indicates that the tracer has encountered untraceable code.\n"
                + _indent(tensor_compare_error)
                + "\n"
            )
        super().__init__(self.message)


def _indent(text):
    return "\n".join("\t" + line for line in text.split("\n"))


def _clone(value):
    """The same containers with tensors of their own."""
    if isinstance(value, cresset.Tensor):
        copy = value.detach().clone().requires_grad_(value.requires_grad)
        return copy
    if isinstance(value, tuple):
        parts = [_clone(v) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, list):
        return [_clone(v) for v in value]
    if isinstance(value, dict):
        return {k: _clone(v) for k, v in value.items()}
    return value


def _flatten(value):
    """The tensors of nested containers, in order."""
    if isinstance(value, cresset.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return [cresset.tensor(value)] if isinstance(value, (int, float)) else []
    return [t for v in value for t in _flatten(v)]


_TENSOR_TYPE = re.compile(
    r"\b(?:Byte|Char|Short|Int|Long|Half|Float|Double|ComplexHalf|ComplexFloat|ComplexDouble|Bool|BFloat16)\([^()]*\)"
)


_MANGLED = re.compile(r"___torch_mangle_\d+\.")  # of classes and functions that the program makes anew each time


def _text(graph):
    """The graph's text with plain numbers and without shapes."""
    return _MANGLED.sub("", _TENSOR_TYPE.sub("Tensor", graph.canonicalize(True).str(True, False)))


def _difference(expected, found):
    return "\n".join(line.rstrip("\n") for line in difflib.ndiff(expected.splitlines(True), found.splitlines(True)))


def _graph_error(traced, again):
    """What differs between two graphs, and the first node that does; None when they are the same."""
    expected, found = _text(traced), _text(again)
    if expected == found:
        return None
    error = "Graph diff:\n" + _indent(_difference(expected, found)) + "\n"
    canonical = zip(traced.canonicalize(True).nodes(), again.canonicalize(True).nodes())
    for pair, places in zip(canonical, zip(traced.nodes(), again.nodes())):
        texts = [_MANGLED.sub("", _TENSOR_TYPE.sub("Tensor", str(n))) for n in pair]
        if texts[0] != texts[1]:
            error += "First diverging operator:\nNode diff:\n" + _indent(_difference(*texts)) + "\n"
            for what, node in zip(("Trace", "Check"), places):
                if node.sourceRange():
                    error += f"{what} source location:\n" + _indent(node.sourceRange()) + "\n"
            break
    return error


def _constant_error(traced, again, tolerance):
    """Tensor constants of equal graphs whose values differ."""
    for a, b in zip(traced.findAllNodes("prim::Constant"), again.findAllNodes("prim::Constant")):
        tensors = [n.t("value") if n.hasAttribute("value") and n.kindOf("value") == "t" else None for n in (a, b)]
        if None in tensors:
            continue
        try:
            cresset.testing.assert_close(*tensors, rtol=tolerance, atol=1e-5, equal_nan=True)
        except AssertionError as e:
            return f"Node:\n{_indent(str(a))}\n" + str(e)
    return None


def _compare(traced, reference, who, tolerance, graph):
    """Whether the results agree; warns of those that do not, and before of the random operators of the graph."""
    all_ok = True
    for i, (found, expected) in enumerate(zip(_flatten(traced), _flatten(reference))):
        try:
            cresset.testing.assert_close(found.detach(), expected.detach(), rtol=tolerance, atol=1e-5, equal_nan=True)
        except AssertionError as e:
            if all_ok:
                _warn_of_random(graph)
            warnings.warn(
                f"Output nr {i + 1}. of the traced function does not match the corresponding output of the {who}. Detailed error:\n{e}",
                TracerWarning,
                stacklevel=6,
            )
            all_ok = False
    return all_ok


def _run(function, inputs, what):
    try:
        return function(*_clone(inputs))
    except Exception as e:
        raise TracingCheckError(
            None, None, f"encountered an exception while running the {what} with test inputs.\nException:\n{_indent(str(e))}"
        ) from e


def _warn_of_random(graph):
    random = [n for n in graph.nodes() if n.isNondeterministic()]
    if random:
        nodes = "\n".join("\t" + str(n).strip() for n in random[:20])
        warnings.warn(
            "Trace had nondeterministic nodes. Did you forget call .eval() on your model? Nodes:\n" + nodes + "\nThis may cause errors "
            "in trace checking. To disable trace checking, pass check_trace=False to torch.jit.trace()",
            TracerWarning,
            stacklevel=7,
        )


def check(method, traced, original, inputs, trace_again, tolerance):
    """Trace again and compare graphs and results; warns of different results and raises TracingCheckError for different graphs.

    The check runs the program, so random numbers that it draws are gone afterwards.
    """
    del method
    again = trace_again(_clone(inputs))
    graph, other = traced.inlined_graph, again.inlined_graph
    found = _run(traced, inputs, "trace")
    if _compare(found, _run(original, inputs, "Python function"), "Python function", tolerance, graph):
        _compare(found, _run(again, inputs, "repeated trace"), "repeated trace", tolerance, graph)
    graph_error = _graph_error(graph, other)
    constant_error = None if graph_error else _constant_error(graph, other, tolerance)
    if graph_error or constant_error:
        raise TracingCheckError(graph_error, constant_error)
