// Operators that run on the device's worker.
#pragma once

#include <cresset/dispatch/dispatcher.h>

namespace simulated {

/// Allocates the results, as the Meta backend says they are, and puts the work into the current queue of the device.
void run_on_device(const cresset::OperatorHandle& op, cresset::Stack* stack);

}  // namespace simulated
