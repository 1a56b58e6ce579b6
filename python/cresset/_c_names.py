"""Names of PyTorch's extension module that libraries use and that are Python here: importing this puts them into `_C`."""

import importlib

from . import _C
from ._settings import has_lapack, has_spectral

# Switches of PyTorch's graph executors, which choose how a graph runs and not what it computes. Graphs run one way here: a switch keeps what it
# was given, and answers it. {setter: (its getter or None, at first, does the setter answer the old value)}
_SWITCHES = {
    "_jit_set_profiling_executor": (None, True, True), "_jit_set_profiling_mode": (None, True, True),
    "_jit_override_can_fuse_on_cpu": ("_jit_can_fuse_on_cpu", True, False), "_jit_override_can_fuse_on_gpu": ("_jit_can_fuse_on_gpu", False, False),
    "_jit_set_texpr_fuser_enabled": ("_jit_texpr_fuser_enabled", True, False), "_jit_set_nvfuser_enabled": ("_jit_nvfuser_enabled", False, False),
    "_jit_set_nvfuser_guard_mode": (None, False, False), "_jit_set_autocast_mode": (None, True, True),
    "_set_graph_executor_optimize": ("_get_graph_executor_optimize", True, False),
}  # fmt: skip


def _in_c(function):
    """Decorator: a function of `_C`."""
    setattr(_C, function.__name__, function)
    return function


def _switch(setter, getter, value, answers):
    state = [value]

    def put(new):
        old, state[0] = state[0], bool(new)
        return old if answers else None

    put.__name__ = setter
    setattr(_C, setter, put)

    def get(new_settings=None):
        """The value; one that is given is put in its place afterwards."""
        old = state[0]
        if new_settings is not None:
            put(new_settings)
        return old

    if getter:
        get.__name__ = getter
        setattr(_C, getter, get)


def _parse_to(*args, **kwargs):
    """The arguments of `Module.to` as (device, dtype, non_blocking, memory_format). TypeError for others."""
    from .nn.modules.module import _parse_to as parse

    return parse(args, kwargs)


@_in_c
def _are_functorch_transforms_active():
    """Is a transform of `func` running?"""
    return _C._functorch.maybe_current_level() is not None


@_in_c
def _is_torch_function_mode_enabled():
    """Is a mode of the torch-function protocol on, and not switched off with all of it?"""
    return bool(_C._len_torch_function_stack()) and not _C._is_torch_function_all_disabled()


@_in_c
def _is_alias_of(a, b):
    """Do two tensors lie in one storage?"""
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


@_in_c
def _enable_mobile_interface_call_export():
    """Files for phones may have calls of interfaces: they may anyway."""


_padded = [False]


@_in_c
def _set_default_mobile_cpu_allocator():
    """PyTorch's allocator for phones pads memory, since kernels read past its ends there. None does here, so that the choice is only kept; RuntimeError
    where it was made before."""
    if _padded[0]:
        raise RuntimeError("Already within the scope of another non-default cpu allocator. Cannot set another allocator.")
    _padded[0] = True


@_in_c
def _unset_default_mobile_cpu_allocator():
    """The end of `_set_default_mobile_cpu_allocator`; RuntimeError without it."""
    if not _padded[0]:
        raise RuntimeError("setDefaultMobileCPUAllocator must have been called before unsetDefaultMobileCPUAllocator.")
    _padded[0] = False


@_in_c
def _llvm_enabled():
    """False: LLVM is not part of the build."""
    return False


@_in_c
def _storage_id(tensor):
    """A number that tensors of one storage have in common, and no other storage has while that one lives."""
    return tensor.untyped_storage()._cdata


_C._storage_address = _storage_id


@_in_c
def _get_accelerator(check=None):
    """The device of the accelerator; without one that of the CPU, and RuntimeError when `check` is true."""
    kind = _C._accelerator_type()
    if kind is None and check:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return _C.device(kind or "cpu")


