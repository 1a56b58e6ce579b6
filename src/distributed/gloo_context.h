// Connections of Gloo between the ranks of a group, and which rank an error of Gloo speaks of.
#pragma once

#include <gloo/context.h>
#include <gloo/rendezvous/context.h>
#include <gloo/transport/device.h>

#include <cresset/distributed/gloo.h>

namespace cresset::distributed {

struct GlooConnections {
  std::shared_ptr<gloo::Context> context;
  std::vector<std::string> addresses;  // of each rank, as errors of Gloo name it
};

/// Connects with all others through the store; raises DistBackendError when one does not come in time.
GlooConnections connect_gloo(const intrusive_ptr<Store>& store, int rank, int size, const GlooOptions& options);

}  // namespace cresset::distributed
