// Names of classes and children of modules, as PyTorch's quantization passes (and converters of models) ask for them.
#pragma once

#include <cresset_compat/script.h>

#include <regex>

namespace torch::jit {

/// A class's name without the segments that make it unique: "__torch__.a.___torch_mangle_3.B" is "__torch__.a.B".
inline std::string removeTorchMangle(const std::string& name) {
  static const std::regex mangle("\\.___torch_mangle_\\d+");
  return std::regex_replace(name, mangle, "");
}

/// The child at a path of attribute names; the module itself for none.
inline Module findChildModule(const Module& module, const std::vector<std::string>& path) {
  Module found = module;
  for (const std::string& name : path) found = found.attr(name).toModule();
  return found;
}

}  // namespace torch::jit
