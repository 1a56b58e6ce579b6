"""A module as one flat graph of operators that write nothing, with its gradients where they are asked for, and what the graph's inputs and outputs are."""

import dataclasses

import cresset
from cresset._library.fake_class_registry import as_fake
from cresset._subclasses.fake_tensor import FakeTensor, FakeTensorMode, maybe_get_fake_mode
from cresset._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode
from cresset.fx import Node
from cresset.fx.experimental.proxy_tensor import disable_proxy_modes_tracing, make_fx
from cresset.nn.utils.stateless import _reparametrize_module
from cresset.utils import _pytree as pytree

__all__ = ["BackwardSignature", "GraphSignature", "aot_export_module"]

_NO_LOSS = """If trace_joint=True it is required that one of your forward outputs must be a scalar loss.
You must specify the which (index) output is the loss with output_loss_index."""
_OTHER_GRADIENTS = """Found an output of the forward that requires gradients, that was not the scalar loss.
We require all outputs to the forward that are not the scalar loss to not require gradient,
because we will only compute a backward graph against the scalar loss.
You can fix this by calling .detach() on each of your forward outputs that is not the loss.
You specified that output index {} is the loss, but we found that
the output at index {} requires gradients."""


@dataclasses.dataclass
class BackwardSignature:
    """Which outputs are gradients: {node: parameter's name}, {node: input's node}, and the loss's node."""

    gradients_to_parameters: dict
    gradients_to_user_inputs: dict
    loss_output: str


@dataclasses.dataclass
class GraphSignature:
    """The inputs of the graph are parameters, buffers, user inputs; its outputs new values of buffers, parameters and inputs, user outputs, gradients."""

    parameters: list
    buffers: list
    user_inputs: list
    user_outputs: list
    inputs_to_parameters: dict
    inputs_to_buffers: dict
    buffers_to_mutate: dict
    parameters_to_mutate: dict
    user_inputs_to_mutate: dict
    in_spec: object
    out_spec: object
    backward_signature: BackwardSignature | None
    input_tokens: list = dataclasses.field(default_factory=list)
    output_tokens: list = dataclasses.field(default_factory=list)


def _value(x):
    return x.from_functional() if isinstance(x, FunctionalTensor) else x


class _Run:
    """The function of flat inputs that is recorded: new values of what was written, outputs, gradients; and what it noted about them."""

    def __init__(self, mod, names, in_spec, needed, loss):
        self.mod, self.names, self.in_spec, self.needed, self.loss = mod, names, in_spec, needed, loss
        self.written, self.out_spec = [], None

    def __call__(self, *flat):
        with disable_proxy_modes_tracing():  # the same places, so the same nodes
            values = [x.detach().requires_grad_(i in self.needed) if isinstance(x, cresset.Tensor) else x for i, x in enumerate(flat)]
        with FunctionalTensorMode() as mode, cresset.set_grad_enabled(self.loss is not None):
            inputs = [FunctionalTensor(x, mode) if isinstance(x, cresset.Tensor) else x for x in values]
            with _reparametrize_module(self.mod, dict(zip(self.names, inputs)), tie_weights=False):
                args, kwargs = pytree.tree_unflatten(inputs[len(self.names) :], self.in_spec)
                result = self.mod(*args, **kwargs)
            if not isinstance(result, (tuple, list)):
                raise RuntimeError(
                    "Graph output must be a (). This is so that we can avoid pytree processing of the outputs. Please change the module to have tuple outputs or use aot_module instead."
                )
            outputs, self.out_spec = pytree.tree_flatten(tuple(result))
            outputs = [_value(x) for x in outputs]
            self.written = [i for i, x in enumerate(inputs) if isinstance(x, FunctionalTensor) and x._storage.generation]
            new = [_value(inputs[i]) for i in self.written]
        return (*new, *outputs, *self._gradients(values, outputs))

    def _gradients(self, values, outputs):
        if self.loss is None:
            return []
        for at, x in enumerate(outputs):
            if at != self.loss and isinstance(x, cresset.Tensor) and x.requires_grad:
                raise RuntimeError(_OTHER_GRADIENTS.format(self.loss, at))
        loss = outputs[self.loss]
        if loss.numel() != 1:
            raise RuntimeError(f"We require the output marked as the loss (at index {self.loss}) to be a scalar, but it has shape {tuple(loss.shape)}")
        with cresset.enable_grad():
            return cresset.autograd.grad(loss, [values[i] for i in self.needed], allow_unused=True)


