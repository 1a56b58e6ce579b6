"""The headers and names of surface.toml exist: a use of every one is compiled. What the names do is tested where their subject is."""

import re
import tomllib
from pathlib import Path

import pytest
from compiling import compile_only, header_names, needs_pybind11

SURFACE = tomllib.loads((Path(__file__).parent / "surface.toml").read_text())
PRELUDE = """
#include <torch/extension.h>
#include <torch/script.h>
#include <torch/torch.h>
#include <ATen/DLConvertor.h>
#include <ATen/EmptyTensor.h>
#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/ForeachUtils.h>
#include <ATen/native/Pool.h>
#include <ATen/native/DistributionTemplates.h>
#include <ATen/native/cpu/DistributionTemplates.h>
#include <c10/core/Event.h>
#include <c10/util/env.h>
#include <c10/util/flat_hash_map.h>
#include <c10/util/order_preserving_flat_hash_map.h>
struct Fn : torch::autograd::Function<Fn> {};
struct Held : torch::CustomClassHolder {};
static_assert(at::kQUInt4x2 == at::ScalarType::QUInt4x2 && torch::kSparseCsr == c10::Layout::SparseCsr);
struct Set : torch::data::Dataset<Set> {
  torch::data::Example<> get(size_t) override { return {}; }
  c10::optional<size_t> size() const override { return 0; }
};
using DictIter = decltype(std::declval<c10::Dict<std::string, int64_t>&>().begin());
using DictEntry = std::decay_t<decltype(*std::declval<DictIter&>())>;
using ListRef = decltype(std::declval<c10::List<int64_t>&>()[0]);
using Ints = decltype(c10::irange(1).begin());
using Slots = decltype(std::declval<torch::jit::Module&>().named_parameters());
struct Values { at::Tensor t; c10::Scalar s; c10::Half h; c10::BFloat16 b; c10::Device d{c10::kCPU}; c10::complex<float> z; c10::DispatchKeySet k; caffe2::TypeMeta m; };
"""
# Classes that are templates, with arguments that suit.
TEMPLATES = {
    "at::TensorAccessor": "at::TensorAccessor<float, 2>",
    "at::TensorAccessorBase": "at::TensorAccessorBase<float, 2>",
    "at::vec::CPU_CAPABILITY::Vectorized": "at::vec::Vectorized<float>",
    "c10::ArrayRef": "c10::ArrayRef<int64_t>",
    "c10::Dict": "c10::Dict<std::string, int64_t>",
    "c10::IListRef": "c10::IListRef<at::Tensor>",
    "c10::List": "c10::List<int64_t>",
    "c10::MaybeOwned": "c10::MaybeOwned<at::Tensor>",
    "c10::OptionalArrayRef": "c10::OptionalArrayRef<int64_t>",
    "c10::TypedOperatorHandle": "c10::TypedOperatorHandle<at::Tensor(const at::Tensor&)>",
    "c10::complex": "c10::complex<float>",
    "c10::function_ref": "c10::function_ref<int(int)>",
    "c10::impl::InlineMultiStreamGuard": "c10::impl::InlineMultiStreamGuard<c10::impl::VirtualGuardImpl>",
    "c10::detail::integer_iterator": "Ints",
    "c10::guts::function_traits": "c10::guts::function_traits<int(int)>",
    "c10::guts::typelist::typelist": "c10::guts::typelist::typelist<int>",
    "c10::impl::DictEntryRef": "DictEntry",
    "c10::impl::DictIterator": "DictIter",
    "c10::impl::ListElementReference": "ListRef",
    "c10::intrusive_ptr": "c10::intrusive_ptr<c10::TensorImpl>",
    "ska::flat_hash_map": "ska::flat_hash_map<int, int>",
    "torch::ExpandingArray": "torch::ExpandingArray<2>",
    "torch::autograd::Function": "torch::autograd::Function<Fn>",
    "torch::class_": "torch::class_<Held>",
    "torch::data::Example": "torch::data::Example<>",
    "torch::data::Iterator": "torch::data::Iterator<torch::data::Example<>>",
    "torch::data::datasets::BatchDataset": "Set",
    "torch::data::datasets::Dataset": "torch::data::datasets::Dataset<Set>",
    "torch::data::datasets::MapDataset": "torch::data::datasets::MapDataset<Set, torch::data::transforms::Stack<>>",
    "torch::data::transforms::Normalize": "torch::data::transforms::Normalize<>",
    "torch::data::transforms::Stack": "torch::data::transforms::Stack<>",
    "torch::nn::ConvOptions": "torch::nn::ConvOptions<2>",
    "torch::nn::ConvTransposeOptions": "torch::nn::ConvTransposeOptions<2>",
    "torch::nn::ModuleHolder": "torch::nn::ModuleHolder<torch::nn::LinearImpl>",
    "torch::nn::functional::ConvFuncOptions": "torch::nn::functional::ConvFuncOptions<2>",
}
# Names that another form shows better: operators, members of final classes. `v` holds values of the common types.
USES = {
    **{
        f"at::operator{o}": f"(void)(v.t {o} v.t); (void)(v.t {o} 2)"
        for o in ("*", "-", "+", "/", "==", "!=", "<", ">", "<=", ">=", "&", "|", "%")
    },
    **{
        f"c10::operator{o}": f"(void)(v.h {o} v.h); (void)(v.b {o} 2.0f); (void)(v.z {o} v.z)"
        for o in ("*", "-", "+", "/")
    },
    **{f"c10::operator{o}": f"v.h {o} v.h; v.b {o} v.b" for o in ("+=", "-=", "*=", "/=")},
    "c10::operator<": "(void)(v.h < v.h)",
    "c10::operator>": "(void)(v.b > v.b)",
    "c10::operator<=": "(void)(v.h <= v.h)",
    "c10::operator>=": "(void)(v.h >= v.h)",
    "c10::operator==": "(void)(v.d == v.d); (void)(v.m == v.m); (void)(v.t.sizes() == at::IntArrayRef{1})",
    "c10::operator!=": "(void)(v.d != v.d); (void)(v.t.sizes() != at::IntArrayRef{1})",
    "caffe2::operator==": "(void)(v.m == v.m); (void)(v.t.dtype() == torch::kFloat)",
    "caffe2::operator!=": "(void)(v.m != v.m)",
    "c10::operator<<": "std::cout << v.d << v.t.sizes() << v.t.scalar_type() << v.t.layout() << v.s << v.h",
    "at::operator<<": "std::cout << v.t",
    "c10::Device::operator==": "(void)(v.d == v.d)",
    "c10::Device::operator!=": "(void)(v.d != v.d)",
    "c10::DispatchKeySet::operator&": "(void)(v.k & v.k)",
    "c10::DispatchKeySet::operator|": "(void)(v.k | v.k)",
    "c10::DispatchKeySet::operator-": "(void)(v.k - v.k)",
    "c10::Stream::device": "c10::Stream(c10::Stream::DEFAULT, v.d).device()",
    "torch::Library::def": '[](torch::Library& m) { m.def("f(Tensor x) -> Tensor"); m.def("g", [](at::Tensor x) { return x; }); }',
    "torch::Library::impl": '[](torch::Library& m) { m.impl("f", [](at::Tensor x) { return x; }); }',
    "torch::Library::class_": '[](torch::Library& m) { m.class_<Held>("Held"); }',
    "torch::Library::fallback": "[](torch::Library& m) { m.fallback(torch::CppFunction::makeFallthrough()); }",
    "c10::MaybeOwned::owned": "c10::MaybeOwned<at::Tensor>::owned(std::move(v.t))",
    "c10::MaybeOwned::borrowed": "c10::MaybeOwned<at::Tensor>::borrowed(v.t)",
    "at::DeprecatedTypeProperties::operator TensorOptions": "torch::empty({1}, v.t.type())",
    "at::Tensor::operator bool": "(void)v.t.item().to<bool>()",
}
ENUMS = {"c10::DeviceType", "c10::ScalarType", "c10::DispatchKey", "c10::MemoryFormat", "c10::Layout", "c10::Backend", "c10::BackendComponent",
         "torch::data::datasets::MNIST::Mode", "c10::Stream::Default", "c10::Stream::Unsafe", "c10::DispatchKeySet::FullAfter", "c10::AliasAnalysisKind",
         "c10::TypeKind", "c10::DispatchKeySet::Full", "c10::DispatchKeySet::Raw", "c10::EventFlag"}  # fmt: skip
