"""What stands between PyTorch's test files and Cresset, all of it, with reasons. Nothing else is changed for a test.

1. HELPERS: modules that are the judge, not the judged. They are loaded at run time from the tests' own source tree, or from an
   installed PyTorch, under the name that the tests import; `torch` inside of them is Cresset.
2. STAND_INS: modules that the helpers need for every test, and packages beside `torch`.
3. Names that Cresset lacks and that a file imports, or looks up, while it loads: placeholders (absent.py). A file of 800 tests is then
   judged by its tests: those that use the name fail as `absent` or `private`.
4. libraries.py: compiled parts of tests.
5. RANKS: tests of several processes, on both sides.
6. PLACED: constants of features that Cresset does not have, which the comparison of tensors reads each time; SWITCHES.
7. TEST_OPERATORS: operators of PyTorch's own C++ tests, which its Python tests call.
"""

import contextlib
import importlib
import importlib.util
import logging
import os
import sys
import types

import absent
import libraries

# The comparison behind TestCase.assertEqual and the drivers of device-generic tests. `torch.testing.assert_close` itself stays Cresset's.
HELPERS = ("torch.testing._internal", "torch.testing._comparison", "torch.testing._utils")

# Layouts that assertEqual compares with those of every pair of tensors.
PLACED = ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged")

# Quantised dtypes, which the comparison of two storages asks about.
PLACED += ("quint8", "quint4x2", "quint2x4", "qint32", "qint8")

# Dtypes that the comparison of two tensors of different dtypes asks about; only its own module sees them.
COMPARED = ("uint16", "uint32", "uint64")


def fork_ranks(module):
    """RANKS. The helper for tests of several processes starts fresh interpreters, which load the file again: seconds for each rank of each test.
    A rank is a fork of the test's own process here, which has loaded it."""

    def fork(self):
        self._start_processes(sys.modules["torch"].multiprocessing.get_context("fork").Process)

    module.MultiProcessTestCase._spawn_processes = fork


def without_deadline():
    """The helper takes the deadline out of Hypothesis's settings where releases until 6.100 kept it, and files that use it refuse to load with one."""
    from hypothesis import settings

    settings.register_profile("without_deadline", parent=settings(), deadline=None)
    settings.load_profile("without_deadline")


def complete_both(module):
    """What a helper that has been loaded needs besides, on both sides."""
    if module.__name__ == "torch.testing._internal.common_distributed":
        fork_ranks(module)
    if module.__name__ == "torch.testing._internal.hypothesis_utils":
        without_deadline()


def complete(module):
    """What a helper that has been loaded needs besides, on the side of Cresset."""
    complete_both(module)
    if module.__name__ == "torch.testing._comparison":
        view = types.ModuleType("torch")
        view.__getattr__ = lambda name, torch=sys.modules["torch"]: getattr(torch, name)
        for name in COMPARED:
            if not hasattr(sys.modules["torch"], name):
                setattr(view, name, absent.placeholder(f"torch.{name}"))
        module.torch = view
    if module.__name__ == "torch.testing._internal.common_utils":
        module.find_library_location = lambda name: libraries.FOLDER / name
    if module.__name__ == "torch.testing._internal.inductor_utils":
        module.GPU_TYPE = "cuda"  # what it is where there is no GPU; PyTorch's compiler is asked for it


# Switches of PyTorch's graph executors and fusers: they choose how a graph runs, not what it computes, and JitTestCase turns them around
# every test. setter -> (what it reads at first, the getter). A setter answers what it was before.
SWITCHES = {
    "_jit_set_profiling_executor": (True, None), "_get_graph_executor_optimize": (True, None), "_jit_set_num_profiled_runs": (1, None),
    "_set_graph_executor_optimize": (True, None), "_jit_override_can_fuse_on_cpu": (False, "_jit_can_fuse_on_cpu"),
    "_jit_override_can_fuse_on_cpu_legacy": (False, None), "_jit_override_can_fuse_on_gpu": (False, "_jit_can_fuse_on_gpu"),
    "_jit_set_te_must_use_llvm_cpu": (True, "_jit_get_te_must_use_llvm_cpu"), "_jit_set_texpr_fuser_enabled": (False, "_jit_texpr_fuser_enabled"),
    "_jit_set_texpr_reductions_enabled": (False, "_jit_texpr_reductions_enabled"),
    "_jit_set_symbolic_shapes_test_mode": (False, "_jit_symbolic_shapes_test_mode_enabled"),
    "_debug_set_fusion_group_inlining": (True, "_debug_get_fusion_group_inlining"), "_debug_set_autodiff_subgraph_inlining": (True, None),
    "_jit_set_emit_hooks": (None, None), "_jit_clear_class_registry": (None, None), "_set_print_stack_traces_on_fatal_signal": (False, None),
}  # fmt: skip


