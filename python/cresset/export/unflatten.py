"""Programs as modules of modules again: each module that the program called is one, with a graph of its own."""

import abc
import contextlib
import re

import cresset
from cresset import fx
from cresset.fx._symbolic_trace import is_fx_symbolic_tracing
from cresset.utils import _pytree as pytree

from ._checks import check_inputs, reordered
from ._frames import split
from ._unlift import expected_inputs, register_kinds
from .graph_signature import InputKind

__all__ = ["FlatArgsAdapter", "InterpreterModule", "InterpreterModuleDispatcher", "UnflattenedModule", "unflatten"]

_RUN_WITH_INTERPRETER = True


@contextlib.contextmanager
def _disable_interpreter():
    """For a block modules are made that run code generated from their graphs."""
    global _RUN_WITH_INTERPRETER
    before, _RUN_WITH_INTERPRETER = _RUN_WITH_INTERPRETER, False
    try:
        yield
    finally:
        _RUN_WITH_INTERPRETER = before


class FlatArgsAdapter(abc.ABC):
    """Makes the inputs of a call fit the program, where they have another structure than those it was exported with."""

    @abc.abstractmethod
    def adapt(self, target_spec, input_spec, input_args, metadata=None, obj=None):
        """The leaves for target_spec, of the leaves input_args of a call with the structure input_spec."""


class InterpreterModule(cresset.nn.Module):
    """A module that runs its graph node by node. Other modules may be put in place of its submodules."""

    def __init__(self, graph):
        super().__init__()
        self.graph, self._run_with_interpreter = graph, _RUN_WITH_INTERPRETER

    def finalize(self):
        """Generate the code of the graph, when everything is there that it uses."""
        graph_module = fx.GraphModule(self, self.graph)
        object.__setattr__(self, "graph_module", graph_module)  # it is no submodule
        self.arg_names = [n.target for n in self.graph.nodes if n.op == "placeholder"]

    def forward(self, *args, **kwargs):
        """Run the graph; keyword inputs are placed by the placeholders' names."""
        if not self._run_with_interpreter or is_fx_symbolic_tracing():
            return type(self.graph_module).forward(self, *args, **kwargs)
        if kwargs:
            names = self.arg_names[len(args) :]
            if kwargs.keys() != set(names):
                raise RuntimeError(f"{type(self).__name__}: the keyword inputs {sorted(kwargs)} were given; {names} were required.")
            args = (*args, *(kwargs[name] for name in names))
        return fx.Interpreter(self, graph=self.graph).run(*args, enable_io_processing=False)

    def print_readable(self, print_output=True, include_stride=False, include_device=False, colored=False):
        """The code of the graph; printed, too, unless print_output is False."""
        return self.graph_module.print_readable(print_output, include_stride, include_device, colored)


class InterpreterModuleDispatcher(cresset.nn.Module):
    """The graphs of the calls of one module, in their order: each call runs the next, and after the last the first. They share their tensors."""

    def __init__(self, modules):
        super().__init__()
        if not modules:
            raise ValueError("InterpreterModuleDispatcher: modules must not be empty.")
        self._parameters, self._buffers, self._modules = modules[0]._parameters, modules[0]._buffers, modules[0]._modules
        self._non_persistent_buffers_set = modules[0]._non_persistent_buffers_set
        for module in modules[1:]:
            for ours, theirs in ((self._parameters, module._parameters), (self._buffers, module._buffers), (self._modules, module._modules)):
                ours.update((name, value) for name, value in theirs.items() if name not in ours)
            self._non_persistent_buffers_set |= module._non_persistent_buffers_set
            module._parameters, module._buffers, module._modules = self._parameters, self._buffers, self._modules
        for module in modules:
            self.__dict__.update((name, value) for name, value in vars(module).items() if isinstance(value, cresset.Tensor))
        self._call_modules, self._call = list(modules), 0

    def call_modules(self):
        """The modules, in the order of the calls."""
        return list(self._call_modules)

    def forward(self, *args, **kwargs):
        """Run the next graph."""
        module = self._call_modules[self._call]
        self._call = (self._call + 1) % len(self._call_modules)
        return module(*args, **kwargs)

    def print_readable(self, print_output=True, include_stride=False, include_device=False, colored=False):
        """The code of all graphs."""
        return "\n".join(m.print_readable(print_output, include_stride, include_device, colored) for m in self._call_modules)