@_in_c
def _infer_size(a, b):
    """The size to which tensors of two sizes broadcast. RuntimeError when there is none, and for what is no Size."""
    for place, size in enumerate((a, b), 1):
        if not isinstance(size, _C.Size):
            raise RuntimeError(f"expected a torch.Size as argument {place}")
    rank = max(len(a), len(b))
    found = []
    for i, (m, n) in enumerate(zip((1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b), strict=True)):
        if m != n and m != 1 and n != 1:
            raise RuntimeError(f"The size of tensor a ({m}) must match the size of tensor b ({n}) at non-singleton dimension {i}")
        found.append(n if m == 1 else m)
    return _C.Size(found)


@_in_c
def _has_storage(tensor):
    """Does a tensor lie in memory of its own? Opaque and sparse ones, and ones that wrap others, do not."""
    try:
        tensor.untyped_storage()
    except (RuntimeError, NotImplementedError):
        return False
    return True


@_in_c
def _jit_try_infer_type(value):
    """The type that the tracer gives a value, as an object with success(), type() and reason()."""
    from .jit._infer_type import try_infer_type

    return try_infer_type(value)


@_in_c
def _jit_resolve_packet(name, *args, **kwargs):
    """The name of the overload that a call of an operator ("aten::sum") runs. RuntimeError when none takes the arguments."""
    from ._ops import OpOverloadPacket

    return OpOverloadPacket(*name.split("::"))._matching(*args, **kwargs)


@_in_c
def _jit_check_alias_annotation(graph, args, name):
    """Runs a graph on copies of `args`. RuntimeError when an operator of it, the one of this name or another, writes to an argument or gives back
    its memory and its schema does not say so."""
    import copy

    from ._subclasses.schema_check_mode import SchemaCheckMode

    copies = [copy.deepcopy(a.detach() if isinstance(a, _C.Tensor) else a) for a in args]
    with SchemaCheckMode():
        _C._create_function_from_graph("checked", graph)(*copies)


@_in_c
class _EnablePythonDispatcher:
    """Kernels that `py_impl` keeps answer as long as the object lives."""

    def __init__(self):
        from ._dispatch.python import enable_python_dispatcher

        self._mode = enable_python_dispatcher()
        self._mode.__enter__()

    def __del__(self):
        above = []
        while _C._len_torch_dispatch_stack() and (mode := _C._pop_torch_dispatch_stack()) is not self._mode:
            above.append(mode)
        for mode in reversed(above):
            _C._push_on_torch_dispatch_stack(mode)


def _bit_setter(word):
    def set_bit(tensor, on):
        if on:
            raise NotImplementedError(f"_set_{word}: no tensor has a bit to be read {'conjugated' if word == 'conj' else 'negated'}: conj() and neg() compute.")

    set_bit.__name__ = set_bit.__qualname__ = f"_set_{word}"
    set_bit.__doc__ = f"Whether a tensor is_{word}(): none is, so that False is what it has. NotImplementedError for True."
    return set_bit


# What a build can have beside the CPU and this one has not.
_ABSENT = ("cuda", "cudnn", "cusparselt", "eigen_sparse", "kleidiai", "magma", "mkldnn_acl", "mps", "xpu")

