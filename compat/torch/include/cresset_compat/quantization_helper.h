// Names of classes and children of modules, as PyTorch's quantization passes (and converters of models) ask for them.
#pragma once

#include <cresset_compat/script.h>

#include <cresset/ir/class_type.h>

namespace torch::jit {

/// A class's name without the segments that make it unique: "__torch__.a.___torch_mangle_3.B" is "__torch__.a.B".
inline std::string removeTorchMangle(const std::string& name) {
  return (name.starts_with("__torch__.") ? "__torch__." : "") + cresset::jit::unmangled_name(name);
}

/// The child at a path of attribute names; the module itself for none.
inline Module findChildModule(const Module& module, const std::vector<std::string>& path) {
  Module found = module;
  for (const std::string& name : path) found = found.attr(name).toModule();
  return found;
}

}  // namespace torch::jit
