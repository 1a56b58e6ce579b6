// Between tensors and scripts' values: conversions, shapes as lists, tensors from lists.
#include <cresset/core/accelerator_hooks.h>
#include <cresset/core/generator.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_view.h>
#include <cresset/ops/pinned_memory.h>
#include <cresset/ops/tensor_literal.h>

#include "ir/operators/builtin_call.h"
#include "ir/operators/class_properties.h"
#include "ir/operators/gradients.h"

namespace cresset::jit {
namespace builtin {
namespace {

GradientFunctions gradient_functions;
ClassProperty class_property = nullptr;

int64_t property_or(const Tensor& t, const char* name, int64_t otherwise) {
  if (CRESSET_LIKELY(!t.key_set().has(DispatchKey::Python)) || !class_property) return otherwise;
  return class_property(t, name).value_or(otherwise);
}

Scalar single(const Tensor& t) {
  CRESSET_CHECK(t.numel() == 1, "a Tensor with ", t.numel(), " elements cannot be converted to Scalar");
  return t.item();
}
// The implicit conversions that calls make are allowed for zero-dimensional tensors that need no gradient only.
Scalar implicit(const Tensor& t, const char* what) {
  CRESSET_CHECK(!t.requires_grad(), "Cannot input a tensor that requires grad as a scalar argument");
  CRESSET_CHECK(t.dim() == 0, "Cannot input a tensor of dimension other than 0 as a scalar argument");
  (void)what;
  return t.item();
}

// Does each row of the mask have its true values in front?
bool left_aligned(const Tensor& t, const Tensor& mask) {
  CRESSET_CHECK(mask.scalar_type() == ScalarType::Bool, "Expected mask to be of ScalarType Bool, but got ", to_string(mask.scalar_type()),
                " instead.");
  CRESSET_CHECK(mask.dim() == 2, "Padding mask should be 2D");
  CRESSET_CHECK(t.dim() == 3, "Input should be a 3D tensor, N * L * D");
  CRESSET_CHECK(t.size(0) == mask.size(0) && t.size(1) == mask.size(1), "Mask size should match input size");
  const Tensor on_host = mask.cpu().contiguous();
  const bool* values = on_host.const_data_ptr<bool>();
  for (int64_t row = 0; row < mask.size(0); ++row)
    for (int64_t i = 1; i < mask.size(1); ++i)
      if (values[row * mask.size(1) + i] && !values[row * mask.size(1) + i - 1]) return false;
  return true;
}
// Scripts of transformers name these on ways that they take for nested tensors only.
[[noreturn]] void no_nested(const char* name) { CRESSET_THROW(NotImplementedError, name, ": nested tensors are not part of Cresset."); }

int64_t to_integer(const Scalar& s) {
  if (!s.isFloatingPoint()) return s.toLong();
  const double v = s.toDouble();
  CRESSET_CHECK(v >= -9223372036854775808.0 && v < 9223372036854775808.0, "cannot convert float ", v, " to a 64-bit integer");
  return static_cast<int64_t>(v);
}

IValue int_list(IntArrayRef values) {
  std::vector<IValue> out;
  out.reserve(values.size());
  for (int64_t v : values) out.emplace_back(v);
  return make_list(std::move(out), basic_type(TypeKind::Int));
}

// Sizes of nested lists, and a check that they are rectangular.
void shape_of(const IValue& v, std::size_t depth, std::vector<int64_t>& sizes) {
  if (!v.isList()) {
    CRESSET_CHECK_VALUE(depth == sizes.size(), "tensor: lists of one depth are required.");
    return;
  }
  CRESSET_CHECK(depth < 64, "tensor: lists nested more than 64 deep are not supported.");
  const auto& elements = v.toListRef();
  const auto n = static_cast<int64_t>(elements.size());
  if (depth == sizes.size()) sizes.push_back(n);
  CRESSET_CHECK_VALUE(sizes[depth] == n, "Expected sequence of length ", sizes[depth], " at dim ", depth, " (got ", n, ")");
  for (const IValue& e : elements) shape_of(e, depth + 1, sizes);
}
// Of what the nested lists are, by their type: it holds for lists without elements, too.
TypePtr number_type(const IValue& v) {
  TypePtr type = v.type();
  while (type->kind == TypeKind::List) type = type->element();
  return type;
}
template <class T>
void fill(const IValue& v, T*& out) {
  if (v.isList()) {
    for (const IValue& e : v.toListRef()) fill(e, out);
    return;
  }
  const Scalar s = v.toScalar();
  if constexpr (std::is_same_v<T, int64_t>)
    *out++ = s.toLong();
  else if constexpr (std::is_same_v<T, bool>)
    *out++ = s.toBool();
  else if constexpr (std::is_same_v<T, Complex>)
    *out++ = s.toComplexDouble();
  else
    *out++ = s.toDouble();
}
template <class T>
Tensor filled(const IValue& v, const std::vector<int64_t>& sizes, ScalarType type) {
  Tensor t = cresset::detail::empty_cpu(sizes, type);
  if (t.numel() == 0) return t;
  T* out = static_cast<T*>(t.data_ptr());
  fill(v, out);
  return t;
}

Tensor make_tensor(const IValue& v, const IValue& dtype, const IValue& device) {
  std::vector<int64_t> sizes;
  shape_of(v, 0, sizes);
  const TypePtr type = number_type(v);
  Tensor t;
  ScalarType inferred = get_default_dtype();
  if (type->kind == TypeKind::Float) {
    t = filled<double>(v, sizes, ScalarType::Double);
  } else if (type->kind == TypeKind::Bool) {
    inferred = ScalarType::Bool;
    t = filled<bool>(v, sizes, ScalarType::Bool);
  } else if (type->kind == TypeKind::Int) {
    inferred = ScalarType::Long;
    t = filled<int64_t>(v, sizes, ScalarType::Long);
  } else if (type->kind == TypeKind::Complex) {
    inferred = get_default_dtype() == ScalarType::Double ? ScalarType::ComplexDouble : ScalarType::ComplexFloat;
    t = filled<Complex>(v, sizes, ScalarType::ComplexDouble);
  } else {
    const bool is_empty = v.isList() && v.toListRef().empty();
    CRESSET_THROW(Error, "Input must be of ints, floats, or bools, got ", type->annotation_str(),
                  is_empty
                      ? "\nEmpty lists default to List[Tensor]. Add a variable annotation to the assignment to create an empty list of "
                        "another type (torch.jit.annotate(List[T, []]) where T is the type of elements in the list for Python 2)"
                      : "");
  }
  t = t.to(dtype.isNone() ? inferred : dtype.toScalarType());
  if (!device.isNone()) t = t.to(device.toDevice());
  return t;
}
std::vector<Tensor> tensors_of(const IValue& list) {
  std::vector<Tensor> out;
  if (list.isNone()) return out;
  for (const IValue& v : list.toListRef()) out.push_back(v.isNone() ? Tensor() : v.toTensor());
  return out;
}
std::optional<bool> optional_flag(const IValue& v) { return v.isNone() ? std::nullopt : std::optional(v.toBool()); }

IValue gradients_of(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs, const std::vector<Tensor>& gradients,
                    std::optional<bool> retain, bool create, bool allow_unused) {
  std::vector<IValue> out;
  CRESSET_CHECK(gradient_functions.grad, "aten::grad: this program has no autograd.");
  for (const Tensor& t : gradient_functions.grad(outputs, inputs, gradients, retain, create, allow_unused))
    out.push_back(t.defined() ? IValue(t) : IValue());
  return make_list(std::move(out), optional_of(basic_type(TypeKind::Tensor)));
}

// einsum(a, [0, 1], b, [1, 2], [0, 2]): an index is a letter of the equation.
void einsum_of_lists(Stack& stack) {
  const auto n = static_cast<std::size_t>(pop(stack).toInt());
  const std::vector<IValue> arguments(stack.end() - static_cast<std::ptrdiff_t>(n), stack.end());
  drop(stack, n);
  constexpr int64_t kLetters = 26;
  std::string equation;
  std::vector<Tensor> operands;
  for (std::size_t i = 0; i < n; ++i) {
    if (i % 2 == 0 && i + 1 < n) {
      operands.push_back(arguments[i].toTensor());
      if (i) equation += ',';
      continue;
    }
    if (i % 2 == 0) equation += "->";
    for (const IValue& v : arguments[i].toListRef()) {
      const int64_t index = v.toInt();
      CRESSET_CHECK(index >= 0 && index < 2 * kLetters, "einsum(): not all subscripts in the list are within the range [0, ", 2 * kLetters,
                    ")");
      equation += static_cast<char>(index < kLetters ? 'A' + index : 'a' + index - kLetters);
    }
  }
  stack.emplace_back(cresset::einsum(equation, operands));
}

Tensor new_tensor(const IValue& v, const IValue& dtype, const IValue& device, bool requires_grad) {
  Tensor t = make_tensor(v, dtype, device);
  if (requires_grad) t.set_requires_grad(true);
  return t;
}
Tensor converted(const Tensor& t, const IValue& dtype, const IValue& device) {
  return cresset::to(t, dtype.isNone() ? std::nullopt : std::optional(dtype.toScalarType()), std::nullopt,
                     device.isNone() ? std::nullopt : std::optional(device.toDevice()), std::nullopt, false, false, std::nullopt);
}

// Lists in lists of int, float, complex or bool (0 to 3), one level for each dimension.
IValue list_of_elements(const Tensor& t, int64_t dims, int64_t kind) {
  constexpr const char* kKinds[] = {"int", "float", "complex", "bool"};
  if (dims > 0) {
    std::vector<IValue> out;
    TypePtr element =
        basic_type(std::array{TypeKind::Int, TypeKind::Float, TypeKind::Complex, TypeKind::Bool}.at(static_cast<std::size_t>(kind)));
    for (int64_t i = 1; i < dims; ++i) element = list_of(element);
    for (int64_t i = 0; i < t.size(0); ++i) out.push_back(list_of_elements(t.select(0, i), dims - 1, kind));
    return IValue(make_intrusive<ivalue::ListImpl>(std::move(out), element));
  }
  IValue v(t.item());
  const bool fits = kind == 0 ? v.isInt() : kind == 1 ? v.isDouble() : kind == 2 ? v.isComplexDouble() : v.isBool();
  CRESSET_CHECK(fits, "tolist: the annotated element type '", kKinds[kind], "' was required; the tensor holds ",
                to_string(t.scalar_type()));
  return v;
}
IValue to_list(const Tensor& t, int64_t dims, int64_t kind) {
  CRESSET_CHECK(dims == t.dim(), "tolist: a tensor of ", dims, " dimensions was annotated; it has ", t.dim(),
                ". Output annotation list dimension and runtime tensor dimension must match for tolist()");
  return list_of_elements(t, dims, kind);
}

IValue broadcast_sizes(IValue& a, IValue& b) {
  const std::vector<int64_t> x = a.toIntVector(), y = b.toIntVector();
  std::vector<int64_t> out(std::max(x.size(), y.size()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const int64_t p = i < x.size() ? x[x.size() - 1 - i] : 1, q = i < y.size() ? y[y.size() - 1 - i] : 1;
    CRESSET_CHECK(p == q || p == 1 || q == 1, "The size of tensor a (", p, ") must match the size of tensor b (", q,
                  ") at non-singleton dimension ", out.size() - 1 - i);
    out[out.size() - 1 - i] = p == 1 ? q : p;
  }
  return int_list(out);
}

#define CRESSET_TENSOR_OF(T)                                                                                                          \
  {"aten::tensor." #T "(" #T " t, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor",               \
   CRESSET_BUILTIN((IValue & v, IValue & dtype, IValue & device, bool grad)->Tensor { return new_tensor(v, dtype, device, grad); })}, \
  {                                                                                                                                   \
    "aten::as_tensor." #T "(" #T " t, *, ScalarType? dtype=None, Device? device=None) -> Tensor",                                     \
        CRESSET_BUILTIN((IValue & v, IValue & dtype, IValue & device)->Tensor { return new_tensor(v, dtype, device, false); })        \
  }

#define CRESSET_IS_DEVICE(name, kind) \
  {"prim::is_" #name "(Tensor a) -> bool", CRESSET_BUILTIN((Tensor t)->bool { return t.device().str().rfind(kind, 0) == 0; })}

const BuiltinRow kTensorRows[] = {
    {"aten::Generator(*, Device? device=None, int? seed=None) -> Generator",
     CRESSET_BUILTIN((IValue & device, IValue& seed)->IValue {
       const Generator g = make_generator_for(device.isNone() ? Device(DeviceType::CPU) : device.toDevice());
       if (!seed.isNone()) g.set_current_seed(static_cast<uint64_t>(seed.toInt()));
       return IValue(g);
     }),
     {.side_effects = true}},
    {"aten::manual_seed.generator(Generator(a!) self, int seed) -> Generator(a!)",
     CRESSET_BUILTIN((IValue & g, int64_t seed)->IValue {
       g.toGenerator().set_current_seed(static_cast<uint64_t>(seed));
       return g;
     }),
     {.side_effects = true}},
    {"aten::grad(Tensor[] outputs, Tensor[] inputs, Tensor?[]? grad_outputs=None, bool? retain_graph=None, bool create_graph=False, bool "
     "allow_unused=False) -> Tensor?[]",
     CRESSET_BUILTIN((IValue & outputs, IValue& inputs, IValue& gradients, IValue& retain, bool create, bool allow_unused)->IValue {
       return gradients_of(tensors_of(outputs), tensors_of(inputs), tensors_of(gradients), optional_flag(retain), create, allow_unused);
     }),
     {.side_effects = true}},
    {"aten::backward.TensorList(Tensor[] tensors, Tensor?[]? grad_tensors=None, bool? retain_graph=None, bool create_graph=False) -> ()",
     CRESSET_BUILTIN((IValue & outputs, IValue& gradients, IValue& retain, bool create)->void {
       CRESSET_CHECK(gradient_functions.backward, "aten::backward: this program has no autograd.");
       gradient_functions.backward(tensors_of(outputs), tensors_of(gradients), optional_flag(retain), create);
     }),
     {.side_effects = true}},
    {"aten::einsum.sublist(Tensor a, ...) -> Tensor", &einsum_of_lists},
    {"aten::manual_seed(int seed) -> ()",
     CRESSET_BUILTIN((int64_t seed)->void { cresset::manual_seed(static_cast<uint64_t>(seed)); }),
     {.side_effects = true}},
    {"aten::seed(Generator(a!) self) -> int",
     CRESSET_BUILTIN((IValue & g)->int64_t { return static_cast<int64_t>(g.toGenerator().seed()); }),
     {.side_effects = true}},
    {"aten::initial_seed(Generator self) -> int",
     CRESSET_BUILTIN((IValue & g)->int64_t { return static_cast<int64_t>(g.toGenerator().current_seed()); }),
     {.side_effects = true}},
    {"aten::len.Tensor(Tensor t) -> int", CRESSET_BUILTIN((Tensor t)->int64_t {
       CRESSET_CHECK_TYPE(t.dim() > 0, "len() of a 0-d tensor");
       return t.size(0);
     })},
    {"aten::dim(Tensor self) -> int", CRESSET_BUILTIN((Tensor t)->int64_t { return t.dim(); })},
    {"aten::numel(Tensor self) -> int", CRESSET_BUILTIN((Tensor t)->int64_t { return t.numel(); })},
    {"aten::size.int(Tensor self, int dim) -> int", CRESSET_BUILTIN((Tensor t, int64_t d)->int64_t { return t.size(d); })},
    {"aten::size(Tensor self) -> int[]", CRESSET_BUILTIN((Tensor t)->IValue { return int_list(t.sizes()); })},
    {"aten::stride.int(Tensor self, int dim) -> int", CRESSET_BUILTIN((Tensor t, int64_t d)->int64_t { return t.stride(d); })},
    {"aten::stride(Tensor self) -> int[]", CRESSET_BUILTIN((Tensor t)->IValue { return int_list(t.strides()); })},
    {"aten::storage_offset(Tensor self) -> int", CRESSET_BUILTIN((Tensor t)->int64_t { return t.storage_offset(); })},
    {"aten::element_size(Tensor self) -> int", CRESSET_BUILTIN((Tensor t)->int64_t { return t.element_size(); })},
    {"aten::is_pinned(Tensor self, Device? device=None) -> bool", CRESSET_BUILTIN((Tensor t, IValue&)->bool { return t.is_pinned(); })},
    {"aten::pin_memory(Tensor(a) self, Device? device=None) -> Tensor(a)", CRESSET_BUILTIN((Tensor t, IValue& device)->Tensor {
       return pin_memory(t, device.isNone() ? std::nullopt : std::optional(device.toDevice()));
     })},
    {"aten::is_contiguous(Tensor self) -> bool", CRESSET_BUILTIN((Tensor t)->bool { return t.is_contiguous(); })},
    {"aten::is_floating_point(Tensor self) -> bool", CRESSET_BUILTIN((Tensor t)->bool { return t.is_floating_point(); })},
    {"aten::is_complex(Tensor self) -> bool", CRESSET_BUILTIN((Tensor t)->bool { return t.is_complex(); })},
    {"aten::get_device(Tensor self) -> int", CRESSET_BUILTIN((Tensor t)->int64_t { return t.device().index(); })},
    {"prim::shape(Tensor a) -> int[]", CRESSET_BUILTIN((Tensor t)->IValue { return int_list(t.sizes()); })},
    {"prim::device(Tensor a) -> Device", CRESSET_BUILTIN((Tensor t)->Device { return t.device(); })},
    {"prim::dtype(Tensor a) -> int",
     CRESSET_BUILTIN((Tensor t)->int64_t { return property_or(t, "dtype", static_cast<int64_t>(t.scalar_type())); })},
    {"prim::layout(Tensor a) -> Layout", CRESSET_BUILTIN((Tensor t)->int64_t { return static_cast<int64_t>(t.layout()); })},
    {"prim::requires_grad(Tensor a) -> bool", CRESSET_BUILTIN((Tensor t)->bool { return t.requires_grad(); })},
    {"prim::is_leaf(Tensor a) -> bool", CRESSET_BUILTIN((Tensor t)->bool { return t.is_leaf(); })},
    {"prim::itemsize(Tensor a) -> int", CRESSET_BUILTIN((Tensor t)->int64_t { return t.element_size(); })},
    {"prim::nbytes(Tensor a) -> int", CRESSET_BUILTIN((Tensor t)->int64_t { return static_cast<int64_t>(t.nbytes()); })},
    {"prim::ndim(Tensor a) -> int", CRESSET_BUILTIN((Tensor t)->int64_t { return t.dim(); })},
    {"prim::T(Tensor(a) a) -> Tensor(a)", CRESSET_BUILTIN((Tensor t)->Tensor {
       std::vector<int64_t> order;
       for (int64_t d = t.dim(); d-- > 0;) order.push_back(d);
       return t.permute(order);
     })},
    {"prim::mT(Tensor(a) a) -> Tensor(a)", CRESSET_BUILTIN((Tensor t)->Tensor { return t.transpose(-2, -1); })},
    {"prim::H(Tensor(a) a) -> Tensor(a)", CRESSET_BUILTIN((Tensor t)->Tensor {
       const Tensor s = t.dim() == 0 ? t : t.transpose(0, 1);
       return t.is_complex() ? s.conj() : s;
     })},
    {"prim::mH(Tensor(a) a) -> Tensor(a)", CRESSET_BUILTIN((Tensor t)->Tensor {
       const Tensor s = t.transpose(-2, -1);
       return t.is_complex() ? s.conj() : s;
     })},
    {"prim::data(Tensor(a) a) -> Tensor(a)", CRESSET_BUILTIN((Tensor t)->Tensor { return t.detach(); })},
    {"prim::grad(Tensor a) -> Tensor(*)", CRESSET_BUILTIN((Tensor t)->IValue {
       const Tensor g = t.grad();
       return g.defined() ? IValue(g) : IValue();
     })},
    {"prim::tolist(Tensor a, int dim, int elem) -> Any",
     CRESSET_BUILTIN((Tensor t, int64_t dims, int64_t kind)->IValue { return to_list(t.cpu(), dims, kind); })},
    {"prim::name(Tensor a) -> str?", CRESSET_BUILTIN((Tensor)->IValue { return IValue(); })},
    {"prim::is_cpu(Tensor a) -> bool", CRESSET_BUILTIN((Tensor t)->bool { return t.is_cpu(); })},
    CRESSET_IS_DEVICE(cuda, "cuda"),
    CRESSET_IS_DEVICE(meta, "meta"),
    CRESSET_IS_DEVICE(xpu, "xpu"),
    CRESSET_IS_DEVICE(mps, "mps"),
    CRESSET_IS_DEVICE(xla, "xla"),
    CRESSET_IS_DEVICE(vulkan, "vulkan"),
    CRESSET_IS_DEVICE(ipu, "ipu"),
    CRESSET_IS_DEVICE(hpu, "hpu"),
    CRESSET_IS_DEVICE(maia, "maia"),
    CRESSET_IS_DEVICE(mtia, "mtia"),
    {"prim::is_sparse(Tensor a) -> bool", CRESSET_BUILTIN((Tensor t)->bool { return t.layout() == Layout::Sparse; })},
    {"prim::is_sparse_csr(Tensor a) -> bool", CRESSET_BUILTIN((Tensor t)->bool { return t.layout() == Layout::SparseCsr; })},
    {"prim::is_quantized(Tensor a) -> bool", CRESSET_BUILTIN((Tensor t)->bool { return property_or(t, "is_quantized", 0) != 0; })},
    {"prim::is_mkldnn(Tensor a) -> bool", CRESSET_BUILTIN((Tensor t)->bool { return property_or(t, "is_mkldnn", 0) != 0; })},
    {"prim::is_nested(Tensor a) -> bool", CRESSET_BUILTIN((Tensor t)->bool { return property_or(t, "is_nested", 0) != 0; })},
    {"aten::_nested_tensor_from_mask_left_aligned(Tensor t, Tensor mask) -> bool",
     CRESSET_BUILTIN((Tensor t, Tensor mask)->bool { return left_aligned(t, mask); })},
    {"aten::_nested_tensor_from_mask(Tensor t, Tensor mask, bool mask_check=True) -> Tensor",
     CRESSET_BUILTIN((Tensor, Tensor, bool)->Tensor { no_nested("_nested_tensor_from_mask"); })},
    {"aten::to_padded_tensor(Tensor self, float padding, int[]? output_size=None) -> Tensor",
     CRESSET_BUILTIN((Tensor, double, IValue&)->Tensor { no_nested("to_padded_tensor"); })},
    {"prim::type(Device self) -> str", CRESSET_BUILTIN((IValue & d)->std::string {
       const std::string text = d.toDevice().str();
       return text.substr(0, text.find(':'));
     })},
    {"prim::index(Device self) -> int?", CRESSET_BUILTIN((IValue & d)->IValue {
       return d.toDevice().has_index() ? IValue(static_cast<int64_t>(d.toDevice().index())) : IValue();
     })},
    {"aten::device(str a) -> Device", CRESSET_BUILTIN((Text s)->Device { return Device(s); })},
    {"aten::device.with_index(str type, int index) -> Device",
     CRESSET_BUILTIN((Text s, int64_t i)->Device { return Device(s + ":" + std::to_string(i)); })},
    {"aten::Int.Tensor(Tensor a) -> int", CRESSET_BUILTIN((Tensor t)->int64_t { return to_integer(single(t)); })},
    {"aten::Float.Tensor(Tensor a) -> float", CRESSET_BUILTIN((Tensor t)->double { return single(t).toDouble(); })},
    {"aten::Bool.Tensor(Tensor a) -> bool", CRESSET_BUILTIN((Tensor t)->bool { return t.is_nonzero(); })},
    {"aten::Complex.Tensor_Tensor(Tensor a, Tensor b) -> complex",
     CRESSET_BUILTIN((Tensor a, Tensor b)->Complex { return {single(a).toDouble(), single(b).toDouble()}; })},
    {"aten::Complex.Tensor_float(Tensor x, float y) -> complex",
     CRESSET_BUILTIN((Tensor a, double b)->Complex { return {single(a).toDouble(), b}; })},
    {"aten::Complex.float_Tensor(float x, Tensor y) -> complex",
     CRESSET_BUILTIN((double a, Tensor b)->Complex { return {a, single(b).toDouble()}; })},
    {"aten::Complex.Tensor_int(Tensor x, int y) -> complex",
     CRESSET_BUILTIN((Tensor a, double b)->Complex { return {single(a).toDouble(), b}; })},
    {"aten::Complex.int_Tensor(int x, Tensor y) -> complex",
     CRESSET_BUILTIN((double a, Tensor b)->Complex { return {a, single(b).toDouble()}; })},
    {"aten::Complex.Tensor_bool(Tensor x, bool y) -> complex",
     CRESSET_BUILTIN((Tensor a, bool b)->Complex { return {single(a).toDouble(), double(b)}; })},
    {"aten::Complex.bool_Tensor(bool x, Tensor y) -> complex",
     CRESSET_BUILTIN((bool a, Tensor b)->Complex { return {double(a), single(b).toDouble()}; })},
    {"aten::IntImplicit(Tensor a) -> int", CRESSET_BUILTIN((Tensor t)->int64_t {
       CRESSET_CHECK(isIntegralType(t.scalar_type()), "Cannot input a tensor of type ", to_string(t.scalar_type()),
                     " as an integral argument");
       return implicit(t, "int").toLong();
     })},
    {"aten::FloatImplicit(Tensor a) -> float", CRESSET_BUILTIN((Tensor t)->double { return implicit(t, "float").toDouble(); })},
    {"aten::ComplexImplicit(Tensor a) -> complex",
     CRESSET_BUILTIN((Tensor t)->Complex { return implicit(t, "complex").toComplexDouble(); })},
    {"aten::ScalarImplicit(Tensor a) -> Scalar", CRESSET_BUILTIN((Tensor t)->Scalar { return implicit(t, "Scalar"); })},
    {"prim::NumToTensor.Scalar(Scalar a) -> Tensor",
     CRESSET_BUILTIN((Scalar s)->Tensor { return cresset::scalar_tensor(s, s.type(), {}, {}, {}); })},
    {"prim::NumToTensor.bool(bool a) -> Tensor",
     CRESSET_BUILTIN((bool v)->Tensor { return cresset::scalar_tensor(Scalar(v), ScalarType::Bool, {}, {}, {}); })},
    CRESSET_TENSOR_OF(bool),
    CRESSET_TENSOR_OF(float),
    CRESSET_TENSOR_OF(int),
    CRESSET_TENSOR_OF(complex),
    {"aten::tensor(t[] data, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor",
     CRESSET_BUILTIN((IValue & v, IValue& dtype, IValue& device, bool grad)->Tensor { return new_tensor(v, dtype, device, grad); })},
    {"aten::as_tensor(Tensor(a) data, *, ScalarType? dtype=None, Device? device=None) -> Tensor(b|a)",
     CRESSET_BUILTIN((Tensor t, IValue& dtype, IValue& device)->Tensor { return converted(t, dtype, device); })},
    {"aten::as_tensor.list(t[] data, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
     CRESSET_BUILTIN((IValue & v, IValue& dtype, IValue& device)->Tensor { return new_tensor(v, dtype, device, false); })},
    {"aten::_infer_size(int[] a, int[] b) -> int[]", CRESSET_BUILTIN((IValue & a, IValue& b)->IValue { return broadcast_sizes(a, b); })},
    {"aten::to.prim_Device(Tensor(a) self, Device? device, int? dtype=None, bool non_blocking=False, bool copy=False) -> Tensor(b|a)",
     CRESSET_BUILTIN((Tensor t, IValue& device, IValue& dtype, bool non_blocking, bool copy)->Tensor {
       return cresset::to(t, dtype.isNone() ? std::nullopt : std::optional(dtype.toScalarType()), std::nullopt,
                          device.isNone() ? std::nullopt : std::optional(device.toDevice()), std::nullopt, non_blocking, copy,
                          std::nullopt);
     })},
    {"aten::to.prim_dtype(Tensor(a) self, int? dtype=None, bool non_blocking=False, bool copy=False) -> Tensor(b|a)",
     CRESSET_BUILTIN((Tensor t, IValue& dtype, bool non_blocking, bool copy)->Tensor {
       return cresset::to(t, dtype.isNone() ? std::nullopt : std::optional(dtype.toScalarType()), std::nullopt, std::nullopt, std::nullopt,
                          non_blocking, copy, std::nullopt);
     })},
    {"aten::to.prim_other(Tensor(a) self, bool non_blocking=False, bool copy=False) -> Tensor(b|a)",
     CRESSET_BUILTIN((Tensor t, bool, bool copy)->Tensor { return copy ? t.clone() : t; })},
    {"aten::cpu(Tensor(a) self) -> Tensor(b|a)", CRESSET_BUILTIN((Tensor t)->Tensor { return t.to(Device("cpu")); })},
    {"aten::cuda(Tensor(a) self) -> Tensor(b|a)", CRESSET_BUILTIN((Tensor t)->Tensor { return t.to(Device("cuda")); })},
    {"aten::requires_grad_(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!)",
     CRESSET_BUILTIN((Tensor t, bool on)->Tensor { return t.set_requires_grad(on); })},
    {"aten::backward(Tensor self, Tensor? gradient=None, bool? retain_graph=None, bool create_graph=False) -> ()",
     CRESSET_BUILTIN((Tensor t, IValue& gradient, IValue& retain, bool create)->void {
       t.backward(gradient.isNone() ? Tensor() : gradient.toTensor(),
                  retain.isNone() ? std::optional<bool>() : std::optional(retain.toBool()), create);
     }),
     {.side_effects = true}},
};

}  // namespace
}  // namespace builtin

void set_gradient_functions(const GradientFunctions& functions) { builtin::gradient_functions = functions; }
void set_class_property(ClassProperty property) { builtin::class_property = property; }

void register_tensor_builtins(const AddRows& add) { add(builtin::kTensorRows, std::size(builtin::kTensorRows)); }

}  // namespace cresset::jit
