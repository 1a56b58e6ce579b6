"""GraphModule: a module whose forward is generated from a Graph."""

import contextlib
import copy
import linecache
import os
import sys
import traceback
import warnings
from pathlib import Path

import cresset

from ..nn import Module
from ._codegen import _custom_builtins, _PyTreeCodeGen
from .graph import Graph

__all__ = ["GraphModule", "reduce_graph_module"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


class _EvalCacheLoader:
    """Sources of generated functions, where linecache and thereby tracebacks find them."""

    def __init__(self):
        self.eval_cache, self.next_id = {}, 0

    def cache(self, src, globals, co_fields=None):
        """Keep a source; gives the name of the file that it is said to be from."""
        key = f"<eval_with_key>.{self.next_id}"
        self.next_id += 1
        if co_fields and "co_filename" in co_fields:
            key += f" from {co_fields['co_filename']}:{co_fields['co_firstlineno']} in {co_fields['co_name']}"
        self.eval_cache[key] = src
        # Written in full: linecache does not look at what ends like `<lambda>`.
        linecache.cache[key] = (len(src), None, [line + "\n" for line in src.splitlines()], key)
        return key

    def get_source(self, module_name):
        """The source of that name, or None."""
        return self.eval_cache.get(module_name)


_loader = _EvalCacheLoader()
_real_import = __import__


def _import_torch(name, *args, **kwargs):
    """Generated code says torch, which is this package whatever else is installed."""
    if name == "torch" or name.startswith("torch."):
        module = __import__("importlib").import_module("cresset" + name[len("torch") :])
        fromlist = args[2] if len(args) > 2 else kwargs.get("fromlist")
        return module if fromlist else cresset
    return _real_import(name, *args, **kwargs)


def _exec_with_source(src, globals, co_fields=None):
    key = _loader.cache(src, globals, co_fields)
    exec(compile(src, key, "exec"), globals)


def _forward_from_src(src, globals, co_fields=None):
    return _method_from_src("forward", src, globals, co_fields)


def _method_from_src(method_name, src, globals, co_fields=None):
    variables = globals.copy()
    if "__builtins__" not in variables:
        import builtins

        variables["__builtins__"] = {**vars(builtins), "__import__": _import_torch}
    _exec_with_source(src, variables, co_fields)
    return variables.pop(method_name)


def _format_import_statement(name, obj):
    from cresset.package._mangling import demangle

    if name in _custom_builtins:
        return _custom_builtins[name].import_str
    if isinstance(obj, type(os)):
        return f"import {demangle(obj.__name__)} as {name}"
    module = demangle(getattr(obj, "__module__", None) or "builtins")
    if module.partition(".")[0] == "cresset":
        module = "torch" + module[len("cresset") :]
    found = getattr(obj, "__name__", None) or getattr(obj, "_name", None)
    if not isinstance(obj, type) and getattr(sys.modules.get(getattr(obj, "__module__", None)), name, None) is obj:
        found = name  # an object of its class's module, as Dyn
    if found is None:
        return f"{name} = {obj!r}"
    return f"from {module} import {found} as {name}" if found != name else f"from {module} import {name}"


def _format_import_block(globals, importer=None):
    """The imports of generated code; with an importer, which must find what they name."""
    if importer is not None:
        for name, obj in globals.items():
            if name not in _custom_builtins and hasattr(obj, "__qualname__"):
                importer.get_name(obj)
    return "\n".join(sorted({_format_import_statement(name, obj) for name, obj in globals.items()}))


def reduce_graph_module(body, import_block):
    """A GraphModule from what its pickle holds: the source is run, and traced again."""
    source = body.get("_code") or body.get("code")
    return _deserialize_graph_module(_forward_from_src(import_block + source, {}), body)


def reduce_package_graph_module(importer, body, generated_module_name):
    """A GraphModule from what a package holds: its source is a module of the package."""
    return _deserialize_graph_module(importer.import_module(generated_module_name).forward, body)


class _CodeOnlyModule(Module):
    """The state of a GraphModule without its graph."""

    def __init__(self, body):
        super().__init__()
        self.__dict__ = body


def _deserialize_graph_module(forward, body, graph_module_cls=None):
    body = dict(body)
    name = body.get("_graphmodule_cls_name", "GraphModule")
    body.pop("_graphmodule_cls_name", None)
    _CodeOnlyModule.forward = forward
    from ._symbolic_trace import Tracer

    tracer_cls = body.get("_tracer_cls") or Tracer
    if "_is_replica" not in body:
        body.setdefault("training", True)
    com = _CodeOnlyModule(body)

    class KeepModules(tracer_cls):
        def is_leaf_module(self, m, module_qualified_name):
            return True

    graph = KeepModules().trace(com, **(getattr(com, "_tracer_extras", None) or {}))
    graph._tracer_cls = tracer_cls
    made = (graph_module_cls or GraphModule)(com, graph, class_name=name)
    for key, value in body.items():
        if not hasattr(made, key):
            setattr(made, key, value)
    return made


def _walk(module, path, missing_ok=False):
    """(the module that has the last part of a path, that part)"""
    *prefix, field = path.split(".")
    for part in prefix:
        module = getattr(module, part)
    return module, field


def _copy_attr(from_module, to_module, target):
    *prefix, field = target.split(".")
    for part in prefix:
        source, there = getattr(from_module, part), getattr(to_module, part, None)
        if source is there:
            return
        if there is None:
            there = Module()
            setattr(to_module, part, there)
        from_module, to_module = source, there
    _install(to_module, field, getattr(from_module, field))


def _assign_attr(from_obj, to_module, target):
    *prefix, field = target.split(".")
    for part in prefix:
        there = getattr(to_module, part, None)
        if there is None:
            there = Module()
            setattr(to_module, part, there)
        to_module = there
    _install(to_module, field, from_obj)


def _install(module, field, value):
    if isinstance(value, cresset.Tensor) and not isinstance(value, cresset.nn.Parameter):
        module.register_buffer(field, value)
    else:
        setattr(module, field, value)


def _get_attr(model, attr_name):
    """The value at a path."""
    for part in attr_name.split("."):
        model = getattr(model, part)
    return model


def _has_attr(model, attr_name):
    """Is there a value at a path?"""
    for part in attr_name.split("."):
        if not hasattr(model, part):
            return False
        model = getattr(model, part)
    return True


def _del_attr(model, attr_name):
    """Delete what is at a path."""
    owner, field = _walk(model, attr_name)
    delattr(owner, field)


class _WrappedCall:
    """Calls a generated module; an error inside of the generated function is shown with its lines."""

    def __init__(self, cls, cls_call):
        self.cls, self.cls_call = cls, cls_call

    @staticmethod
    def _generate_error_message(frame):
        number = frame.lineno
        lines = linecache.getlines(frame.filename)
        return "\n".join([
            traceback.format_exc(),
            f"Call using an FX-traced Module, line {number} of the traced Module's generated forward function:",
            "".join(lines[max(0, number - 2) : number]),
            f"{'~' * max(3, len(lines[number - 1].rstrip()) if number <= len(lines) else 3)} <--- HERE",
            "".join(lines[number : number + 2]),
        ])  # fmt: skip

    def __call__(self, obj, *args, **kwargs):
        try:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            return super(self.cls, obj).__call__(*args, **kwargs)
        except Exception as error:
            assert error.__traceback__
            innermost = traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__))[-1]
            if "eval_with_key" in innermost.filename:
                print(_WrappedCall._generate_error_message(innermost), file=sys.stderr)
                raise error.with_traceback(None)  # noqa: B904
            raise


