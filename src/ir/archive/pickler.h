// Values of scripts as pickles, in the form PyTorch writes them (protocol 2).
#pragma once

#include <functional>
#include <string>

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

/// Raises for values that archives cannot hold, naming their place ("module.layers.0").
std::string pickle(const IValue& v, const PicklerHooks& hooks);

}  // namespace cresset::jit
