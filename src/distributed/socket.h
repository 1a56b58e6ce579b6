// Sockets of the TCP store: listening, connecting and whole messages, each a length and that many bytes.
#pragma once

#include <chrono>
#include <string>

#include "distributed/bytes.h"

namespace cresset::distributed {

/// Owns a descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~Descriptor();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

/// A socket that listens on all addresses of this host, IPv6 and IPv4; port 0 takes a free one. DistNetworkError where it cannot.
Descriptor listen_on(uint16_t port);
uint16_t port_of(int socket);
/// "[name]:port" of this end of a connection, or of the other.
std::string address_of(int socket, bool other_end);
/// Tries until the timeout; DistNetworkError then. Signals stop it.
Descriptor connect_to(const std::string& host, uint16_t port, std::chrono::milliseconds timeout);
/// One message. DistNetworkError where the connection breaks, or the other side takes longer than `timeout` (0: no limit). Signals stop it.
void send_message(int socket, const Store::Bytes& body, std::chrono::milliseconds timeout);
Store::Bytes receive_message(int socket, std::chrono::milliseconds timeout);
/// Bytes without a length in front, with the same errors.
void send_bytes(int socket, const uint8_t* from, std::size_t size, std::chrono::milliseconds timeout);
void receive_bytes(int socket, uint8_t* to, std::size_t size, std::chrono::milliseconds timeout);

constexpr uint32_t kMostBytes = 1u << 30;  // of a message

}  // namespace cresset::distributed
