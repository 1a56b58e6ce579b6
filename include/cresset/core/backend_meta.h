// What files keep of the data that a backend attaches to its tensors (BackendMeta).
#pragma once

#include <functional>
#include <string>
#include <unordered_map>

#include <cresset/core/tensor_base.h>

namespace cresset {

/// Named facts about a tensor's BackendMeta: written by the first function of a kind, read by the second.
using BackendMetaFacts = std::unordered_map<std::string, bool>;
using BackendMetaFunction = std::function<void(const Tensor&, BackendMetaFacts&)>;

/// Both functions of a device kind, once.
CRESSET_API void register_backend_meta_functions(DeviceType type, BackendMetaFunction save, BackendMetaFunction load);
/// The facts of a tensor; none when its kind has no functions.
CRESSET_API BackendMetaFacts backend_meta_facts(const Tensor& t);
/// Gives a tensor that was read the facts of the one that was written. Ignored when the tensor's kind has no functions.
CRESSET_API void restore_backend_meta(const Tensor& t, BackendMetaFacts facts);

}  // namespace cresset
