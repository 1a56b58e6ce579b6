// Collectives of tensors on devices that no backend serves: by copies in this host's memory and the backend of the CPU.
#pragma once

#include <cresset/distributed/backend.h>

namespace cresset::distributed {

/// Each call copies its tensors to the host, which waits for the device, and runs on `host`; results go back, in the order of the device's
/// current queue, when the work is waited for.
class HostStaging final : public Backend {
 public:
  explicit HostStaging(intrusive_ptr<Backend> host) : Backend(host->getRank(), host->getSize()), host_(std::move(host)) {}
  ~HostStaging() override;
  const std::string getBackendName() const override { return host_->getBackendName(); }
#define CRESSET_DECLARE(name, parameters, arguments) intrusive_ptr<Work> name parameters override;
  CRESSET_COLLECTIVES(CRESSET_DECLARE)
#undef CRESSET_DECLARE

 private:
  const intrusive_ptr<Backend> host_;
};

}  // namespace cresset::distributed
