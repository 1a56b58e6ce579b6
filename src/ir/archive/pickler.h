// Values of scripts as pickles, in the form PyTorch writes them (protocol 2).
#pragma once

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
/// Calls an operator of sparse tensors, which Python's package cresset.sparse defines; an error says so where it is not loaded.
Stack call_sparse_operator(const char* name, const char* overload, Stack stack);

/// Raises for values that archives cannot hold, naming their place ("module.layers.0").
std::string pickle(const IValue& v, const PicklerHooks& hooks);

}  // namespace cresset::jit
