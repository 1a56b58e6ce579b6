// Inputs of recorded calls: sizes, strides and types of tensors, values of everything that is small.
#include "dispatch/profiler_inputs.h"

namespace cresset::profiler {
namespace {

constexpr std::size_t kLongestList = 64;  // longer lists of numbers are kept without their values

/// The words that traces use: those of C++.
const char* type_word(ScalarType t) {
  switch (t) {
    case ScalarType::Byte: return "unsigned char";
    case ScalarType::Char: return "signed char";
    case ScalarType::Short: return "short int";
    case ScalarType::Int: return "int";
    case ScalarType::Long: return "long int";
    case ScalarType::Half: return "c10::Half";
    case ScalarType::Float: return "float";
    case ScalarType::Double: return "double";
    case ScalarType::ComplexHalf: return "c10::complex<c10::Half>";
    case ScalarType::ComplexFloat: return "c10::complex<float>";
    case ScalarType::ComplexDouble: return "c10::complex<double>";
    case ScalarType::Bool: return "bool";
    case ScalarType::BFloat16: return "c10::BFloat16";
    default: return toString(t);
  }
}

bool is_number(const IValue& v) { return v.isInt() || v.isDouble() || v.isBool() || v.isComplexDouble(); }

/// Batched and wrapped tensors are asked like any other.
TensorInput describe_tensor(const Tensor& t) {
  TensorInput out;
  if (!t.defined()) return out;
  out.sizes = t.sizes().vec();
  out.dtype = t.scalar_type();
  out.layout = t.layout();
  out.device = t.device();
  out.impl = weak_intrusive_ptr<TensorImpl>(t.getIntrusivePtr());
  out.impl_address = t.unsafeGetTensorImpl();
  if (t.has_storage()) {
    out.strides = t.strides().vec();
    out.data = t.storage().data();
    out.storage = t.storage().unsafeGetStorageImpl();
    out.offset = t.storage_offset();
  }
  out.numel = t.numel();
  return out;
}

Input describe(const IValue& v) {
  Input out;
  if (v.isTensor()) {
    const Tensor& t = v.toTensor();
    if (!t.defined()) return out;
    out.tensors.push_back(describe_tensor(t));
    out.type = type_word(t.scalar_type());
  } else if (v.isList()) {
    const std::vector<IValue>& elements = v.toListRef();
    if (!elements.empty() && elements.front().isTensor()) {
      out.type = "TensorList";
      for (const IValue& e : elements) out.tensors.push_back(describe_tensor(e.isTensor() ? e.toTensor() : Tensor()));
    } else if (elements.empty() || is_number(elements.front())) {
      out.type = "ScalarList";
      if (elements.size() <= kLongestList) out.value = v;
    }
  } else if (is_number(v)) {
    out.type = "Scalar";
    out.value = v;
  }
  return out;
}

ObservedValue describe_value(const IValue& v) {
  ObservedValue out;
  out.kind = v.tagKind();
  if (v.isTensor()) {
    if (v.toTensor().defined()) {
      out.tensor = describe_tensor(v.toTensor());
      out.kind = str("Tensor(", type_word(out.tensor->dtype), ")");
    }
  } else if (v.isList()) {
    out.elements = describe_values(v.toListRef());
  } else if (v.isTuple()) {
    out.elements = describe_values(v.toTupleRef().elements());
  } else if (is_number(v) || v.isString() || v.isDevice()) {
    out.value = v;
  }
  return out;
}

}  // namespace

std::vector<ObservedValue> describe_values(ArrayRef<IValue> values) {
  std::vector<ObservedValue> out;
  out.reserve(values.size());
  for (const IValue& v : values) out.push_back(describe_value(v));
  return out;
}

std::vector<Input> describe_inputs(ArrayRef<IValue> values) {
  std::vector<Input> out;
  out.reserve(values.size());
  for (const IValue& v : values) out.push_back(describe(v));
  return out;
}

}  // namespace cresset::profiler
