// The server of a TCP store: one thread that owns all keys and all connections.
#pragma once

#include <cstdint>

#include "distributed/of_this_process.h"
#include "distributed/socket.h"

namespace cresset::distributed {

class TcpServer {
 public:
  explicit TcpServer(Descriptor listening);
  ~TcpServer();
  uint16_t port() const { return port_; }

 private:
  struct Loop;
  const uint16_t port_;
  OfThisProcess<Loop> loop_;
};

}  // namespace cresset::distributed
