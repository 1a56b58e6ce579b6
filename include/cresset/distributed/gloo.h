// The backend that runs on Gloo.
#pragma once

#include <functional>

#include <cresset/distributed/backend.h>

namespace cresset::distributed {

struct CRESSET_API GlooOptions final : Backend::Options {
  explicit GlooOptions(std::chrono::milliseconds timeout = kBackendDefaultTimeout) : Options("gloo", timeout) {}
  ~GlooOptions() override;
  /// Threads for asynchronous collectives.
  int threads = 2;
  /// Who does asynchronous collectives, in place of those threads: gets each, when its arguments have been checked, as a function to be
  /// called once, on any thread, while the group lives. Called in the order in which the group was. Messages between two ranks are not.
  std::function<void(std::function<void()>)> run;
  /// The network interface, or the address of this host on it; empty: GLOO_SOCKET_IFNAME, else the host's name, else the loopback.
  std::string interface, hostname;
};

/// The class by which the backend is known.
class CRESSET_API GlooBackend : public Backend {
 public:
  using Backend::Backend;
  ~GlooBackend() override;
  virtual const intrusive_ptr<GlooOptions>& options() const = 0;
};

/// Connects this rank with all others, which must make the same call with a store that they share.
CRESSET_API intrusive_ptr<GlooBackend> make_gloo(const intrusive_ptr<Store>& store, int rank, int size,
                                                 const intrusive_ptr<GlooOptions>& options);

}  // namespace cresset::distributed
