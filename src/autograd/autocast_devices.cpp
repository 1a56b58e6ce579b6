// Autocast on devices of backends: their own lists of operators, or the policies of the table.
#include <map>
#include <memory>
#include <mutex>

#include <cresset/base/fork.h>
#include <cresset/base/warn_always.h>
#include <cresset/core/backend.h>
#include <cresset/dispatch/dispatcher.h>

#include "autograd/autocast_kernels.h"
#include "dispatch/backend_default.h"

namespace cresset::autocast {
namespace {

const cresset_autocast* rules_of(DeviceType device) {
  const cresset_backend* table = backend_table(device);
  return table ? table->autocast : nullptr;
}

class Installer {
 public:
  explicit Installer(DeviceType device) : device_(device), key_(autocastKey(device)) {}

  void add(const OperatorHandle& op, Policy policy) {
    if (op.hasKernelForDispatchKey(key_)) return;
    handles_.push_back(Dispatcher::singleton().registerImpl(op.operator_name(), key_, make_kernel(policy, device_), std::nullopt, nullptr,
                                                            str(kBackendDefault, ": autocast of ", DeviceTypeName(device_))));
  }

  /// Names without overload, up to a null.
  void add_list(const char* const* names, Policy policy) {
    for (; names && *names; ++names) {
      const std::vector<OperatorHandle> overloads = Dispatcher::singleton().overloadsOf(*names);
      if (overloads.empty())
        CRESSET_WARN_FIRST("The autocast lists of backend '", DeviceTypeName(device_), "' name ", *names, ", which is no operator.");
      for (const OperatorHandle& op : overloads)
        if (!op.schema().is_mutable()) add(op, policy);
    }
  }

 private:
  DeviceType device_;
  DispatchKey key_;
  std::vector<RegistrationHandleRAII> handles_;
};

}  // namespace

std::optional<ScalarType> default_dtype_of_backend(DeviceType device) {
  const cresset_autocast* rules = rules_of(device);
  return rules ? std::optional(static_cast<ScalarType>(rules->default_dtype)) : std::nullopt;
}

void install_policies(DeviceType device) {
  static ForkSafe<std::mutex> mutex;
  static auto* installed = new std::map<DeviceType, std::unique_ptr<Installer>>;
  const std::lock_guard lock(mutex);
  if (installed->contains(device)) return;
  auto& installer = *((*installed)[device] = std::make_unique<Installer>(device));
  if (const cresset_autocast* rules = rules_of(device); rules && rules->lower_precision) {
    installer.add_list(rules->lower_precision, Policy::LowerPrecision);
    installer.add_list(rules->float32, Policy::Float32);
    installer.add_list(rules->widest, Policy::Promote);
    return;
  }
  for (const PolicyRow& row : policies())
    if (const auto op = Dispatcher::singleton().findOp(parse_operator_name(row.name))) installer.add(*op, row.policy);
}

}  // namespace cresset::autocast
