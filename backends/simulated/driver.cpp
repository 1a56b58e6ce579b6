#include "driver.h"

#include <memory>

#include "faults.h"
#include "memory.h"
#include "queue.h"

struct simulated_external {
  std::shared_ptr<simulated::External> work;
};

namespace {

int submit_external(int device, uint64_t queue, void (*start)(void*, simulated_external*), void* arg) {
  simulated::enter();
  if (simulated::is_recording(device, queue)) return -1;
  auto* const handle = new simulated_external{std::make_shared<simulated::External>()};  // until finish()
  simulated::submit_external(device, queue, handle->work, [start, arg, handle] { start(arg, handle); });
  return 0;
}
void finish(simulated_external* handle, const char* error) {
  simulated::finish_external(*handle->work, error ? error : "");
  delete handle;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const simulated_driver* simulated_driver_entry(void) {
  static constexpr simulated_driver driver{simulated::make_queue,     simulated::device_address, submit_external, finish,
                                           simulated::forget_failure, simulated::delay_transfer};
  return &driver;
}