class GraphModule(Module):
    """A module with `graph`, `code` and a forward that is generated from the graph.

    root: the module, or {path: value}, from which what the graph names is taken. After a change of the graph, recompile() makes forward anew;
    assigning `graph` does so by itself. Each instance is of a class of its own.
    """

    def __new__(cls, *args, **kwargs):
        for base in cls.__mro__:
            if base.__qualname__.split(".")[-1] != "GraphModuleImpl":
                cls = base
                break

        class GraphModuleImpl(cls):
            pass

        return super().__new__(GraphModuleImpl)

    def __init__(self, root, graph, class_name="GraphModule"):
        super().__init__()
        self.__class__.__name__ = class_name
        if isinstance(root, Module):
            if hasattr(root, "training"):
                self.training = root.training
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module"):
                    _copy_attr(root, self, node.target)
        elif isinstance(root, dict):
            self._take_targets(root, graph)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self._replace_hooks, self._create_node_hooks, self._erase_node_hooks, self._deepcopy_hooks = [], [], [], []
        self.graph = graph
        self._tracer_cls = None
        if graph._tracer_cls and "<locals>" not in graph._tracer_cls.__qualname__:
            self._tracer_cls = graph._tracer_cls
        self._tracer_extras = {}
        if graph._tracer_extras:
            self._tracer_extras = graph._tracer_extras
        self.meta = {}
        if isinstance(root, GraphModule):
            self.meta.update(root.meta)
        self.shape_env = None

    def _take_targets(self, root, graph):
        wanted = []
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                if node.target not in root:
                    raise RuntimeError(f"Node {node} referenced target {node.target} but that target was not provided in ``root``!")
                wanted.append(node.target)
        for target in sorted(wanted, key=lambda t: t.count(".")):
            _assign_attr(root[target], self, target)

    __jit_unused_properties__ = ["graph", "_boxed_call"]

    @property
    def graph(self):
        """The Graph. What is assigned is compiled."""
        return self._graph

    @graph.setter
    def graph(self, g):
        assert isinstance(g, Graph), f"Expected a Graph instance, but got {type(g)}"
        self._graph = g
        g.owning_module = self
        self.recompile()

    def to_folder(self, folder, module_name="FxModule"):
        """Write the module as a package: source, and state beside it."""
        folder = Path(folder)
        folder.mkdir(exist_ok=True)
        cresset.save(self.state_dict(), folder / "state_dict.pt")
        tab = " " * 4
        custom = "\n".join(v.import_str for v in _custom_builtins.values())
        lines = [
            "", "import torch", custom.replace("import torch.", "import torch."), "", "from torch.nn import *",
            f"class {module_name}(torch.nn.Module):", f"{tab}def __init__(self):", f"{tab * 2}super().__init__()",
        ]  # fmt: skip
        blobs = []
        for name, module in self.named_children():
            text = _constructor_text(module)
            if text is None:
                blobs.append(name)
                file = folder / f"{name}.pt"
                cresset.save(module, file)
                text = f"torch.load(r'{file}', weights_only=False)"
                lines.append(f"{tab * 2}setattr(self, '{name}', {text}) # {type(module).__name__}")
            else:
                lines.append(f"{tab * 2}setattr(self, '{name}', {text})")
        for name, value in self._buffers.items():
            if value is not None:
                lines.append(f"{tab * 2}self.register_buffer('{name}', torch.empty({list(value.shape)}, dtype={_torch(value.dtype)}))")
        for name, value in self._parameters.items():
            if value is not None:
                lines.append(f"{tab * 2}setattr(self, '{name}', torch.nn.Parameter(torch.empty({list(value.shape)}, dtype={_torch(value.dtype)})))")
        lines.append(f"{tab * 2}self.load_state_dict(torch.load(r'{folder}/state_dict.pt'))")
        body = "\n".join(tab + line if line.strip() else "" for line in self.code.split("\n"))
        (folder / "module.py").write_text("\n".join(lines) + "\n" + body + "\n")
        (folder / "__init__.py").write_text("from .module import *")
        if blobs:
            warnings.warn(f"Was not able to save the following children modules as reprs -saved as pickled files instead: {blobs}", stacklevel=2)

    def add_submodule(self, target, m):
        """Install a module at a path, with empty modules on the way; False when something else is in the way."""
        *prefix, field = target.split(".")
        module = self
        for part in prefix:
            child = getattr(module, part, None)
            if child is None:
                child = Module()
                setattr(module, part, child)
            if not isinstance(child, Module):
                return False
            module = child
        module.add_module(field, m)
        return True

    def delete_submodule(self, target):
        """Delete the module at a path; False when there is none."""
        *prefix, field = target.split(".")
        module = self
        for part in [*prefix, field]:
            if not isinstance(getattr(module, part, None), Module):
                return False
            if part is not field:
                module = getattr(module, part)
        owner, field = _walk(self, target)
        delattr(owner, field)
        return True

    def delete_all_unused_submodules(self):
        """Delete the submodules that no node uses, not those above of what is used."""
        used = set()
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            parts = node.target.split(".")
            used.update(".".join(parts[:at]) for at in range(1, len(parts)))
            used.add(node.target)
            if node.op == "call_module":
                try:
                    below = self.get_submodule(node.target)
                except AttributeError:
                    continue
                used.update(f"{node.target}.{name}" for name, _ in below.named_modules() if name)
        for name in [n for n, _ in self.named_modules() if n and n not in used]:
            self.delete_submodule(name)

    @property
    def code(self):
        """The source of forward; RuntimeError when it was never generated."""
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self._code

    def recompile(self):
        """Generate forward from the graph; gives its PythonCode."""
        if isinstance(self._graph._codegen, _PyTreeCodeGen):
            self._in_spec, self._out_spec = self._graph._codegen.pytree_info.in_spec, self._graph._codegen.pytree_info.out_spec
        python_code = self._graph.python_code(root_module="self")
        self._code, self._lineno_map, self._prologue_start = python_code.src, python_code._lineno_map, python_code._prologue_start
        cls = type(self)
        cls.forward = _forward_from_src(self._code, python_code.globals, self._graph._co_fields)
        cls_call = cls.__call__ if "__call__" in vars(cls) else None
        if "_wrapped_call" not in vars(cls):
            cls._wrapped_call = _WrappedCall(cls, cls_call)

        def call_wrapped(self, *args, **kwargs):
            return self._wrapped_call(self, *args, **kwargs)

        cls.__call__ = call_wrapped
        return python_code

    def _recompile_submodules(self):
        return [(name, m.recompile()) for name, m in self.named_children() if isinstance(m, GraphModule)]

    def __reduce__(self):
        body = self.__dict__.copy()
        del body["_graph"]
        body["_graphmodule_cls_name"] = type(self).__name__
        return reduce_graph_module, (body, _format_import_block(self._graph_code().globals))

    def __reduce_package__(self, exporter):
        body = self.__dict__.copy()
        del body["_graph"]
        body["_graphmodule_cls_name"] = type(self).__name__
        name = f"fx-generated._{exporter.get_unique_id()}"
        code = self._graph_code()
        exporter.save_source_string(name, _format_import_block(code.globals, exporter.importer) + "\n" + self.code)
        return reduce_package_graph_module, (body, name)

    def _graph_code(self):
        return self.recompile()

    def _deepcopy_init(self):
        return GraphModule.__init__

    def __deepcopy__(self, memo):
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        state = _CodeOnlyModule(copy.deepcopy(self.__dict__, memo))
        self._deepcopy_init()(made, state, state.__dict__["_graph"])
        for name in (
            "_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_replace_hooks", "_create_node_hooks",
            "_erase_node_hooks", "_deepcopy_hooks",
        ):  # fmt: skip
            if name in self.__dict__:
                setattr(made, name, copy.deepcopy(self.__dict__[name], memo))
        made.meta = copy.deepcopy(getattr(self, "meta", {}), memo)
        for name in self.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}):
            setattr(made, name, made.meta[_USER_PRESERVED_ATTRIBUTES_KEY][name])
        for hook in made._deepcopy_hooks:
            hook(made)
        type(made).__name__ = type(self).__name__
        return made

    def __copy__(self):
        from ._lazy_graph_module import _make_graph_module

        made = _make_graph_module(self, self.graph, type(self).__name__)
        made.meta = getattr(self, "meta", {})
        return made

    def print_readable(
        self, print_output=True, include_stride=False, include_device=False, colored=False, *, fast_sympy_print=False, expanded_def=False,
        additional_meta=None,
    ):  # fmt: skip
        """The code with comments that say where it is from, and with tensors' dtypes and shapes, of this module and of those below it."""
        text = _print_readable(
            self, type(self).__name__ if type(self).__name__ != "GraphModuleImpl" else "GraphModule", include_stride=include_stride,
            include_device=include_device, colored=colored, expanded_def=expanded_def,
        )  # fmt: skip
        if print_output:
            print(text)
        return text

    def __str__(self):
        return "\n".join([super().__repr__(), self._code, "# To see more debug info, please use `graph_module.print_readable()`"])

    def _replicate_for_data_parallel(self):
        made = self.__copy__()
        made.__dict__["_is_replica"] = True
        return made

    @contextlib.contextmanager
    def _set_replace_hook(self, f):
        """For a block, f(old=node, new=name, user=node) hears of replaced arguments."""
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)


