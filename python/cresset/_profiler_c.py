"""What PyTorch's extension module has of the profiler: settings, fast ranges, the tree of a profile's events, and texts of addresses."""

import enum
import os

from . import _C
from .autograd import _profiler_state as _state

__all__ = [
    "ActiveProfilerType", "RecordScope", "_EventType", "_ExperimentalConfig", "_ExtraFields_Allocation", "_ExtraFields_Backend", "_ExtraFields_PyCCall",
    "_ExtraFields_PyCall", "_ExtraFields_TorchOp", "_NNModuleInfo", "_OptimizerInfo", "_ProfilerEvent", "_PyFrameState", "_RecordFunctionFast", "_TensorMetadata",
    "_profiler_type", "_set_fwd_bwd_enabled_val", "_set_record_concrete_inputs_enabled_val", "symbolize_addresses", "symbolize_tracebacks",
]  # fmt: skip


class ActiveProfilerType(enum.Enum):
    """Which profiler runs."""

    NONE = 0
    LEGACY = 1
    KINETO = 2
    NVTX = 3
    ITT = 4
    PRIVATEUSE1 = 5


def _profiler_type():
    """Which profiler runs now."""
    return ActiveProfilerType[_state.active_kind]


class RecordScope(enum.Enum):
    """What kind of work an event stands for."""

    FUNCTION = 0
    BACKWARD_FUNCTION = 1
    TORCHSCRIPT_FUNCTION = 2
    KERNEL_FUNCTION_DTYPE = 3
    CUSTOM_CLASS = 4
    BUILD_FEATURE = 5
    LITE_INTERPRETER = 6
    USER_SCOPE = 7
    STATIC_RUNTIME_OP = 8
    STATIC_RUNTIME_MODEL = 9


class _EventType(enum.Enum):
    TorchOp = 0
    Backend = 1
    Vulkan = 2
    Allocation = 3
    PyCall = 5
    PyCCall = 6
    Kineto = 7


class _ExperimentalConfig:
    """Settings of a profile that are not settled. `verbose` says whether traces have call stacks (they have), `adjust_profiler_step` makes steps
    begin and end with the Python functions around their ends; the others are of devices that Cresset does not have, or are so anyway."""

    def __init__(
        self, profiler_metrics=(), profiler_measure_per_kernel=False, verbose=False, performance_events=(), enable_cuda_sync_events=False,
        adjust_profiler_step=False, disable_external_correlation=False, profile_all_threads=False, capture_overload_names=False,
        record_python_gc_info=False, expose_kineto_event_metadata=False, custom_profiler_config="", adjust_timestamps=False, trace_only=False,
    ):  # fmt: skip
        self.profiler_metrics, self.performance_events = list(profiler_metrics), list(performance_events)
        self.profiler_measure_per_kernel, self.verbose = bool(profiler_measure_per_kernel), bool(verbose)
        self.enable_cuda_sync_events, self.adjust_profiler_step = bool(enable_cuda_sync_events), bool(adjust_profiler_step)
        self.disable_external_correlation, self.profile_all_threads = bool(disable_external_correlation), bool(profile_all_threads)
        self.capture_overload_names, self.record_python_gc_info = bool(capture_overload_names), bool(record_python_gc_info)
        self.expose_kineto_event_metadata, self.custom_profiler_config = bool(expose_kineto_event_metadata), str(custom_profiler_config)
        self.adjust_timestamps, self.trace_only = bool(adjust_timestamps), bool(trace_only)