NAMESPACES = {"CPU_CAPABILITY"}


def declaration(name, number):
    """A line that compiles when the name is there."""
    if name in USES:
        return f"inline void use{number}(Values& v) {{ {USES[name]}; }}"
    base, last = (
        re.fullmatch(r"(.*)::(operator.*|.*)", name).groups()
        if "::operator" not in name
        else name.split("::operator", 1)
    )
    if "::operator" in name:
        last = "operator" + last
    if last == "(ctor)" or name in TEMPLATES:
        return f"using use{number} = {TEMPLATES.get(base if last == '(ctor)' else name, base if last == '(ctor)' else name)};"
    if base in ENUMS:
        return f"inline const auto use{number} = {name};"
    tail = base.rsplit("::", 1)[-1]
    if base in TEMPLATES or (tail[:1].isupper() and tail not in NAMESPACES):
        return f"template <class T> struct use{number} : T {{ using T::{last}; }}; template struct use{number}<{TEMPLATES.get(base, base)}>;"
    return f"namespace use{number} {{ using {name}; }}"


@pytest.mark.slow
@needs_pybind11
def test_every_name_is_there(tmp_path):
    names = list(dict.fromkeys(name for tier in ("tier1", "tier2", "backends") for name in SURFACE[tier]["names"]))
    first = PRELUDE.count("\n") + 1
    text = PRELUDE + "\n".join(declaration(name, i) for i, name in enumerate(names)) + "\n"
    result = compile_only(text, tmp_path, "-fmax-errors=0")
    lines = [int(n) for n in re.findall(r"source\.cpp:(\d+):\d+:(?: error| {3}required from here)", result.stderr)]
    missing = sorted({names[line - first] for line in lines if line >= first})
    assert result.returncode == 0 and not missing, f"{missing}\n{result.stderr[:3000]}"


def test_every_header_is_there():
    generated = {
        f"ATen/ops/{name}.h" for name in ("empty", "view", "alias", "empty_like", "scalar_tensor", "view_copy", "zeros")
    }
    assert set(SURFACE["headers"]["names"]) - set(header_names()) - generated == set()


@pytest.mark.slow
@needs_pybind11
def test_every_macro_is_there(tmp_path):
    lines = [f"#ifndef {name}\n#error {name}\n#endif" for name in SURFACE["macros"]["names"]]
    result = compile_only(PRELUDE + "\n".join(lines), tmp_path)
    assert result.returncode == 0, result.stderr[:2000]


def test_a_missing_name_is_found(tmp_path):
    """The check itself can fail."""
    text = (
        "#include <torch/types.h>\n"
        + declaration("at::Tensor::no_such_method", 0)
        + "\n"
        + declaration("torch::no_such_function", 1)
    )
    result = compile_only(text, tmp_path)
    assert "source.cpp:2:" in result.stderr and "source.cpp:3:" in result.stderr


@needs_pybind11
def test_forms_of_registration(tmp_path):
    result = compile_only((Path(__file__).parent / "sources/registration_forms.cpp").read_text(), tmp_path)
    assert result.returncode == 0, result.stderr[-3000:]
