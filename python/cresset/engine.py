"""Modules with engines: the lowered graph is partitioned, and what a backend's engine has becomes one; the rest stays with the interpreter.

    compiled = cresset.engine.compile(module, inputs=[cresset.lowering.Input((1, 3, 224, 224))])
    print(cresset.engine.report(compiled))
    compiled.save("out.cre")            # jit.load reads it
"""

from __future__ import annotations

import weakref

import cresset
from cresset import _C

_C._load_graph_part()

from cresset._engine_profile import Profile, profile
from cresset.export import ExportedProgram
from cresset.export._load import ir_module
from cresset.lowering import Input, _inputs, _settings

__all__ = ["Calibrator", "Input", "Profile", "accuracy", "backends", "check_method_operator_support", "compile", "convert_method_to_engine", "converter", "embed_engine_in_new_module",
           "evaluator", "partition", "precisions", "profile", "report"]

_reports = weakref.WeakKeyDictionary()  # compiled module -> its partition's text
_accuracies = weakref.WeakKeyDictionary()


class Calibrator:
    """Calls for which engines of int8 learn the ranges of their tensors, and for which results are compared with float32.

    data: an iterable of tuples of arguments, or of tensors for a method of one; a few hundred rows like those of later calls do. It is read once.
    method: "entropy" (outliers are cut off where 8 bits keep most of the distribution), "percentile" (`percentile` of a hundred magnitudes stay) or
    "max" (nothing is cut off). ValueError for other methods and percentiles, and where there are no calls.
    """

    def __init__(self, data, method: str = "entropy", percentile: float = 99.99):
        self.calls = [tuple(call) if isinstance(call, (tuple, list)) else (call,) for call in data]
        if not self.calls:
            raise ValueError("Calibrator: at least one call's arguments were required.")
        self.method, self.percentile = method, float(percentile)


def _calibration(calibrator):
    """The last arguments of _engine_compile: calls, method and percentile, or none."""
    if calibrator is None:
        return ()
    if not isinstance(calibrator, Calibrator):
        raise TypeError(f"compile: calibrator: an engine.Calibrator was required; got {type(calibrator).__name__}.")
    return calibrator.calls, calibrator.method, calibrator.percentile


def _script(module):
    if isinstance(module, cresset.jit.ScriptFunction):
        raise TypeError("compile: a module was required; a ScriptFunction was given. Call it from a module's forward.")
    if isinstance(module, cresset.jit.ScriptModule):
        return module
    if isinstance(module, cresset.nn.Module):
        return cresset.jit.script(module)
    if isinstance(module, ExportedProgram):
        return ir_module(module)
    raise TypeError(f"compile: a module was required; got {type(module).__name__}.")


def _arguments(inputs, torch_executed_modules, options):
    specs = _inputs(inputs)
    return specs, _settings({**options, "torch_executed_modules": list(torch_executed_modules) or None}, inputs=specs)


def _precisions(given):
    """Names of dtypes; none: float32."""
    names = {"fp32": "float32", "f32": "float32", "float": "float32", "fp16": "float16", "f16": "float16", "half": "float16", "bf16": "bfloat16", "i8": "int8", "char": "int8"}
    given = (given,) if isinstance(given, (str, cresset.dtype)) else given or ()
    return [names.get(str(one), str(one).rpartition(".")[2]) for one in given]


def compile(module, inputs=None, *, method: str = "forward", backend: str = "cpu", min_block_size: int = 3, torch_executed_ops=(), torch_executed_modules=(),
            require_full_compilation: bool = False, enabled_precisions=None, calibrator=None, truncate_long_and_double: bool = False, dryrun=False, **options):
    """A script module whose method calls engines of `backend`; `module` itself, scripted, where no engine came of it (with a warning).

    module: a module in evaluation mode, which is scripted unless it is a script or trace, or an ExportedProgram; it stays as it is.
    inputs: for each input an Input (or what Input() takes, a tensor, or None): the graph is typed with them. Sizes stay values: the result takes any.
    backend: one of backends(), or several with commas: each gets what those before it do not have.
    min_block_size: segments of fewer operators stay with the interpreter; not asked where the engine has the whole.
    torch_executed_ops, torch_executed_modules: operators ("aten::relu") and submodules (paths or classes) that stay with the interpreter.
    require_full_compilation: ValueError, naming operators and places, unless the whole is one engine.
    enabled_precisions: dtypes that engines may compute float32 in, {cresset.bfloat16}; ValueError for what the backend or this processor does not have.
    calibrator: a Calibrator; int8 among the precisions needs it. accuracy() says what it cost.
    truncate_long_and_double: int64 and float64 are int32 and float32 inside of engines whose backend does not take them, with a warning; else they are a
    ValueError there.
    dryrun: decides and builds nothing: prints the report, or writes it to the file of that name, and gives the scripted module.
    Other keywords are options of lowering.
    """
    script = _script(module)
    _, settings = _arguments(inputs, torch_executed_modules, options)
    if dryrun:
        return _dry_run(script, method, settings, backend, min_block_size, list(torch_executed_ops), dryrun)
    handle, text, engines, lost = _C._engine_compile(
        script, method, settings, backend, min_block_size, list(torch_executed_ops), require_full_compilation, _precisions(enabled_precisions), truncate_long_and_double,
        *_calibration(calibrator),
    )  # fmt: skip
    compiled = cresset.jit._recursive.wrap_module(handle) if engines else script
    _reports[compiled], _accuracies[compiled] = text, lost
    return compiled