class _RecordFunctionFast:
    """A range that may be entered again and again, as a context: a function of a name, with inputs (any values) and keyword values."""

    def __init__(self, name, input_values=None, keyword_values=None):
        if not isinstance(name, str):
            raise TypeError(f"_RecordFunctionFast: name must be a str, not {type(name).__name__}.")
        for what, value, kinds in (("input_values", input_values, (list, tuple)), ("keyword_values", keyword_values, dict)):
            if value is not None and not isinstance(value, kinds):
                raise TypeError(f"_RecordFunctionFast: {what} has another type: {type(value).__name__}.")
        self._name, self._inputs, self._keywords = name, input_values or (), keyword_values or {}
        self._open = []

    def __enter__(self):
        token = _C._profiler_begin_function(self._name, self._inputs, None)
        if token and self._keywords:
            _state.keyword_values[token] = self._keywords
        self._open.append(token)

    def __exit__(self, *exc_info):
        _C._profiler_end(self._open.pop())


def _set_record_concrete_inputs_enabled_val(on):
    """Whether profiles with shapes keep the values of inputs that are no tensors (they do)."""
    _state.keep_values = bool(on)


def _set_fwd_bwd_enabled_val(on):
    """Whether traces have arrows from forward operators to backward steps (they have)."""
    _state.draw_arrows = bool(on)


# --- the tree of events


class _Fields:
    __slots__ = ()

    def __init__(self, *values):
        for name, value in zip(self.__slots__, values, strict=True):
            setattr(self, name, value)

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__ if hasattr(self, name))})"


class _PyFrameState(_Fields):
    __slots__ = ("file_name", "function_name", "line_number")


class _NNModuleInfo(_Fields):
    """A module that was called: (name, parameter, its gradient or None) for each parameter of its own, the tensors as _TensorMetadata."""

    __slots__ = ("cls_name", "cls_ptr", "parameters", "self_ptr")

    @classmethod
    def _of(cls, module):
        """What a module holds now, without parameters that wait for a shape."""
        from .nn.parameter import is_lazy

        about = _TensorMetadata._of
        held = [(name, p) for name, p in module._parameters.items() if p is not None and not is_lazy(p)]
        parameters = [(name, about(p), None if p.grad is None else about(p.grad)) for name, p in held]
        return cls(type(module).__name__, id(type(module)), parameters, id(module))


class _OptimizerInfo(_Fields):
    """An optimizer after a step: (parameter, its gradient or None, [(name, tensor)] of its state) for each parameter, all as _TensorMetadata."""

    __slots__ = ("parameters", "self_ptr")

    @classmethod
    def _of(cls, optimizer):
        """What an optimizer holds now."""
        about = _TensorMetadata._of
        found = []
        for p in (p for group in optimizer.param_groups for p in group["params"]):
            state = [(name, about(value)) for name, value in optimizer.state.get(p, {}).items() if isinstance(value, _C.Tensor)]
            found.append((about(p), None if p.grad is None else about(p.grad), state))
        return cls(found, id(optimizer))


class _TensorMetadata(_Fields):
    """A tensor, at a time: `impl_ptr` is its address, `storage_data_ptr` where its storage begins (None: it has none). `allocation_id` numbers the
    memory; tensors of one `id` share memory, or were each other's before a change of storage (both None for a tensor without a storage)."""

    __slots__ = ("allocation_id", "device", "dtype", "id", "impl_ptr", "layout", "sizes", "storage_data_ptr", "strides")

    def __init__(self, sizes, strides, dtype, layout, device, impl_ptr, storage_data_ptr):
        self.sizes, self.strides, self.dtype, self.layout, self.device = sizes, strides, dtype, layout, device
        self.impl_ptr, self.storage_data_ptr = impl_ptr, storage_data_ptr
        self.id = self.allocation_id = None

    @classmethod
    def _of(cls, tensor):
        """What is known of a tensor at hand."""
        strided = tensor.layout is _C.strided
        data = tensor.untyped_storage().data_ptr() if strided else None
        return cls(list(tensor.shape), list(tensor.stride()) if strided else [], tensor.dtype, tensor.layout, tensor.device, tensor._cdata, data)

    @property
    def dim(self):
        """The number of dimensions."""
        return len(self.sizes)


class _ExtraFields_TorchOp(_Fields):
    __slots__ = ("allow_tf32_cublas", "inputs", "name", "scope", "sequence_number", "overload_name")


