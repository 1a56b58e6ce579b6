"""Functions that are written in Python ask their arguments as operators do."""

import ast
import importlib
import types
from pathlib import Path

import pytest

import cresset as torch
from cresset import overrides
from cresset._overridable import overridable


class Duck:
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return function


ARGUMENTS = {"tensordot": (Duck(), Duck()), "cdist": (Duck(), Duck()), "unravel_index": (Duck(), (2, 2)), "stft": (Duck(), 4),
             "einsum": ("i->", Duck())}  # fmt: skip
NAMES = (
    "tensordot", "svd_lowrank", "pca_lowrank", "lu", "unravel_index", "einsum", "cdist", "stft", "norm", "chain_matmul", "is_conj", "is_distributed",
    "get_device", "dequantize", "numel", "meshgrid", "block_diag", "unique",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_duck_type_is_asked_by(name):
    function = getattr(torch, name)
    assert function(*ARGUMENTS.get(name, (Duck(),))) is function


# Functions that take no tensor, or hand every tensor to a function that asks.
DO_NOT_ASK = {
    "cresset": {
        "are_deterministic_algorithms_enabled", "broadcast_shapes", "compile", "compile_report", "compiled_with_cxx11_abi", "cond", "while_loop", "fork", "fork_rng", "init_num_threads", "from_file", "parse_schema", "sym_constrain_range", "sym_constrain_range_for_size", "wait", "get_autocast_cpu_dtype", "get_autocast_gpu_dtype", "get_autocast_ipu_dtype", "get_autocast_xla_dtype", "is_autocast_ipu_enabled",
        "is_autocast_xla_enabled", "set_autocast_ipu_dtype", "set_autocast_ipu_enabled", "set_autocast_xla_dtype", "set_autocast_xla_enabled",
        "get_default_device", "get_deterministic_debug_mode", "get_device_module", "get_float32_matmul_precision", "get_num_interop_threads", "get_printoptions",
        "get_rng_state", "initial_seed", "set_vital", "is_autocast_cpu_enabled", "is_autocast_enabled", "is_deterministic_algorithms_warn_only_enabled", "is_storage", "is_tensor",
        "is_vulkan_available", "is_warn_always_enabled", "manual_seed", "printoptions", "range", "register_privateuse1_backend", "seed", "set_autocast_cpu_dtype", "set_autocast_cpu_enabled",
        "set_autocast_gpu_dtype", "get_autocast_ipu_dtype", "get_autocast_xla_dtype", "is_autocast_ipu_enabled", "is_autocast_xla_enabled",
        "set_autocast_ipu_dtype", "set_autocast_ipu_enabled", "set_autocast_xla_dtype", "set_autocast_xla_enabled", "init_num_threads", "get_autocast_dtype", "set_autocast_dtype", "set_autocast_enabled", "set_default_device", "set_default_tensor_type", "set_deterministic_debug_mode", "set_float32_matmul_precision",
        "set_flush_denormal", "set_num_interop_threads", "set_printoptions", "set_rng_state", "set_warn_always", "sym_float", "sym_int", "sym_ite", "sym_max",
        "sym_min", "sym_not", "sym_sqrt", "sym_sum", "thread_safe_generator", "typename", "use_deterministic_algorithms", "load", "save", "vmap",
        "sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csc_tensor", "sparse_csr_tensor", "from_dlpack",
        "eig", "lstsq", "matrix_rank", "solve", "symeig",
    },
    "cresset.nn.functional": {
        "assert_int_or_pair", "boolean_dispatch", "handle_torch_function", "scaled_grouped_mm", "scaled_mm", "upsample", "upsample_bilinear", "upsample_nearest",
    },
    "cresset.nn.init": {
        "calculate_gain", "dirac_", "eye_", "kaiming_normal_", "ones_", "orthogonal_", "sparse_", "trunc_normal_", "xavier_normal_", "xavier_uniform_", "zeros_",
    },
}  # fmt: skip


@pytest.mark.parametrize("path", [*overrides._NAMESPACES, "cresset.nn.init"])
def test_no_function_is_forgotten(path):
    """Whoever adds a function decorates it with @overridable, or says here that it takes no tensor."""
    module = importlib.import_module(path)
    silent = set()
    for name in dir(module):  # with the names that are loaded when they are asked for
        value = getattr(module, name)
        refused = getattr(value, "_is_absent", False)
        old_name = path == "cresset.nn.init" and hasattr(module, name + "_")
        if isinstance(value, types.FunctionType) and not name.startswith("_") and not refused and not old_name and not overrides._takes_part(value):
            silent.add(name)
    assert silent - DO_NOT_ASK.get(path, set()) == set()


def test_the_decorator():
    calls = []

    @overridable
    def f(x, ys=(), *, n=1):
        """Text."""
        calls.append(n)
        return n

    assert f(1, n=2) == 2 and calls == [2] and f.__name__ == "f" and f.__doc__ == "Text."
    duck = Duck()
    assert f(duck) is f and f(1, [torch.ones(1), duck]) is f and f(x=duck) is f and calls == [2]

    class Mode(overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            return "mode" if function is f else function(*args, **(kwargs or {}))

    with Mode():
        assert f(1) == "mode"
        with torch._C.DisableTorchFunction():
            assert f(1) == 1


ASKED = [line.split(" | ") for line in (Path(__file__).parent / "asked_arguments.txt").read_text().splitlines()]


@pytest.mark.parametrize(("call", "expected"), ASKED, ids=[call for call, _ in ASKED])
def test_arguments_with_defaults_come_by_keyword(call, expected):
    """The positional and keyword arguments that PyTorch 2.13 gives to __torch_function__."""
    seen = []

    class Asked:
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            text = {id(value): "a" for value in (a,)}
            seen.append(tuple((k, text.get(id(v), repr(v))) for k, v in [*enumerate(args), *(kwargs or {}).items()]))

    a = Asked()
    eval(call, {"torch": torch, "F": torch.nn.functional, "a": a})
    positional, keywords = ast.literal_eval(expected)
    assert sorted(seen[0], key=str) == sorted([*enumerate(positional), *keywords.items()], key=str)


def test_a_wrong_call_is_given_as_it_is():
    assert overridable(lambda x, y=1: None)(Duck(), y=2, z=3) is not None