def _add_hooks(kind, note):
    def register(self, f):
        assert callable(f), f"{kind} hook must be a callable."
        getattr(self, f"_{kind}_hooks").append(f)

    def unregister(self, f):
        getattr(self, f"_{kind}_hooks").remove(f)

    register.__doc__, unregister.__doc__ = f"f is called {note}.", f"f is no longer called {note}."
    name = kind if kind.endswith("node") or kind == "deepcopy" else f"{kind}_node"
    setattr(GraphModule, f"_register_{name}_hook", register)
    setattr(GraphModule, f"_unregister_{name}_hook", unregister)


_add_hooks("create_node", "with each node that is made")
_add_hooks("erase_node", "with each node that is erased")
_add_hooks("deepcopy", "with copies")


def _register_replace(self, f):
    """f(old=node, new=name, user=node) is called when an argument is replaced."""
    assert callable(f), "create_node hook must be a callable."
    self._replace_hooks.append(f)


def _unregister_replace(self, f):
    """f is no longer called when an argument is replaced."""
    self._replace_hooks.remove(f)


GraphModule._register_replace_node_hook, GraphModule._unregister_replace_node_hook = _register_replace, _unregister_replace


def _torch(dtype):
    return f"torch.{str(dtype).rpartition('.')[2]}"


_SAFE_REPR = ("Linear", "Conv1d", "Conv2d", "Conv3d", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d")


def _constructor_text(module):
    """The call that makes a module anew, or None."""
    name = type(module).__name__
    if name in _SAFE_REPR and getattr(cresset.nn, name) is type(module):
        return repr(module)
    return None


def _print_readable(module, module_name, **shown):
    code = module._graph.python_code(root_module="self", verbose=True, **shown).src.lstrip("\n")
    lines = [f"class {module_name}(torch.nn.Module):"]
    text = "\n".join(lines) + "\n" + _indented(code.rstrip(" ").rstrip("\n") + "\n", 4)
    inner = []
    for name, child in module.named_children():
        if hasattr(child, "_graph") and isinstance(child._graph, Graph):
            inner.append(_indented(_print_readable(child, name, **shown), 4))
    return text + "".join("\n" + part for part in inner)


def _indented(text, width):
    return "".join((" " * width + line if line.strip() else line.lstrip(" ")) for line in text.splitlines(keepends=True))