# Name in _C -> where it is, for what is not loaded before somebody asks.
_ELSEWHERE = {
    "_ConvBackend": "_conv_backends.ConvBackend", "_select_conv_backend": "_conv_backends.select",
    "_OutOfMemoryError": "OutOfMemoryError", "_jit_to_static_module": "jit._static_module.to_static_module",
    "FunctionSchema": "FunctionSchema", "Argument": "Argument",
    "Tag": "Tag", "_GLIBCXX_USE_CXX11_ABI": "compiled_with_cxx11_abi()", "_show_config": "__config__.show",
    "_parallel_info": "__config__.parallel_info",
    **{name: f"overrides.{name}" for name in ("_TorchFunctionState", "_get_torch_function_state", "_set_torch_function_state")},
    "_get_flash_sdp_enabled": "backends.cuda.flash_sdp_enabled", "_get_math_sdp_enabled": "backends.cuda.math_sdp_enabled",
    "_get_cudnn_enabled": "backends.cudnn.enabled", "has_mkl": "backends.mkl.is_available()", "has_openmp": "backends.openmp.is_available()",
    "_has_mkldnn": "backends.mkldnn.is_available()", "_has_distributed": "distributed.is_available", "_get_mem_efficient_sdp_enabled":
    "backends.cuda.mem_efficient_sdp_enabled", "_set_sdp_use_flash": "backends.cuda.enable_flash_sdp",
    "PyTorchFileReader": "serialization._zip.PyTorchFileReader", "_set_math_sdp_allow_fp16_bf16_reduction": "backends.cuda.allow_fp16_bf16_reduction_math_sdp",
    "_set_sdp_use_math": "backends.cuda.enable_math_sdp", "_set_sdp_use_mem_efficient": "backends.cuda.enable_mem_efficient_sdp",
}  # fmt: skip


def _ask_elsewhere(others):
    """A __getattr__ of _C that knows the names above; the rest is for `others`."""

    def missing(name):
        path = _ELSEWHERE.get(name)
        if path is None:
            return others(name)
        import cresset

        value = cresset
        if path.startswith("_"):  # of a module that nothing else loads
            importlib.import_module("." + path.partition(".")[0], __package__)
        for part in path.removesuffix("()").split("."):
            value = getattr(value, part)
        value = value() if path.endswith("()") else value
        setattr(_C, name, value)
        return value

    return missing


# Functions of _VariableFunctions that are no operators.
_FUNCTIONS = frozenset(
    """as_tensor asarray dsmm frombuffer from_file from_numpy get_device hsmm is_complex is_conj is_distributed is_floating_point is_inference is_neg is_same_size is_signed
    numel promote_types range saddmm smm sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor spmm sspaddmm tensor
    """.split()
)


def _function_elsewhere(name):
    """A function of PyTorch's _VariableFunctions that is Python here, where it is an operator too, or among those above."""
    import cresset

    if name.startswith("__") or not (name in _FUNCTIONS or hasattr(cresset.ops.aten, name)):
        raise AttributeError(f"module 'cresset._C._VariableFunctions' has no attribute {name!r}")
    return getattr(cresset, name) if hasattr(cresset, name) else getattr(cresset.ops.aten, name)


def _special_elsewhere(name):
    """Aliases of operators with other names ("special_expit" of sigmoid) stand among the functions."""
    if not name.startswith("special_") or name not in vars(_C._VariableFunctions):
        raise AttributeError(f"module 'cresset._C._special' has no attribute {name!r}")
    return vars(_C._VariableFunctions)[name]


def _depthwise(name):
    """Convolutions of each channel, which torch._C._nn names too, are operators alone."""
    if name not in ("_conv_depthwise2d", "conv_depthwise3d"):
        raise AttributeError(f"module 'cresset._C._nn' has no attribute {name!r}")
    import cresset

    return getattr(cresset.ops.aten, name)


for _setter, (_getter, _value, _answers) in _SWITCHES.items():
    if _setter not in vars(_C):  # hasattr would load the graph part
        _switch(_setter, _getter, _value, _answers)
for _word in ("conj", "neg"):
    _in_c(_bit_setter(_word))
for _name in _ABSENT:
    setattr(_C, f"_has_{_name}", False)
_C.has_lapack, _C.has_spectral = has_lapack, has_spectral  # where PyTorch's tests ask
_C.__getattr__ = _ask_elsewhere(_C.__getattr__)
_C._nn._parse_to = _parse_to
_C._nn.__getattr__ = _depthwise
_C._TensorMeta = type(_C.Tensor)
_C._VariableFunctions.__getattr__ = _function_elsewhere
_C._special.__getattr__ = _special_elsewhere
_C._VariableFunctionsClass = _C._VariableFunctions  # as pickles of operators name their home