def _dry_run(script, method, settings, backend, min_block_size, operators, where):
    text = _C._engine_partition(script, method, settings, backend, min_block_size, operators)
    if where is True:
        print(text, end="")
    else:
        with open(where, "w", encoding="utf-8") as file:
            file.write(text)
    _reports[script] = text
    return script


def convert_method_to_engine(module, method: str = "forward", *, inputs=None, backend: str = "cpu", enabled_precisions=None, calibrator=None,
                             truncate_long_and_double: bool = False, **options) -> bytes:
    """The whole method as the bytes of one engine file: graph and weights, an ABI tag and a checksum, for the backend of that name.

    ValueError, naming operators and places, where the engine does not have the whole.
    """
    _, settings = _arguments(inputs, (), options)
    return _C._engine_convert(_script(module), method, settings, backend, _precisions(enabled_precisions), truncate_long_and_double,
                              *_calibration(calibrator))


def embed_engine_in_new_module(serialized_engine: bytes, name: str = "Engine"):
    """A script module whose forward takes the tensors of an engine file and gives its results, several as a tuple; it saves and loads as any other.

    ValueError for what is no engine file, one of another ABI or target, one whose bytes were changed, and where its backend is not registered.
    """
    return cresset.jit._recursive.wrap_module(_C._engine_embed(bytes(serialized_engine), name))


def partition(module, inputs=None, *, method: str = "forward", backend: str = "cpu", min_block_size: int = 3, torch_executed_ops=(), torch_executed_modules=(),
              **options) -> str:
    """What compile() would do, as text: segments, and each node with its reason and place."""
    _, settings = _arguments(inputs, torch_executed_modules, options)
    return _C._engine_partition(_script(module), method, settings, backend, min_block_size, list(torch_executed_ops))


def report(compiled) -> str:
    """The partition that compile() made of a module. ValueError for other modules."""
    if compiled not in _reports:
        raise ValueError("report: a module that compile() gave was required.")
    return _reports[compiled]


def accuracy(compiled) -> str:
    """How far a compiled module's results were from the given module's for the calibrator's calls, in a line. ValueError for modules compiled without one."""
    if not _accuracies.get(compiled):
        raise ValueError("accuracy: a module that compile() gave with a calibrator was required.")
    return _accuracies[compiled]


def check_method_operator_support(module, method: str = "forward", *, backend: str = "cpu", inputs=None, **options) -> list[str]:
    """The operators of a method that the backend's engine does not have, "aten::sort (file:3:4)"; empty when it has all."""
    _, settings = _arguments(inputs, (), options)
    return _C._engine_missing(_script(module), method, settings, backend)


def precisions(backend: str = "cpu") -> list:
    """The dtypes that engines of the backend can compute float32 in, on this machine."""
    return [getattr(cresset, name) for name in _C._engine_precisions(backend)]


def backends() -> list[str]:
    """Names of the backends that build engines."""
    return _C._engine_builders()


class ConversionContext:
    """The graph of an engine that is being built, at the node that is converted; for the time of the converter's call."""

    def __init__(self, handle):
        self._handle = handle

    def call(self, operator: str, *args):
        """The value of calling an operator, "aten::mul", with values and constants (numbers, texts, None, lists of either)."""
        return _C._conversion_call(self._handle, operator, args)

    def weight(self, tensor):
        """A tensor that the engine holds, as a value."""
        return _C._conversion_weight(self._handle, tensor)

    def constant(self, value, default=None):
        """What a value always is, a number, a list or a weight; `default` where that is not known."""
        known, found = _C._conversion_constant(self._handle, value)
        return found if known else default


def converter(schema: str, *, backend: str = "cpu", supports=None):
    """Decorator: the function says an operator in others that engines of the backend have.

        @cresset.engine.converter("mine::scaled(Tensor x, float by) -> Tensor")
        def scaled(ctx, node, x, by):
            return ctx.call("aten::mul", x, by)

    function: (ConversionContext, node, values of its inputs) -> the value of its result, a tuple for several.
    supports: of a node (`torch._C.Node`), whether the converter takes it; else all nodes of the operator and overload.
    A later converter of the same operator replaces the one before, with a warning. ValueError for schemas that cannot be read, and for arguments that no
    overload of a registered operator has. Archives and files hold the graph from before: register before they are read, too.
    """

    def register(function):
        _C._engine_register_converter(backend, schema, lambda handle, node, *values: function(ConversionContext(handle), node, *values), supports)
        return function

    return register


def evaluator(schema: str):
    """Decorator: calls of an operator whose arguments are all known become what the function gives for them, when engines are built.

    function: (values of the arguments, in the schema's order) -> the result, a tuple for several. ValueError where the operator has an evaluator.
    """

    def register(function):
        _C._engine_register_evaluator(schema, function)
        return function

    return register
