"""Weights as constants: a captured module's parameters and buffers are packed into its engine, and every call asks whether they are what they were.

A weight counts as the same when it is the same tensor over the same memory and nobody wrote to it: its version and its storage's have not moved, and
where a tensor beside it may have written without them (`.data`), its contents are compared. Weights whose memory others see (NumPy, DLPack, other
processes, files) are not held.
"""

import threading

import cresset
from cresset import _C
from cresset.fx import Graph, GraphModule

__all__ = ["HeldWeights", "are_batched", "can_be_held", "with_constants"]

# Functions and methods whose result is always memory of its own. What is not here may give an argument's.
_FRESH = frozenset({
    "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "bilinear", "matmul", "__matmul__", "mm", "bmm", "addmm", "baddbmm", "mv",
    "add", "sub", "mul", "div", "truediv", "true_divide", "pow", "neg", "rsub", "abs", "exp", "log", "sqrt", "rsqrt", "square", "sin", "cos", "erf", "reciprocal", "addcmul", "addcdiv", "lerp",
    "relu", "relu6", "gelu", "silu", "mish", "elu", "selu", "celu", "leaky_relu", "hardtanh", "hardswish", "hardsigmoid", "sigmoid", "tanh", "softplus", "logsigmoid", "glu", "prelu",
    "clamp", "softmax", "log_softmax", "layer_norm", "group_norm", "batch_norm", "instance_norm", "rms_norm", "normalize", "mean", "sum", "prod", "var", "std", "norm", "amax", "amin",
    "argmax", "argmin", "topk", "sort", "cumsum", "max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "embedding", "embedding_bag", "cat", "concat", "stack",
    "where", "masked_fill", "scaled_dot_product_attention", "clone", "eq", "ne", "lt", "le", "gt", "ge", "gather", "index_select", "one_hot", "cosine_similarity",
})  # fmt: skip
_MOST_PACKINGS = 8  # weights that change for ever are inputs in the end


def _depends_on_calls(graph, held):
    """The nodes that need anything but held weights."""
    found = set()
    for i, node in enumerate(n for n in graph.nodes if n.op == "placeholder"):
        if i not in held:
            found.add(node)
    for node in graph.nodes:
        if any(n in found for n in node.all_input_nodes):
            found.add(node)
    return found


def _name(node):
    return node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")


def _is_fresh(node):
    in_place = any(a is True for a in (*node.args, *node.kwargs.values()))  # relu(x, True); others with flags are looked through as well
    return node.op in ("call_function", "call_method") and _name(node) in _FRESH and not in_place and "out" not in node.kwargs


def _may_be_constant(node, alive, seen):
    """Could a result be memory that is the same in every call: a weight's, or of what was computed of weights alone?"""
    if node in seen:
        return False
    seen.add(node)
    if node not in alive:
        return True
    if node.op == "placeholder" or _is_fresh(node):
        return False
    return any(_may_be_constant(n, alive, seen) for n in node.all_input_nodes)


def can_be_held(graph, held):
    """Are the graph's results no memory of weights or constants? Callers may write to results."""
    alive = _depends_on_calls(graph, held)
    output = next(n for n in graph.nodes if n.op == "output")
    return not any(_may_be_constant(n, alive, set()) for n in output.all_input_nodes)


def are_batched(graph):
    """Have all inputs of convolutions a dimension of batches, in every call that the guards let through? They check numbers of dimensions, and only
    squeeze() makes these depend on sizes."""
    wanted = {"conv1d": 3, "conv2d": 4, "conv3d": 5, "convolution": -1, "_convolution": -1}
    for node in graph.nodes:
        name = _name(node)
        if name.startswith("squeeze"):
            return False
        if name in wanted and (not node.args or node.args[0].meta.get("ndim") != wanted[name]):
            return False
    return True


def with_constants(module, held, tensors):
    """The GraphModule of the same graph with the placeholders `held` (positions) as buffers."""
    root, graph, values = cresset.nn.Module(), Graph(), {}
    placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
    for i, node in enumerate(placeholders):
        if i not in held:
            values[node] = graph.node_copy(node)
    for k, (i, tensor) in enumerate(zip(held, tensors)):
        root.register_buffer(f"weight_{k}", tensor.detach())
        values[placeholders[i]] = graph.get_attr(f"weight_{k}")
    graph.output(graph.graph_copy(module.graph, values))
    return GraphModule(root, graph).eval()


class HeldWeights:
    """Calls the program whose weights are constants while they are the same, and the one that is given them where they are not.

    places: which of the inputs are weights.
    build(tensors, inputs) -> the former, or None where it does not give the same answer; general(inputs) -> the latter.
    A call takes a list of all inputs.
    """

    def __init__(self, places, build, general):
        self.places = places
        self._build, self._make_general, self._general = build, general, None
        self._packed, self._seen, self._packings = None, None, 0  # a function of inputs that gives None after a change; what weights are compared with
        self._lock = threading.Lock()

    def pack(self, inputs):
        """Takes the weights among the inputs as constants; False where they cannot be."""
        tensors = [inputs[i] for i in self.places]
        held = _C._weights_held(tensors)
        self._packings += 1
        program = self._build(tensors, inputs) if held is not None else None
        if program is None or not _C._weights_unchanged(held, tensors):
            return False
        self._packed = _C._engine_call(program, held, self.places) or self._several(program, held, len(inputs))
        return True

    def _several(self, program, held, count):
        """What _engine_call gives, of a program that is more than an engine."""
        places, rest = self.places, [i for i in range(count) if i not in self.places]

        def call(inputs):
            return program(*[inputs[i] for i in rest]) if _C._weights_unchanged(held, [inputs[i] for i in places]) else None

        return call

    def __call__(self, inputs):
        packed = self._packed
        results = packed(inputs) if packed is not None else None
        return results if results is not None else self._changed(inputs)

    def _changed(self, inputs):
        with self._lock:
            self._packed = None
            if self._general is None:
                self._general = self._make_general(inputs)
            if self._packings < _MOST_PACKINGS:
                # Weights that rest for a call are packed again.
                tensors = [inputs[i] for i in self.places]
                if self._seen is not None and _C._weights_unchanged(self._seen, tensors):
                    self._seen = None
                    self.pack(inputs)
                else:
                    self._seen = _C._weights_held(tensors)
        return self._general(inputs)
