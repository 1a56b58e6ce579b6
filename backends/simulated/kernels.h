// Operators that run on the device's worker.
#pragma once

#include <cresset/core/backend_table.h>
#include <cresset/dispatch/dispatcher.h>

namespace simulated {

/// Allocates the results, or gives those that are arguments their sizes, as the Meta backend says they are, and puts the work into the
/// current queue of the device.
void run_on_device(const cresset::OperatorHandle& op, cresset::Stack* stack);
/// Puts a copy between layouts and types into the queue. False when a type is none of the library's.
bool copy_elements(const cresset_strided_copy& c);

}  // namespace simulated
