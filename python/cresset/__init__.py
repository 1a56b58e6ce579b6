"""Cresset: tensors, automatic differentiation and extension by operators, in PyTorch's names."""

import importlib as _importlib
import os as _os
import sys as _sys


def _refuse_foreign_files():
    """Another project of the index is called cresset: installed into one folder with this one, each has replaced files of the other."""
    site = _os.path.dirname(_os.path.dirname(_os.path.abspath(__file__)))
    found = next((name for name in _os.listdir(site) if name.startswith("cresset-") and name.endswith(".dist-info")), None)
    if found:
        raise ImportError(
            f"cresset: {site} holds files of another project with this name ({found.removesuffix('.dist-info')}) among those of cresset-runtime. "
            "Run `pip uninstall cresset cresset-runtime`, then `pip install cresset-runtime`."
        )


_refuse_foreign_files()

from . import _C
from ._build_info import version as _version
from .torch_version import TorchVersion as _TorchVersion

__version__ = _TorchVersion(_version)

# --- types and functions of the extension module ----------------------------------------------------------------------------

from ._C import (  # noqa: F401
    Generator, OutOfMemoryError, Size, Tensor, as_tensor, default_generator, device, dtype, from_dlpack, from_numpy,
    frombuffer, get_default_dtype, get_num_threads, is_grad_enabled, is_inference_mode_enabled, layout, memory_format,
    promote_types, set_default_dtype, set_num_threads, tensor, to_dlpack,
)  # fmt: skip
from ._C import is_anomaly_check_nan_enabled, is_anomaly_enabled, set_anomaly_enabled  # noqa: F401
from ._C import _mkldnn  # noqa: F401  # a layout (_mkldnn_tensor)


def _take_constants():
    kinds = (_C.dtype, _C.layout, _C.memory_format)
    for name, value in vars(_C).items():
        if isinstance(value, kinds) and not name.startswith("_"):
            globals()[name] = value
    globals()["bool"] = getattr(_C, "bool")


_OF_PARTS = ("__", "special_", "linalg_", "fft_")  # functions of the modules with these names, and methods of objects


def _take_operators():
    """Every operator that shows as a function; names with a leading underscore are reachable but not exported."""
    for name, function in vars(_C._VariableFunctions).items():
        if not name.startswith(_OF_PARTS):
            globals().setdefault(name, function)
    # What wraps every function lists them here and takes them from the package.
    _C._VariableFunctions.__dir__ = lambda: sorted(name for name in vars(_C._VariableFunctions) if name == "__name__" or not name.startswith(_OF_PARTS))


_take_constants()
_take_operators()

from . import _functions, _tensor, _tensor_methods  # noqa: E402
from ._functions import *  # noqa: E402,F403
from ._matrix_functions import *  # noqa: E402,F403
from ._reductions import norm, unique, unique_consecutive  # noqa: E402,F401
from ._spectral import stft  # noqa: E402,F401
from ._autocast_state import *  # noqa: E402,F403
from .autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled  # noqa: E402,F401
from ._ops import ops  # noqa: E402
from ._devices import get_device_module, is_device_backend_autoload_enabled as _is_device_backend_autoload_enabled, register_device_module as _register_device_module  # noqa: E402,F401
from ._streams import Event, Stream  # noqa: E402,F401
from .random import fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state  # noqa: E402,F401

from ._settings import *  # noqa: E402,F403
from ._absent import dequantize, refused_functions as _refused_functions  # noqa: E402,F401
from . import _devices, _legacy, _overridable, _rare_methods, _sparse_methods  # noqa: E402

globals().update(_refused_functions(globals().keys()))
globals().update(_legacy.types())
_overridable.install_methods(Tensor)
DispatchKey = _C.DispatchKey

from . import autograd  # noqa: E402



def _place_part(name, source):
    part = type(_sys)(f"{__name__}._C.{name}", f"Names of {source}; loaded on first use.")
    part.__getattr__ = lambda attribute: getattr(_importlib.import_module(f"{__name__}.{source}"), attribute)
    setattr(_C, name, part)
    _sys.modules[part.__name__] = part


_place_part("_functorch", "_functorch_c")
_place_part("_autograd", "_autograd_c")
_place_part("_functions", "_autograd_c")
_place_part("_profiler", "_profiler_c")
_place_part("_acc", "_acc_c")
_place_part("_cpu", "_cpu_c")
_place_part("_distributed_c10d", "_distributed_c")
_place_part("_distributed_rpc", "_distributed_rpc_c")

from . import _c_names  # noqa: E402,F401
from ._homes import settle as _settle  # noqa: E402

torch = _sys.modules[__name__]  # PyTorch's module is an attribute of itself as well, and recorded names begin with it twice

