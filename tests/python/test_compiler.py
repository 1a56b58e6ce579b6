"""What programs say to a compiler of Python code, and settings of libraries that are not there. compile() itself: tests/python/compile."""

import subprocess
import sys

import pytest

import cresset as torch


def test_functions_stay_as_they_are():
    def f(x):
        return x + 1

    compiler = torch.compiler
    assert compiler.disable(f) is f and compiler.disable(recursive=False)(f) is f
    assert compiler.allow_in_graph(f) is f and compiler.assume_constant_result(f) is f
    assert not compiler.is_compiling() and not compiler.is_dynamo_compiling() and not compiler.is_exporting()
    assert {"cresset", "inductor"} <= set(compiler.list_backends()) and "eager" in compiler.list_backends(None) and compiler.reset() is None


def test_names_that_libraries_import():
    from cresset._dynamo import is_compiling
    from cresset._jit_internal import _qualified_name, is_scripting
    from cresset.nn.parallel.distributed import DistributedDataParallel

    assert not is_compiling() and not is_scripting() and torch._dynamo.disable(is_compiling) is is_compiling
    assert _qualified_name(torch.nn.Linear) == "__torch__.torch.nn.modules.linear.Linear"
    assert torch.nn.parallel.DistributedDataParallel is DistributedDataParallel
    assert torch._C._log_api_usage_once("library.part") is None


@pytest.mark.parametrize("name", ["has_cuda", "has_cudnn", "has_mkldnn", "has_mps"])
def test_old_questions_about_the_build(name):
    with pytest.warns(UserWarning, match=f"'{name}' is deprecated, please use 'torch.backends"):
        assert getattr(torch, name) is (name == "has_mkldnn")


def test_the_configuration_is_a_module_of_the_package():
    assert "ATen parallel backend: native thread pool" in torch.__config__.parallel_info() == torch._C._parallel_info()
    assert torch.__config__.show().startswith("Cresset")


def test_a_stance_changes_no_answer():
    set_stance = torch.compiler.set_stance

    @set_stance("force_eager")
    def f(x):
        return x + 1

    with set_stance("fail_on_recompile", skip_guard_eval_unsafe=True):
        assert f(1) == 2
    with pytest.raises(RuntimeError, match="non-default stance cannot have force_backend set"):
        set_stance("force_eager", force_backend="eager")


@pytest.mark.parametrize("name", ["cudnn", "mkldnn"])
def test_settings_of_libraries_that_are_absent(name):
    module = getattr(torch.backends, name)
    before = module.enabled, module.deterministic
    with module.flags(enabled=True, deterministic=True):
        assert module.enabled and module.deterministic
    assert (module.enabled, module.deterministic) == before
    old = module.set_flags(_enabled=True, _deterministic=None)
    assert old[0] == before[0] and module.enabled and module.deterministic == before[1]
    module.set_flags(_enabled=before[0])
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        module.flags(colour=1).__enter__()


def test_preferred_libraries_are_remembered():
    cuda = torch.backends.cuda
    assert cuda.preferred_linalg_library().name == "Default" and cuda.preferred_blas_library().name == "Cublas"
    assert cuda.preferred_linalg_library("magma") is cuda.preferred_linalg_library() and cuda.preferred_linalg_library().name == "Magma"
    assert cuda.preferred_linalg_library("default").name == "Default"
    with pytest.raises(RuntimeError, match="Choose from: default, cublas, hipblas, cublaslt, hipblaslt, ck."):
        cuda.preferred_blas_library("x")
    with pytest.raises(RuntimeError, match="Unknown input value type."):
        cuda.preferred_linalg_library(3)


def test_factorisations_are_there():
    assert torch.has_lapack and torch._C.has_lapack


def test_the_default_tensor_type_warns_once():
    program = (
        "import warnings, cresset as torch\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    torch.set_default_tensor_type(torch.DoubleTensor), torch.set_default_tensor_type('torch.FloatTensor')\n"
        "    first = len(seen)\n"
        "    torch.set_warn_always(True)\n"
        "    torch.set_default_tensor_type(torch.FloatTensor), torch.set_default_tensor_type(torch.FloatTensor)\n"
        "print(first, len(seen), seen[0].message)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.startswith("1 3 torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype()"), done.stderr


def test_custom_operators_as_whole_graphs_ask_their_fake_kernel():
    asked = []

    @torch.library.custom_op("test_compiler::copied", mutates_args=())
    def copied(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    compiled = torch.compile(copied, backend="eager", fullgraph=True)
    with pytest.raises(RuntimeError, match="fake"):
        compiled(torch.ones(2))

    @copied.register_fake
    def _(x):
        asked.append(tuple(x.shape))
        return torch.empty_like(x)

    for size in (2, 2, 3):
        assert compiled(torch.ones(size)).tolist() == [1] * size
    assert asked == [(2,), (3,)] and torch.compile(copied) is copied


def test_regions_are_the_functions_themselves():
    from cresset._higher_order_ops.invoke_subgraph import mark_compile_region

    @torch.compiler.nested_compile_region
    def twice(x):
        """Words of the function."""
        return x * 2

    @torch.compiler.nested_compile_region(max_reuse_entries=2)
    def more(x):
        return twice(x) + 1

    x = torch.ones(2)
    assert more(x).tolist() == mark_compile_region(more)(x).tolist() == [3, 3] and twice.__doc__ == "Words of the function."

    class Program(torch.nn.Module):
        def forward(self, x):
            return more(x)

    assert torch.export.export(Program(), (x,)).module()(x + 1).tolist() == torch.compile(more)(x + 1).tolist() == [5, 5]