def switch(owner, setter, value, getter):
    state = [value]

    def exchange(*new):
        old, state[0] = state[0], new[0] if new else None
        return old

    if not hasattr(owner, setter):
        setattr(owner, setter, exchange)
        if getter:
            setattr(owner, getter, lambda: state[0])


def signpost():
    """Where PyTorch's own build farm counts tests."""
    module = types.ModuleType("torch._logging.scribe")
    module.open_source_signpost = lambda **facts: None
    return module


def trace_log():
    """Where PyTorch's compiler writes what it does: the helper for tests of several processes turns it off."""
    module = types.ModuleType("torch._logging._internal")
    module.trace_log = logging.getLogger("torch.__trace")
    return module


def utils_internal():
    """Where PyTorch's source tree is laid out in another way: paths of tests' files."""
    module = types.ModuleType("torch._utils_internal")
    module.get_file_path_2, module.get_writable_path = os.path.join, lambda path: path
    return module


def lazy_backend():
    """A backend that the set-up of every class of device-generic tests starts when one of them is for the device `lazy`."""
    module = types.ModuleType("torch._lazy.ts_backend")
    module.init = lambda: None
    return module


def compiler_test_case():
    """The base class of tests of the compiler and of export: that of all tests, with nothing compiled before and after."""
    module = types.ModuleType("torch._dynamo.test_case")

    def find(name):
        common = importlib.import_module("torch.testing._internal.common_utils")
        if name != "TestCase":
            return getattr(common, name)

        class TestCase(common.TestCase):
            @classmethod
            def setUpClass(cls):
                super().setUpClass()
                cls._exit_stack = contextlib.ExitStack()

            @classmethod
            def tearDownClass(cls):
                cls._exit_stack.close()
                super().tearDownClass()

            def setUp(self):
                super().setUp()
                self.addCleanup(sys.modules["torch"]._dynamo.reset)
                sys.modules["torch"]._dynamo.reset()

        module.TestCase = TestCase
        return TestCase

    module.__getattr__ = find
    return module


# schema -> what it computes.
TEST_OPERATORS = {
    "leaky_relu(Tensor self, float v=0.01) -> Tensor": lambda self, v=0.01: self.clamp(min=0) + self.clamp(max=0) * v,
    "cat(Tensor[] inputs) -> Tensor": lambda inputs: sys.modules["torch"].cat(list(inputs)),
    "get_first(str[][] x) -> str": lambda x: x[0][0],
}


def define_test_operators(torch):
    library = torch.library.Library("_test", "DEF")
    for schema, function in TEST_OPERATORS.items():
        library.impl(library.define(schema), function, "CompositeExplicitAutograd")
    return library  # what it defines goes with it


STAND_INS = {
    "torch._dynamo.test_case": compiler_test_case,
    "torch._lazy.ts_backend": lazy_backend,
    "torch._utils_internal": utils_internal, "torch._logging.scribe": signpost, "torch._logging._internal": trace_log,
}  # fmt: skip


def _package(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        package = sys.modules[name] = types.ModuleType(name)
        package.__path__ = []
        parent, _, last = name.rpartition(".")
        setattr(_package(parent), last, package)
        return package


kept = []


def install():
    """On the side of Cresset, behind as_torch.install()."""
    for name, make in STAND_INS.items():
        module = sys.modules[name] = make()
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(_package(parent), last, module)
    import torch

    if not hasattr(torch._C, "_DisableFuncTorch"):  # freeze_rng_state reads the generator outside of transforms; no test is inside of one then
        torch._C._DisableFuncTorch = contextlib.nullcontext
    kept.append(define_test_operators(torch))
    for setter, (value, getter) in SWITCHES.items():
        switch(torch._C, setter, value, getter)
    import torch._jit_internal

    if not hasattr(torch._jit_internal, "_disable_emit_hooks"):  # of _jit_set_emit_hooks above: hooks of the test suite itself, which are not set here
        torch._jit_internal._disable_emit_hooks = contextlib.nullcontext
    for name in PLACED:
        if not hasattr(torch, name):
            setattr(torch, name, absent.placeholder(f"torch.{name}"))
