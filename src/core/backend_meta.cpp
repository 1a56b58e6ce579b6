// The functions by which files keep what backends attach to tensors.
#include <cresset/base/fork.h>
#include <cresset/core/backend_meta.h>
#include <cresset/core/tensor.h>

#include <map>
#include <mutex>

namespace cresset {
namespace {

struct Functions {
  BackendMetaFunction save, load;
};
struct MetaRegistry {
  ForkSafe<std::mutex> mutex;
  std::map<DeviceType, Functions> by_type;
};
MetaRegistry& meta_registry() {
  static auto* r = new MetaRegistry;
  return *r;
}
Functions functions_of(DeviceType type) {
  MetaRegistry& r = meta_registry();
  const std::lock_guard lock(r.mutex);
  const auto at = r.by_type.find(type);
  return at == r.by_type.end() ? Functions() : at->second;
}

}  // namespace

void register_backend_meta_functions(DeviceType type, BackendMetaFunction save, BackendMetaFunction load) {
  CRESSET_CHECK(save && load, "register_backend_meta_functions: two functions were required.");
  MetaRegistry& r = meta_registry();
  const std::lock_guard lock(r.mutex);
  CRESSET_CHECK(r.by_type.emplace(type, Functions{std::move(save), std::move(load)}).second,
                "The tensor BackendMeta serialization function pointer for ", DeviceTypeName(type), " has been registered.");
}

BackendMetaFacts backend_meta_facts(const Tensor& t) {
  BackendMetaFacts facts;
  if (const Functions f = functions_of(t.device().type()); f.save) f.save(t, facts);
  return facts;
}

void restore_backend_meta(const Tensor& t, BackendMetaFacts facts) {
  if (const Functions f = functions_of(t.device().type()); f.load) f.load(t, facts);
}

}  // namespace cresset
