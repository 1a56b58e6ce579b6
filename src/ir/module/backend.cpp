// What backends make of modules, by their names.
#include <cresset/base/fork.h>
#include <cresset/ir/backend.h>

#include <atomic>
#include <map>
#include <mutex>

namespace cresset::jit {
namespace {

// Never destroyed: libraries register while they are loaded, and modules are made until the end.
struct Preprocessors {
  ForkSafe<std::mutex> mutex;
  std::map<std::string, BackendPreprocessFunction> by_name;
};
Preprocessors& preprocessors() {
  static auto* all = new Preprocessors;
  return *all;
}

NodeToDebugHandle numbered(const std::shared_ptr<Graph>& graph) {
  static std::atomic<int64_t> next{0};
  NodeToDebugHandle out;
  graph->block()->visit([&](Node* n) { out[n] = next++; });
  return out;
}

}  // namespace

void register_backend_preprocess(const std::string& name, BackendPreprocessFunction function) {
  Preprocessors& all = preprocessors();
  const std::lock_guard lock(all.mutex);
  CRESSET_CHECK(all.by_name.emplace(name, std::move(function)).second, "Preprocess function for backend ", name, " is already registered.");
}

IValue backend_preprocess(const std::string& name, const Module& module, const Dict<IValue, IValue>& method_compile_spec) {
  BackendPreprocessFunction function;
  {
    Preprocessors& all = preprocessors();
    const std::lock_guard lock(all.mutex);
    const auto found = all.by_name.find(name);
    CRESSET_CHECK(found != all.by_name.end(), "Cannot find preprocess function for backend ", name);
    function = found->second;
  }
  return function(module, method_compile_spec, numbered);
}

}  // namespace cresset::jit