# Loaded on first use: what a program does not mention costs it nothing.
_PARTS = ("storage", "_tensor_str", "_dtype_info", "_classes", "_tags")  # their names belong to the package, also for `import *`
_LAZY = (
    "nn", "optim", "utils", "linalg", "special", "fft", "signal", "functional", "library", "overrides",
    "serialization", "testing", "return_types", "jit", "lowering", "engine", "export", "_overrides", "types",
    "backends", "masked", "accelerator", "cpu", "cuda", "xpu", "mps", "mtia", "version", "func", "amp", "distributed",
    "profiler", "compiler", "_subclasses", "_jit_internal", "_dynamo", "_custom_op", "_custom_ops",
    "_vmap_internals", "_functorch", "functorch", "_refs", "_utils", "_utils_internal", "_weights_only_unpickler",
    "__config__", "__future__", "multiprocessing", "distributions", "fx", "hub", "futures",
    "quasirandom", "ao", "quantization", "monitor", "_inductor", "package", "onnx", "sparse",
    "_dispatch", "_guards", "_prims_common", "nested", "numa", "_vendor", "_logging", "_awaits", "_decomp", "_export", "_higher_order_ops", "_prims",
    *_PARTS,
)  # fmt: skip
_OLD_QUESTIONS = {"has_cuda": "cuda.is_built", "has_cudnn": "cudnn.is_available", "has_mkldnn": "mkldnn.is_available", "has_mps": "mps.is_built"}
_LAZY_NAMES = {
    "save": "serialization", "load": "serialization", "vmap": "_vmap", "autocast": "amp", "GradScaler": "amp", "finfo": "_dtype_info", "iinfo": "_dtype_info",
    "range": "_legacy", "_VF": "_C", "Tag": "_tags", "ScriptObject": "_classes", "classes": "_classes",
    **dict.fromkeys(("get_printoptions", "set_printoptions", "printoptions"), "_tensor_str"),
    "Storage": "storage",
    **dict.fromkeys((
        "is_storage", "StorageBase", "UntypedStorage", "TypedStorage", "DoubleStorage", "FloatStorage", "HalfStorage", "LongStorage", "IntStorage", "ShortStorage",
        "CharStorage", "ByteStorage", "BoolStorage", "BFloat16Storage", "ComplexDoubleStorage", "ComplexFloatStorage", "QUInt8Storage", "QInt8Storage",
        "QInt32Storage", "QUInt4x2Storage", "QUInt2x4Storage",
    ), "storage"),
}  # fmt: skip
_LAZY_NAMES |= {"_amp_foreach_non_finite_check_and_unscale_": "amp._scaling", "_amp_update_scale_": "amp._scaling", "_storage_classes": "storage"}
_LAZY_NAMES["PyTorchFileReader"] = "serialization._zip"
_LAZY_NAMES["register_privateuse1_backend"] = "utils.backend_registration"  # its name before PyTorch 2.0
_LAZY_NAMES |= _sparse_methods.LAZY_NAMES | {
    "_disable_dynamo": "compiler",
    "AcceleratorError": "accelerator", "compile": "compiler", "compile_report": "compiler", "fork": "jit", "wait": "jit", "JITException": "jit", "FunctionSchema": "_ops", "Argument": "_ops",
    "FileCheck": "testing", "ThroughputBenchmark": "utils.throughput_benchmark", "ExcludeDispatchKeyGuard": "_C",
} | dict.fromkeys((
    "from_file", "hash_tensor", "mkldnn_convolution", "mkldnn_max_pool2d", "mkldnn_max_pool3d", "mkldnn_adaptive_avg_pool2d", "_mkldnn_transpose",
    "cond", "while_loop", "_grouped_mm",
    "_rowwise_prune", "_transform_bias_rescale_qkv", "_masked_softmax",
    "sym_constrain_range", "sym_constrain_range_for_size",
    "cudnn_is_acceptable", "lobpcg", "init_num_threads",
    "_assert_scalar", "_assert_tensor_metadata", "_has_compatible_shallow_copy_type", "_efficientzerotensor", "_validate_sparse_bsc_tensor_args", "_validate_sparse_bsr_tensor_args",
    "_validate_sparse_compressed_tensor_args", "_validate_sparse_coo_tensor_args", "_validate_sparse_csc_tensor_args", "_validate_sparse_csr_tensor_args", "_debug_has_internal_overlap",
    "_neg_view", "set_vital",
), "_rare_functions") | dict.fromkeys((
    "_enable_functionalization", "_disable_functionalization", "_to_functional_tensor", "_is_functional_tensor", "_from_functional_tensor", "_freeze_functional_tensor",
    "_sync",
), "_subclasses.functional_tensor") | {"_validate_compressed_sparse_indices": "sparse._validate", "_sparse_broadcast_to": "sparse._sizes"} | dict.fromkeys((
    "fake_quantize_per_channel_affine", "fake_quantize_per_tensor_affine", "fused_moving_avg_obs_fake_quant",
    "_fake_quantize_learnable_per_channel_affine", "_fake_quantize_learnable_per_tensor_affine",
), "_fake_quantize") | dict.fromkeys((
    "AliasDb", "AnyType", "AwaitType", "Block", "BoolType", "ClassType", "CompilationUnit", "ComplexType", "DeviceObjType", "DictType",
    "DisableTorchFunction", "DisableTorchFunctionSubclass", "DispatchKeySet", "EnumType", "FloatType", "Future", "FutureType", "Graph", "IntType",
    "InterfaceType", "ListType", "Node", "NoneType", "NumberType", "OptionalType", "RRefType", "ScriptFunction", "ScriptMethod", "ScriptModule",
    "StreamObjType", "StringType", "SymIntType", "TensorType", "TupleType", "Type", "UnionType", "Value", "parse_ir", "parse_schema",
), "_C") | dict.fromkeys((
    "qint8", "quint8", "qint32", "quint4x2", "quint2x4", "qscheme", "per_tensor_affine", "per_channel_affine", "per_tensor_symmetric",
    "per_channel_symmetric", "per_channel_affine_float_qparams",
    "int1", "int2", "int3", "int4", "int5", "int6", "int7", "uint1", "uint2", "uint3", "uint4", "uint5", "uint6", "uint7", "float4_e2m1fn_x2",
    "bit", "bits1x8", "bits2x4", "bits4x2", "bits8", "bits16",
), "_quantized_types") | dict.fromkeys(("_TorchCompileInductorWrapper", "_TorchCompileWrapper"), "_capture.wrappers") | dict.fromkeys((
    "_choose_qparams_per_tensor", "_saturate_weight_to_fp16",
    "_empty_affine_quantized", "_empty_per_channel_affine_quantized", "_make_per_channel_quantized_tensor", "_make_per_tensor_quantized_tensor",
    "empty_quantized", "int_repr", "quantized_batch_norm", "quantized_max_pool1d", "quantized_max_pool2d", "quantized_max_pool3d",
    "q_per_channel_axis", "q_per_channel_scales", "q_per_channel_zero_points", "q_scale",
    "q_zero_point", "quantize_per_channel", "quantize_per_tensor", "quantize_per_tensor_dynamic",
), "_quantized._functions") | dict.fromkeys(("quantized_gru", "quantized_lstm"), "_quantized._operators.recurrent") | dict.fromkeys((
    "ccol_indices_copy", "col_indices_copy", "crow_indices_copy", "indices_copy", "resize_as_sparse_", "row_indices_copy", "values_copy",
), "sparse._resize") | dict.fromkeys((
    "_nested_from_padded", "_nested_from_padded_and_nested_example", "_nested_tensor_from_mask", "_nested_tensor_from_mask_left_aligned",
    "_nested_tensor_from_tensor_list",
), "nested._internal.padding")  # fmt: skip
# Functions that nothing but the operator's schema describes.
_OF_OPERATORS = frozenset(("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "_copy_from", "_pin_memory", "_sparse_sum", "_unsafe_index", "_unsafe_index_put"))
_OTHER_NAMES = {
    "Storage": "FloatStorage", "register_privateuse1_backend": "rename_privateuse1_backend", "range": "closed_range", "_VF": "_VariableFunctions", "JITException": "Error",
    "ExcludeDispatchKeyGuard": "_ExcludeDispatchKeyGuard", "_disable_dynamo": "disable",
}  # fmt: skip


def __getattr__(name):
    if name in _LAZY:
        try:
            return _importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    elif name in _LAZY_NAMES:
        value = getattr(_importlib.import_module(f"{__name__}.{_LAZY_NAMES[name]}"), _OTHER_NAMES.get(name, name))
        globals()[name] = value
        _settle(globals(), (name,))
        return value
    elif name in _OLD_QUESTIONS:
        _importlib.import_module("warnings").warn(f"'{name}' is deprecated, please use 'torch.backends.{_OLD_QUESTIONS[name]}()'", stacklevel=2)
        module, _, question = _OLD_QUESTIONS[name].partition(".")
        return getattr(getattr(_importlib.import_module(f"{__name__}.backends"), module), question)()
    elif name in _OF_OPERATORS:
        value = globals()[name] = getattr(ops.aten, name)
        return value
    elif name == "__all__":
        return [n for n in (*globals(), *(n for n in _LAZY_NAMES if _LAZY_NAMES[n] in _PARTS)) if not n.startswith("_")]
    elif (module := _devices.module_of(name)) is not None:
        return module
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    import importlib.util

    return sorted({*globals(), *_LAZY_NAMES, *(n for n in _LAZY if importlib.util.find_spec(f"{__name__}.{n}"))})


_settle(globals(), [name for name in globals() if not name.startswith("_")])