class _ExtraFields_Backend(_Fields):
    __slots__ = ()


class _ExtraFields_Allocation(_Fields):
    __slots__ = ("alloc_size", "device", "ptr", "total_allocated", "total_reserved", "id", "allocation_id")


class _ExtraFields_PyCall(_Fields):
    __slots__ = ("caller", "callsite", "module", "optimizer")


class _ExtraFields_PyCCall(_Fields):
    __slots__ = ("caller",)


class _ProfilerEvent:
    """A node of the tree: an operator, a change of memory, or a call of a Python function."""

    def __init__(self, name, tag, id, start_ns, duration_ns, tid, extra_fields, correlation_id=0, overload_name=""):
        self.name, self.tag, self.id, self.start_tid = name, tag, id, tid
        self.start_time_ns, self.duration_time_ns = start_ns, duration_ns
        self.extra_fields, self.correlation_id, self.overload_name = extra_fields, correlation_id, overload_name
        self.children, self.parent = [], None

    end_time_ns = property(lambda self: self.start_time_ns + self.duration_time_ns)
    typed = property(lambda self: (self.tag, self.extra_fields))

    def __repr__(self):
        return f"<{type(self).__name__} {self.name}>"


# --- addresses


def _dladdr(address):
    """(file, its base, function) of an address of this process; file "??" where there is none."""
    import ctypes

    class Info(ctypes.Structure):
        _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("symbol", ctypes.c_char_p), ("at", ctypes.c_void_p)]

    info, find = Info(), ctypes.CDLL(None).dladdr
    find.argtypes = (ctypes.c_void_p, ctypes.POINTER(Info))
    if not find(address, ctypes.byref(info)) or not info.file:
        return "??", 0, "??"
    return os.fsdecode(info.file), info.base or 0, info.symbol.decode(errors="replace") if info.symbol else "??"


def _addr2line(file, offsets):
    """(function, line, source) for each offset in a file, by the program addr2line; None when there is no such program."""
    import shutil
    import subprocess

    if shutil.which("addr2line") is None or not os.path.exists(file):
        return None
    command = ["addr2line", "-C", "-f", "-e", file]
    said = subprocess.run(command, input="\n".join(map(hex, offsets)), capture_output=True, text=True, check=False).stdout.split("\n")
    found = []
    for function, place in zip(said[::2], said[1::2]):
        source, _, line = place.split(" ")[0].rpartition(":")
        found.append((function, int(line) if line.isdigit() else 0, source))
    return found if len(found) == len(offsets) else None


def symbolize_addresses(addresses, mode):
    """[(file, line, function)] of addresses of code: "dladdr" and "fast" know the library and the exported function, "addr2line" asks that
    program for lines of the source too. What nobody knows is "??". ValueError for other modes."""
    if mode not in ("fast", "dladdr", "addr2line"):
        raise ValueError(f"symbolize_addresses: mode must be 'fast', 'dladdr' or 'addr2line'; given: {mode!r}.")
    places = [_dladdr(address) for address in addresses]
    found = [(file, 0, function) for file, _, function in places]
    if mode != "addr2line":
        return found
    by_file = {}
    for i, (file, base, _) in enumerate(places):
        if file != "??":
            by_file.setdefault(file, []).append((i, addresses[i] - base))
    for file, wanted in by_file.items():
        for (i, _), (function, line, source) in zip(wanted, _addr2line(file, [offset for _, offset in wanted]) or ()):
            if function != "??":
                found[i] = (source if source != "??" else file, line, function)
    return found


def symbolize_tracebacks(tracebacks):
    """For each captured traceback its frames, dictionaries with `filename`, `name` and `line`, the innermost first."""
    out = []
    for traceback in tracebacks:
        summary = traceback.summary() if callable(getattr(traceback, "summary", None)) else traceback
        out.append([{"filename": frame.filename, "name": frame.name, "line": frame.lineno} for frame in reversed(list(summary))])
    return out
