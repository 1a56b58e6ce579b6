"""Extensions in C++: they build with PyTorch's header names and macros, and behave in Python as their sources say."""

import copy
import io
import os
import pickle
import re
import subprocess
import sys
import time
import weakref
from pathlib import Path

import pytest
from compiling import COMPAT, compile_only, header_names, needs_pybind11

import cresset
from cresset.utils import cpp_extension

ROOT = Path(__file__).resolve().parents[2]
SOURCES = Path(__file__).parent / "sources"

# --- headers


@needs_pybind11
def test_every_header_name_compiles(tmp_path):
    result = compile_only("".join(f"#include <{name}>\n" for name in header_names()), tmp_path, "-Wall", "-Werror")
    assert result.returncode == 0, result.stderr[:2000]


@pytest.mark.slow
@needs_pybind11
@pytest.mark.parametrize("content", sorted(p.name for p in (COMPAT / "include/cresset_compat").glob("*.h")))
def test_each_content_header_compiles_alone(content, tmp_path):
    result = compile_only(f"#include <cresset_compat/{content}>\n", tmp_path)
    assert result.returncode == 0, result.stderr[:2000]


def test_the_core_does_not_include_the_compatibility_layer():
    for file in (ROOT / "include").rglob("*.h"):
        assert "cresset_compat" not in file.read_text(), file


# --- a Python module


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    source = SOURCES / "surface_module.cpp"
    return cpp_extension.load(
        "surface_module", source, extra_cflags=["-O0"], build_directory=tmp_path_factory.mktemp("module")
    )


def test_values_pickled_in_cpp_read_back(module):
    x = cresset.arange(6.0).view(2, 3)
    assert cresset.equal(module.unpickled(module.pickled(x)), x)


def test_names_of_script_types(module):
    assert module.script_types() == ["Tensor[]", "Tensor?", "Dict(str, int)", "(float, Scalar, bool)"]


def test_marks_for_the_profiler(module):
    with cresset.autograd.profiler.profile(record_shapes=True) as prof:
        module.recorded(cresset.ones(2))
    event = next(e for e in prof.function_events if e.name == "aten::mul")
    assert event.cpu_parent.name == "surface::part"
    assert event.cpu_parent.cpu_parent.name == "surface::recorded"
    assert event.cpu_parent.cpu_parent.input_shapes == [[2], []]