class UnflattenedModule(InterpreterModule):
    """What `unflatten` gives: called as the exported module was. Its tensors are copies of the program's."""

    def __init__(self, export_module, flat_args_adapter=None):
        if export_module.graph_signature.backward_signature is not None:
            raise ValueError("Unflattening on JointExportModule NYI")
        root = split(export_module)
        super().__init__(root.graph)
        self.graph_signature, self.module_call_graph = export_module.graph_signature, export_module.module_call_graph
        self.range_constraints, self.flat_args_adapter = export_module.range_constraints, flat_args_adapter
        self.meta, self.adapted, self.check_input_constraints = dict(export_module.graph_module.meta), False, True
        self._signature = export_module.module_call_graph[0].signature
        self._expected = expected_inputs(export_module)
        register_kinds(self._signature.in_spec)
        self._attach(root, export_module)
        self.training = export_module.graph_module.training
        for module in [m for m in self.modules() if isinstance(m, InterpreterModule)] + [c for d in self._dispatchers for c in d.call_modules()]:
            module.finalize()

    def _attach(self, root, program):
        for entry in program.module_call_graph:
            _module_at(self, entry.fqn)
        self._dispatchers, frames = [], _frames_below(root)
        _set_attributes(self, root)
        kept = [f for f in frames if not any(outer.same_as for outer in _chain(f))]
        for frame in kept:
            _module_at(self, frame.accessor)
        for frame in kept:
            module = InterpreterModule(frame.graph)
            _set_attributes(module, frame)
            _put(self, frame.accessor, module)
        self._attach_state(program, [f for f in kept if "@" in f.accessor], kept)
        groups = {}
        for frame in kept:
            if frame.signature is not None:
                groups.setdefault(re.sub(r"@\d+$", "", frame.accessor), []).append(frame)
        for place, calls in groups.items():
            if len(calls) > 1 or calls[0].accessor != place:
                self._dispatch(place, calls)

    def _attach_state(self, program, repeated, frames):
        """The tensors at their own paths, and at those of further calls of their modules."""
        shared = [(f, attribute, target) for f in frames for attribute, target in f.shared.items()]
        kinds = {s.target: s for s in program.graph_signature.input_specs if s.kind is not InputKind.USER_INPUT}
        hidden = {name for name, spec in kinds.items() if spec.kind is InputKind.BUFFER and not spec.persistent}
        copies = {}
        for name, original in {**program.state_dict, **program.constants}.items():
            is_state = name in program.state_dict
            if id(original) not in copies:
                copies[id(original)] = _copy(original)
            tensor = copies[id(original)]
            places = [name, *(f"{f.accessor}{name[len(f.path) :]}" for f in repeated if name.startswith(f"{f.path}."))]
            for place in places:
                path, _, attribute = place.rpartition(".")
                module = _module_at(self, path)
                if isinstance(tensor, cresset.nn.Parameter):
                    module.register_parameter(attribute, tensor)
                elif is_state or name in hidden:
                    module.register_buffer(attribute, tensor, persistent=is_state)
                else:
                    setattr(module, attribute, tensor)
            for frame, attribute, target in shared:
                if target == name:
                    _module_at(self, frame.accessor).__dict__[attribute] = tensor  # belongs to the other module

    def _dispatch(self, place, frames):
        """The calls of a module whose signature is preserved, as one module at a place."""
        modules = [_module_at(self, frame.accessor) for frame in frames]
        for frame in frames:
            above, _, name = frame.accessor.rpartition(".")
            if frame.accessor != place:
                del _module_at(self, above)._modules[name]
        if len(modules) == 1:
            _put(self, place, modules[0])
        else:
            self._dispatchers.append(InterpreterModuleDispatcher(modules))
            _put(self, place, self._dispatchers[-1])

    def process_forward_inputs(self, *args, **kwargs):
        """The leaves of a call's inputs, checked against the program. TypeError for another structure when there is no adapter."""
        in_spec = self._signature.in_spec
        args, kwargs = reordered(args, kwargs, in_spec)
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if is_fx_symbolic_tracing():
            return leaves
        if spec != in_spec:
            if self.flat_args_adapter is None:
                raise TypeError("There is no flat args adapter specified. Are you sure you are calling this with the right arguments? ")
            leaves = self.flat_args_adapter.adapt(target_spec=in_spec, input_spec=spec, input_args=leaves)
            if len(leaves) != in_spec.num_leaves:
                raise TypeError(f"Flat args adaption failed, number of args mismatch Adatped: {len(leaves)} \nExported module: {in_spec.num_leaves}")
            self.adapted = True
            args, kwargs = pytree.tree_unflatten(leaves, in_spec)
        if self.check_input_constraints:
            check_inputs(args, kwargs, in_spec, self._expected, self.range_constraints)
        return leaves

    def forward(self, *args, **kwargs):
        """Run the program."""
        leaves = self.process_forward_inputs(*args, **kwargs)
        if not self._run_with_interpreter or is_fx_symbolic_tracing():
            result = type(self.graph_module).forward(self, *leaves)
        else:
            result = fx.Interpreter(self, graph=self.graph).run(*leaves, enable_io_processing=False)
        return pytree.tree_unflatten(result, self._signature.out_spec)


def _copy(tensor):
    if not isinstance(tensor, cresset.Tensor):
        return tensor  # an object of a C++ class
    copy = tensor.detach().clone()
    return cresset.nn.Parameter(copy, tensor.requires_grad) if isinstance(tensor, cresset.nn.Parameter) else copy.requires_grad_(tensor.requires_grad)


def _chain(frame):
    while frame is not None:
        yield frame
        frame = frame.parent


def _frames_below(frame):
    return [f for child in frame.children for f in (child, *_frames_below(child))]


def _module_at(root, path):
    """The module at a path; those that are not there are made."""
    for name in path.split(".") if path else ():
        if name not in root._modules:
            root.add_module(name, cresset.nn.Module())
        root = root._modules[name]
    return root


def _put(root, path, module):
    """Put a module at a path; it takes the submodules of what is there."""
    above, _, name = path.rpartition(".")
    above = _module_at(root, above)
    if (before := above._modules.get(name)) is not None and before._modules is not module._modules:
        module._modules.update(before._modules)
    above._modules[name] = module


def _set_attributes(module, frame):
    for name, value in frame.attributes.items():
        setattr(module, name, value)


def unflatten(module, flat_args_adapter=None):
    """A module with the submodules that an exported one had, from its ExportedProgram: an UnflattenedModule.

    Submodules take what their part of the graph needs, which is not what their forward took. With preserve_module_call_signature in `export` they have its
    signature, and another module of that signature may take their place. flat_args_adapter: a FlatArgsAdapter for calls with inputs of another structure.
    NotImplementedError for a preserved signature with which the module cannot be cut out of the graph.
    """
    return UnflattenedModule(module, flat_args_adapter)