def aot_export_module(mod, args, *, decompositions=None, trace_joint, output_loss_index=None, pre_dispatch=False, dynamic_shapes=None, kwargs=None):
    """(fx.GraphModule, GraphSignature) of a module: a flat function of its parameters, buffers and inputs, of operators that write nothing.

    Composite operators come apart, and what `decompositions` ({overload: function}) has. What the module writes to buffers or inputs are outputs in front of
    its own, which are a tuple. With trace_joint the gradients of its output number output_loss_index, a scalar, follow: those of the parameters and inputs
    that require one. RuntimeError where another output requires a gradient. Sizes are those of the arguments, which may be fakes.
    """
    if pre_dispatch:
        raise NotImplementedError("aot_export_module: pre_dispatch=True is not supported. Use torch.export.export, whose graphs are those above autograd.")
    if trace_joint and output_loss_index is None:
        raise RuntimeError(_NO_LOSS)
    if not trace_joint and output_loss_index is not None:
        raise RuntimeError("aot_export_module: output_loss_index is given, and trace_joint is False. Leave one of them out.")
    parameters = dict(mod.named_parameters(remove_duplicate=False))
    buffers = dict(mod.named_buffers(remove_duplicate=False))
    leaves, in_spec = pytree.tree_flatten((tuple(args), dict(kwargs or {})))
    state = [*parameters.values(), *buffers.values()]
    mode = maybe_get_fake_mode([*state, *leaves]) or FakeTensorMode(allow_non_fake_inputs=True)
    given = [as_fake(mode, x) if not isinstance(x, cresset.Tensor) or isinstance(x, FakeTensor) else mode.from_tensor(x) for x in (*state, *leaves)]
    needed = [i for i, x in enumerate(given) if trace_joint and isinstance(x, cresset.Tensor) and x.requires_grad]
    run = _Run(mod, [*parameters, *buffers], in_spec, needed, output_loss_index if trace_joint else None)
    # Numbers, and nothing else, would make the function's own names those of the placeholders.
    graph = make_fx(lambda *flat: run(*flat), decompositions, "fake")(*given)
    return graph, _signature(graph, run, list(parameters), list(buffers), len(leaves))


def _name(node):
    return node.name if isinstance(node, Node) else None


def _signature(graph, run, parameters, buffers, inputs):
    nodes = [n.name for n in graph.graph.nodes if n.op == "placeholder"]
    state, names = [*parameters, *buffers], nodes[len(parameters) + len(buffers) :]
    outputs = [_name(x) for x in next(n for n in graph.graph.nodes if n.op == "output").args[0]]
    new, outputs = dict(zip(run.written, outputs)), outputs[len(run.written) :]
    count = run.out_spec.num_leaves
    backward = None
    if run.loss is not None:
        found = dict(zip(run.needed, outputs[count:]))
        of_parameters = {name: parameters[i] for i, name in found.items() if i < len(parameters) and name is not None}
        of_inputs = {name: nodes[i] for i, name in found.items() if i >= len(state) and name is not None}
        backward = BackwardSignature(of_parameters, of_inputs, outputs[run.loss])
    return GraphSignature(
        parameters, buffers, names, outputs[:count], dict(zip(nodes, parameters)), dict(zip(nodes[len(parameters) :], buffers)),
        {name: state[i] for i, name in new.items() if len(parameters) <= i < len(state)}, {name: state[i] for i, name in new.items() if i < len(parameters)},
        {name: nodes[i] for i, name in new.items() if i >= len(state)}, pytree.tree_structure(((*[0] * len(nodes),), {})), run.out_spec, backward,
    )  # fmt: skip
