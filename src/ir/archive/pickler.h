// Values of scripts as pickles, in the form PyTorch writes them (protocol 2).
#pragma once

#include <array>
#include <functional>
#include <string>

#include <cresset/core/layout.h>
#include <cresset/dispatch/ivalue.h>

namespace cresset::jit {

struct PicklerHooks {
  /// The name under which a class or enum stands in the archive ("__torch__.Foo").
  std::function<std::string(const TypePtr& type)> type_name;
  /// A type as restore_type_tag reads it, with the names of type_name.
  std::function<std::string(const TypePtr& type)> annotation;
  /// The key of a tensor's storage; the owner writes the storage.
  std::function<std::string(const Tensor& t)> storage_key;
};

inline bool is_sparse_layout(Layout layout) { return layout == Layout::Sparse || layout == Layout::SparseCsr; }
/// Calls an operator for tensors that the Python package defines (`what`: "sparse tensors"); an error says so where it is not loaded.
Stack call_python_operator(const char* name, const char* overload, Stack stack, const char* what);
/// A tensor → (numbers, scales, zero points, axis): axis is -1 for one scale and zero point, -2 for what is not quantized; and back.
inline constexpr const char *kQuantizedParts = "_quantized::parts", *kQuantizedOfParts = "_quantized::of_parts";
/// The names under which pickles know how a tensor is quantized: by one scale, by one for each channel, by those with floating zero points.
inline constexpr std::array<const char*, 3> quantization_schemes() {
  return {"per_tensor_affine", "per_channel_affine", "per_channel_affine_float_qparams"};
}

/// Raises for values that archives cannot hold, naming their place ("module.layers.0").
std::string pickle(const IValue& v, const PicklerHooks& hooks);

}  // namespace cresset::jit