def test_tensors_over_files(module, tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(b"\x01\x02\x03")
    private, shared = module.mapped(str(path), False, 3), module.mapped(str(path), True, 3)
    private[0], shared[2] = 9, 7
    assert private.tolist()[0] == 9 and path.read_bytes() == b"\x01\x02\x07" and module.mapped(str(path), False, 0).numel() == 0
    for name, size, words in ((str(path), 4, "smaller than the required mapping size <4>"), (str(path) + "x", 1, "unable to open file")):
        with pytest.raises(RuntimeError, match=words):
            module.mapped(name, False, size)


def test_tensors_and_numbers_go_both_ways(module):
    x = cresset.tensor([1.0, 2.0])
    assert module.add_scaled(x, x, by=3).tolist() == [4.0, 8.0]
    assert module.count_defined([x, None, x]) == 2
    assert [t.tolist() for t in module.halves(cresset.arange(4))] == [[0, 1], [2, 3]]
    total, dim = module.pair_of(x)
    assert total.item() == 3.0 and dim == 1
    assert module.nothing() is None
    assert module.sizes_twice((2, 3)) == [4, 6]
    assert module.twice(3) == 6 and module.twice(1.5) == 3.0
    with pytest.raises(TypeError):
        module.add_scaled([1.0], x)


def test_types_and_devices_go_both_ways(module):
    made = module.make(cresset.int32, cresset.device("cpu"))
    assert made.dtype is cresset.int32 and made.tolist() == [3, 3]
    assert module.make(cresset.float64, "cpu", cresset.strided).dtype is cresset.float64
    assert module.leaf().requires_grad and not made.requires_grad
    assert module.dtype_of(made) is cresset.int32
    assert module.device_of(made) == cresset.device("cpu")


def test_guards_over_an_implementation(module):
    assert module.devices_of_guards() == [2, 3, 4, 0, 4, 0, 1, 0, 0, 3, 5, 0, 6, 3, 0, 0, 1]
    with pytest.raises(RuntimeError, match="InlineDeviceGuard: expected a device of type cuda, but got cpu"):
        module.guard_of_another_kind()


def test_shapes_of_views_and_versions(module):
    x = cresset.arange(12).view(4, 3).t()
    assert module.strides_of_view(x, [3, 2, -1]) == [1, 6, 3]
    assert module.strides_of_view(x, [12]) is None
    with pytest.raises(RuntimeError, match=re.escape("shape '[5, -1]' is invalid for input of size 12")):
        module.strides_of_view(x, [5, -1])
    module.changed(x)
    assert x._version == 1


@pytest.mark.parametrize(
    "kind, error, text",
    [
        ("runtime", RuntimeError, "a runtime error of 2 parts"),
        ("value", ValueError, "a value error"),
        ("type", TypeError, "a type error"),
        ("index", IndexError, "an index error"),
        ("missing", NotImplementedError, "not there"),
        ("internal", RuntimeError, "broken"),
        ("generic", RuntimeError, "Expected 1 == 2 to be true, but got false."),
        ("error", RuntimeError, "an error"),
        ("std", IndexError, "a standard one"),
    ],
)
def test_errors_become_python_errors(module, kind, error, text):
    with pytest.raises(error, match=re.escape(text)):
        module.fail(kind)


def test_classes(module):
    a = module.Accumulator(2)
    a.add(cresset.ones(2, dtype=cresset.float64))
    a.add(cresset.ones(2, dtype=cresset.float64))
    assert a.total.tolist() == [2.0, 2.0]


def test_autograd_function(module):
    x = cresset.tensor([2.0, 3.0], requires_grad=True)
    y = module.cube(x, 0.5)
    y.sum().backward()
    assert y.tolist() == [4.0, 13.5]
    assert x.grad.tolist() == [6.0, 13.5]
    assert "Cube" in y.grad_fn.name()


def test_indexing(module):
    x = cresset.arange(12).reshape(3, 4)
    assert module.indexed(x).tolist() == x[1:, ..., ::2].tolist()
    assert module.gathered(x, cresset.tensor([2, 0])).tolist() == [8, 0]
    module.assign(x, -1)
    assert x.tolist() == [[-1] * 4, [-1] * 4, [8, 9, 10, 11]]


def test_accessors_dispatch_and_iterators(module):
    for dtype in (cresset.int16, cresset.float16, cresset.bfloat16, cresset.float64):
        assert module.sum_by_accessor(cresset.arange(6).reshape(2, 3).t().to(dtype)) == 15
    with pytest.raises(RuntimeError, match="sum_by_accessor.*not implemented for 'ComplexFloat'"):
        module.sum_by_accessor(cresset.ones(1, 1, dtype=cresset.complex64))
    x = cresset.arange(6.0).reshape(2, 3).t()
    assert module.squared(x).tolist() == (x * x).tolist()
    assert module.parallel_fill(1000).tolist() == list(range(1000))


def test_printing(module):
    assert (
        module.printed(cresset.tensor([[1.0, 2.5], [3.0, 4.0]]))
        == " 1.0000  2.5000\n 3.0000  4.0000\n[ CPUFloatType{2,2} ] [2, 2] Float cpu"
    )
    assert module.printed(cresset.tensor(3)) == "3\n[ CPULongType{} ] [] Long cpu"


# --- operators and classes


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    source = SOURCES / "surface_library.cpp"
    cpp_extension.load("surface_library", source, extra_cflags=["-O0"], build_directory=folder, is_python_module=False)
    return cresset.ops.surface


def test_operators(library):
    x = cresset.tensor([1.0, 2.0], requires_grad=True)
    y = library.scale(x, 3.0)
    y.sum().backward()
    assert y.tolist() == [3.0, 6.0] and x.grad.tolist() == [3.0, 3.0]
    assert library.resized(x, [2, 3], 4).shape == (2, 3, 4)
    assert library.resized(x, [2], 4, 1).shape == (2, 5)
    assert library.total([1, 2, 3]) == 6
    assert library.lengths(["a", "bcd"]) == {"a": 1, "bcd": 3}
    assert library.maybe(x, False)[1] is None
    assert library.maybe(x.detach(), True)[1].tolist() == [2.0, 3.0]
    assert cresset.ops.surface_old.add_one(cresset.zeros(1)).item() == 1


def test_namespaces_of_families(library):
    x = cresset.arange(8.0)
    assert abs(library.power(x).item() - cresset.linalg.vector_norm(cresset.fft.rfft(x)).item()) < 1e-4


def test_numbers_before_tensors_and_checks_of_pairs(library):
    assert library.compared(2.0, cresset.tensor([1.0, 2.0, 3.0])).tolist() == [0b001101, 0b010110, 0b110001]
    assert library.refusal(1, 2) == "" and library.refusal(3, 2).startswith("Check failed: a <= b (3 vs. 2) in refusal")
    assert library.refusal(2, 2).startswith("Check failed: a != b (2 vs. 2)")


def test_older_names_of_operators(library):
    x = cresset.tensor([[1.0, 2.0], [1.0, 2.0], [3.0, 4.0]])
    # Rows, (count << 2) | 1 since the inverse indices are 0, 0, 1, two ranges, and the mean's gradient.
    assert library.older_names(x).tolist() == [1, 2, 3, 4, 9, 5, 1, 1.5, 2, 3, 2, 1, 0.5, 0.5]


def test_libraries_that_are_opened(library):
    assert library.cosine(0.0) == 1.0


def test_warning_handlers(library):
    assert library.heard_warnings() == ["one 1", "three", "deprecated: two"]


def test_custom_classes(library):
    counter = cresset.classes.surface.Counter(7)
    assert isinstance(counter, cresset.ScriptObject)
    ended = []
    reference = weakref.ref(cresset.classes.surface.Counter(1), ended.append)
    assert reference() is None and ended == [reference] and weakref.ref(counter)() is counter
    assert counter.next() == 8 and counter.next(by=2) == 10
    assert counter.plus(cresset.zeros(2)).tolist() == [10.0, 10.0]
    counter.value = -1
    assert counter.value == -1 and counter.negative is True
    assert cresset.classes.surface.Counter().value == 5
    assert cresset.classes.surface.Counter.of(3).value == 3
    assert library.doubled(counter).value == -2
    assert library.value_of(counter) == -1
    assert pickle.loads(pickle.dumps(counter)).value == -1
    with pytest.raises(RuntimeError, match="can't set attribute"):
        counter.negative = False
    with pytest.raises(RuntimeError, match="Unknown keyword argument 'step' for operator 'next'"):
        counter.next(step=1)
    with pytest.raises(RuntimeError, match="Tried to instantiate class 'surface.Nobody', but it does not exist!"):
        cresset.classes.surface.Nobody
    with pytest.raises((TypeError, RuntimeError)):
        library.doubled(3)


CLASS = "__torch__.torch.classes.surface.Counter"


@pytest.mark.parametrize("call, error, words", [
    (lambda c: c.next("a"), RuntimeError, f"next() Expected a value of type 'int' for argument 'by' but instead found type 'str'.\nPosition: 1\nValue: 'a'\nDeclaration: next({CLASS} _0, int by=1) -> int"),
    (lambda c: c.plus(), RuntimeError, f"plus() is missing value for argument '_1'. Declaration: plus({CLASS} _0, Tensor _1) -> Tensor"),
    (lambda c: c.plus(1, 2), RuntimeError, "plus() expected at most 2 argument(s) but received 3 argument(s)."),
    (lambda c: cresset.classes.surface.Counter(1, 2), RuntimeError, "__init__() expected at most 2 argument(s) but received 3 argument(s)."),
    (lambda c: c.nothing, AttributeError, f"{CLASS} (of Python compilation unit at: 0) does not have a field with name 'nothing'"),
    (lambda c: setattr(c, "nothing", 1), RuntimeError, f"{CLASS} (of Python compilation unit at: 0) does not have an attribute with name 'nothing'"),
    (lambda c: setattr(c, "value", "a"), RuntimeError, "value_setter() Expected a value of type 'int'"),
], ids=["type", "missing", "too many", "constructor", "no attribute", "no property", "property"])  # fmt: skip
def test_words_of_custom_classes(library, call, error, words):
    with pytest.raises(error, match=re.escape(words)):
        call(cresset.classes.surface.Counter(7))


class Counting(cresset.nn.Module):
    def __init__(self, counter):
        super().__init__()
        self.counter = counter

    def forward(self, x):
        self.counter.value = self.counter.value + 1
        return self.counter.plus(x) + cresset.ops.surface.value_of(self.counter)


def test_custom_classes_in_scripts(library):
    Counter = cresset.classes.surface.Counter

    def uses(n: int, given: Counter):
        made = cresset.classes.surface.Counter(n)
        made.next(by=2)
        return made.next(), cresset.classes.surface.Counter.of(3).value, given.next(), given.negative

    assert cresset.jit.script(uses)(1, Counter(5)) == (4, 3, 6, False)

    def several(c: Counter):
        n, half = c.both()
        return n + 1, half, c.both()

    assert cresset.jit.script(several)(Counter(3)) == (4, 1.5, (3, 1.5)) and Counter(3).both() == (3, 1.5)

    def alone(c: Counter):
        (value,) = c.alone()
        return value + 1, c.alone()

    assert cresset.jit.script(alone)(Counter(3)) == (4, (3,)) and Counter(3).alone() == (3,)
    script = cresset.jit.script(Counting(Counter(1)))
    assert script(cresset.zeros(1)).item() == 4 and script(cresset.zeros(1)).item() == 6 and script.counter.value == 3

    def made(n: int):
        c = cresset.classes.surface.Counter(n)
        if n > 1:
            c.next()
        else:
            c = cresset.classes.surface.Counter(10)
        return c

    compiled = cresset.jit.script(made)
    assert "prim::CreateObject()" in str(compiled.graph) and 'prim::CallMethod[name="__init__"]' in str(compiled.graph)
    assert compiled(5).value == 6 and compiled(0).value == 10 and compiled(5) is not compiled(5)
    saved = io.BytesIO()
    cresset.jit.save(compiled, saved)
    saved.seek(0)
    loaded = cresset.jit.load(saved)
    assert loaded(5).value == 6 and "Counter.__new__(" in loaded.code
    deep = copy.deepcopy(script)
    deep(cresset.zeros(1))
    assert deep.counter.value == 4 and script.counter.value == 3

    def wrong(c: Counter):
        return c.nothing()

    with pytest.raises(RuntimeError, match="object has no attribute or method 'nothing'"):
        cresset.jit.script(wrong)


# --- building


QUICK = '#include <Python.h>\nstatic PyModuleDef d = {{PyModuleDef_HEAD_INIT, "{0}", nullptr, -1}};\nPyMODINIT_FUNC PyInit_{0}() {{ PyObject* m = PyModule_Create(&d); PyModule_AddIntConstant(m, "value", {1}); return m; }}\n'


def test_only_what_changed_is_compiled_again(tmp_path):
    source = tmp_path / "quick.cpp"
    source.write_text(QUICK.format("quick_a", 1))
    other = tmp_path / "other.cpp"
    other.write_text("int other() { return 1; }\n")
    build = tmp_path / "build"
    build.mkdir()
    assert cpp_extension.load("quick_a", [source, other], build_directory=build).value == 1
    times = {p.name: p.stat().st_mtime_ns for p in build.glob("*.o")}
    cpp_extension.load("quick_a", [source, other], build_directory=build)
    assert {p.name: p.stat().st_mtime_ns for p in build.glob("*.o")} == times
    time.sleep(0.01)
    source.write_text(QUICK.format("quick_a_v1", 2))
    assert cpp_extension.load("quick_a", [source, other], build_directory=build).value == 2
    assert (build / "other.o").stat().st_mtime_ns > 0


def test_failures_show_the_first_error(tmp_path):
    with pytest.raises(RuntimeError, match=r"Error building extension 'broken': .*main.cpp:1:\d+: error: .*nosuch"):
        cpp_extension.load_inline(
            "broken", "int f() { return nosuch; }", build_directory=tmp_path, no_implicit_headers=True
        )


def test_cuda_is_refused_clearly(tmp_path):
    with pytest.raises(OSError, match="Cresset has no CUDA backend"):
        cpp_extension.CUDAExtension("x", ["x.cu"])
    with pytest.raises(OSError, match="Cresset has no CUDA backend"):
        cpp_extension.load("x", [tmp_path / "x.cu"])


@pytest.mark.parametrize(
    "text, whole",
    [
        ("torch::nn::Linear layer(2, 3);", True), ("using namespace torch::nn;", True), ("namespace nn = torch::nn ;", True),
        ("torch::optim::SGD step(p, 0.1);", True), ("torch::python::bind_module<Net>(m, name);", True), ("torch::save(x, path);", True),
        ("namespace F = torch::nn::functional;", False), ("torch::nn::functional::relu(x);", False), ("struct Net : torch::nn::Module {};", False),
        ("torch::relu(x);", False), ("torch::saved(x);", False),
    ],
)  # fmt: skip
def test_what_needs_the_whole_front_end(tmp_path, text, whole):
    """The macro is there for layers, optimisers and files, and not for what torch/extension.h has anyway."""
    (tmp_path / "source.cpp").write_text(text)
    assert ("-DCRESSET_WHOLE_FRONT_END" in cpp_extension._own_defines("x", [tmp_path / "source.cpp"])) == whole


def test_functions_of_load_inline_have_names(tmp_path):
    with pytest.raises(ValueError, match="Expected 'functions' to be a list or dict, but was <class 'int'>"):
        cpp_extension.load_inline("nothing", "", functions=5, build_directory=tmp_path)


@pytest.mark.slow
@needs_pybind11
def test_load_inline(tmp_path):
    module = cpp_extension.load_inline(
        "inline_module",
        "torch::Tensor twice(const torch::Tensor& x) { return x * 2; }",
        functions={"twice": 'x * 2, "doubled"'},
        extra_cflags=["-O0"],
        build_directory=tmp_path,
    )
    assert module.twice(cresset.ones(1)).item() == 2
    assert 'x * 2, "doubled"' in module.twice.__doc__


@needs_pybind11
def test_modules_of_the_front_end(tmp_path):
    """A C++ module in Python: parameters, children, modes, copies, conversions and files are those of an nn.Module."""
    extension = cpp_extension.load("mixer", [SOURCES / "frontend_module.cpp"], ["-O0 -g0"], build_directory=tmp_path)
    net = extension.Mixer(3, 2)
    assert isinstance(net, cresset.nn.Module) and isinstance(net, cresset.nn.cpp.ModuleWrapper)
    assert [name for name, _ in net.named_parameters()] == ["scale", "layer.weight", "layer.bias"] and len(net.parameters()) == 3
    assert [name for name, _ in net.named_buffers()] == ["calls"] and len(net.children()) == 1 and net.layer is net.layer
    x = cresset.randn(4, 3)
    model = cresset.nn.Sequential(net, cresset.nn.Tanh())
    assert cresset.equal(model(x), cresset.tanh(cresset.nn.functional.linear(x, net.layer.weight, net.layer.bias))) and net.calls.item() == 1
    model(x).sum().backward()
    assert all(p.grad is not None for p in model.parameters()) and len(list(model.modules())) == 4
    model.eval()
    assert not net.training and not net.layer.training and net.train().layer.training
    copy = net.clone()
    assert type(copy) is type(net) and cresset.equal(copy.layer.weight, net.layer.weight)
    assert copy.layer.weight.data_ptr() != net.layer.weight.data_ptr()
    model.double()
    assert net.scale.dtype == net.calls.dtype == net.layer.bias.dtype == cresset.float64 and model(x.double()).dtype == cresset.float64
    state = model.state_dict()
    assert list(state) == ["0.scale", "0.calls", "0.layer.weight", "0.layer.bias"]
    other = cresset.nn.Sequential(extension.Mixer(3, 2).double(), cresset.nn.Tanh())
    assert other.load_state_dict(state) and cresset.equal(other(x.double()), model(x.double()))
    net.grow()
    assert len(net.parameters()) == 5 and repr(net).startswith("Mixer")
    with pytest.raises(RuntimeError, match="'scale' belongs to a C\\+\\+ module"):
        del net.scale
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        net.absent


def test_setup_script(tmp_path):
    """A package with a setup.py builds in place, in parallel with ninja, and with the folders its setup script names."""
    (tmp_path / "include").mkdir()
    (tmp_path / "include/number.h").write_text("#define NUMBER 42\n")
    (tmp_path / "one.cpp").write_text(
        "#include <Python.h>\n#include <number.h>\n#include <cresset/base/error.h>\nint other();\n"
        "#define STRING(x) #x\n#define NAME(x) STRING(x)\n"
        "static PyModuleDef d = {PyModuleDef_HEAD_INIT, NAME(TORCH_EXTENSION_NAME), nullptr, -1};\n"
        "PyMODINIT_FUNC PyInit__native() { cresset::str(1); PyObject* m = PyModule_Create(&d); "
        'PyModule_AddIntConstant(m, "value", NUMBER + other()); return m; }\n'
    )
    (tmp_path / "two.cpp").write_text("static_assert(__cplusplus >= 202002L);\nint other() { return 0; }\n")
    (tmp_path / "setup.py").write_text(
        "from setuptools import setup\n"
        "from torch.utils.cpp_extension import BuildExtension, CppExtension\n"
        "setup(name='pkg', packages=[], ext_modules=[CppExtension('_native', ['one.cpp', 'two.cpp'], include_dirs=['include'],\n"
        "      extra_compile_args={'cxx': ['-std=c++17', '-O0']})], cmdclass={'build_ext': BuildExtension})\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), str(COMPAT / "python")]),
        "CXX": f"env {cpp_extension.get_cxx_compiler()}",  # of two words, as with ccache
    }
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=tmp_path, env=environment, check=True
    )
    [rules] = tmp_path.glob("build/temp*/build.ninja")
    # Clang has no such option.
    is_gcc = cpp_extension.check_compiler_is_gcc(cpp_extension.get_cxx_compiler())
    assert ("--param ggc-min-heapsize=" in rules.read_text()) == is_gcc
    code = "import cresset, _native; print(_native.value)"
    out = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
    )
    assert out.stdout == "42\n"


# --- PyTorch's Python name


def test_as_torch(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, torch, torch.nn.functional as F\n"
        "import torch.utils.cpp_extension\n"
        "from torch import nn\n"
        "import cresset\n"
        "assert torch is cresset and nn is cresset.nn and sys.modules['torch.nn.functional'] is cresset.nn.functional\n"
        "assert F.relu(torch.tensor(-1.0)).item() == 0\n"
        "try:\n    import torch.nothing\nexcept ModuleNotFoundError as e:\n    assert e.name == 'torch.nothing', e.name\n"
        "print(sys.argv[1:], __name__)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    out = subprocess.run(
        [sys.executable, "-m", "cresset.as_torch", script, "a", "b"], env=environment, capture_output=True, text=True
    )
    assert out.returncode == 0, out.stderr
    assert out.stdout == "['a', 'b'] __main__\n"
    environment["PYTHONPATH"] += os.pathsep + str(COMPAT / "python")
    out = subprocess.run([sys.executable, script, "c"], env=environment, capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    assert out.stdout == "['c'] __main__\n"
