// Autocast: the thin functions that the Python classes are made of.
#include <cresset/autograd/autocast.h>

#include "python/bind.h"
#include "python/dispatch.h"

namespace cresset::python {

namespace {

DeviceType device_type_of(const std::string& name) { return Device(name).type(); }

}  // namespace

void init_autocast(PyObject* module) {
  def(module, "is_autocast_enabled", [](std::string device) { return autocast::is_autocast_enabled(device_type_of(device)); });
  def(module, "_is_any_autocast_enabled", [] { return autocast::is_any_autocast_enabled(); });
  def(module, "set_autocast_enabled",
      [](std::string device, bool enabled) { autocast::set_autocast_enabled(device_type_of(device), enabled); });
  def(module, "get_autocast_dtype", [](std::string device) { return autocast::get_autocast_dtype(device_type_of(device)); });
  def(module, "set_autocast_dtype",
      [](std::string device, ScalarType dtype) { autocast::set_autocast_dtype(device_type_of(device), dtype); });
  def(module, "is_autocast_cache_enabled", [] { return autocast::is_autocast_cache_enabled(); });
  def(module, "set_autocast_cache_enabled", [](bool enabled) { autocast::set_autocast_cache_enabled(enabled); });
  def(module, "clear_autocast_cache", [] { autocast::clear_cache(); });
  def(module, "autocast_increment_nesting", [] { return static_cast<int64_t>(autocast::increment_nesting()); });
  def(module, "autocast_decrement_nesting", [] { return static_cast<int64_t>(autocast::decrement_nesting()); });
  def(module, "_cached_cast", [](ScalarType to, Tensor t, std::string device) {
    const DeviceType type = device_type_of(device);
    return without_lock(may_wait(t), [&] { return autocast::cached_cast(to, t, type); });
  });
}

}  // namespace cresset::python
