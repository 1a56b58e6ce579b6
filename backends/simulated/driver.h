/* The driver of the device, as a communication library of the vendor sees it: what is not in the table of a backend, which the library
 * reaches through streams and events. A library loads it by the path of the device's library and the symbol `simulated_driver_entry`. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct simulated_external simulated_external;

typedef struct simulated_driver {
  /* A queue that only its maker puts work into. */
  uint64_t (*make_queue)(int device, int priority);
  /* The address at which device memory is seen from inside the device; null outside of a block. */
  char* (*address)(const void* data, size_t offset, size_t nbytes);
  /* Puts work of another library into a queue. The device calls start(arg, work) when the queue comes there; start returns at once, and
   * the queue goes on after finish(work, error), from any thread, once. Other queues go on meanwhile. 0, or -1 where the queue is being
   * recorded. */
  int (*submit_external)(int device, uint64_t queue, void (*start)(void* arg, simulated_external* work), void* arg);
  /* With an error, a text, the queue has failed, as after a kernel that fails; null: it has not. */
  void (*finish)(simulated_external* work, const char* error);
  /* A failure before here concerns only queues that waited for an event in between. */
  void (*forget_failure)(int device, uint64_t queue);
  /* In front of a transfer: the fault `transfer_delay`. */
  void (*before_transfer)(void);
} simulated_driver;

const simulated_driver* simulated_driver_entry(void);

#ifdef __cplusplus
}
#endif
