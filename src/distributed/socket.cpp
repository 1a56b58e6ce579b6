#include "distributed/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <memory>
#include <thread>

#include "distributed/wait_slices.h"

namespace cresset::distributed {

namespace {

void set_options(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

/// Waits for `events` in slices; false after the deadline.
bool wait_ready(int fd, short events, std::chrono::steady_clock::time_point deadline) {
  for (;;) {
    pollfd p{fd, events, 0};
    const int n = poll(&p, 1, static_cast<int>(kSlice.count()));
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) CRESSET_THROW(DistNetworkError, "poll failed: ", std::strerror(errno));
    if (std::chrono::steady_clock::now() >= deadline) return false;
    check_signals();
  }
}

Descriptor try_connect(const std::string& host, uint16_t port, std::chrono::steady_clock::time_point deadline) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return Descriptor();
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(found, freeaddrinfo);
  for (const addrinfo* a = found; a; a = a->ai_next) {
    Descriptor fd(socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol));
    if (!fd) continue;
    if (connect(fd.get(), a->ai_addr, a->ai_addrlen) != 0) {
      if (errno != EINPROGRESS || !wait_ready(fd.get(), POLLOUT, deadline)) continue;
      int error = 0;
      socklen_t size = sizeof error;
      getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) continue;
    }
    fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
    set_options(fd.get());
    return fd;
  }
  return Descriptor();
}

void receive_all(int socket, void* to, std::size_t size, std::chrono::steady_clock::time_point deadline) {
  auto* p = static_cast<uint8_t*>(to);
  while (size > 0) {
    CRESSET_CHECK_AS(DistNetworkError, wait_ready(socket, POLLIN, deadline), "store: the server did not answer in time.");
    const ssize_t n = recv(socket, p, size, 0);
    if (n < 0 && errno == EINTR) continue;
    CRESSET_CHECK_AS(DistNetworkError, n > 0,
                     "Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?");
    p += n;
    size -= static_cast<std::size_t>(n);
  }
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

Descriptor listen_on(uint16_t port) {
  int error = 0;
  for (const int family : {AF_INET6, AF_INET}) {
    Descriptor fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd) continue;
    const int on = 1, off = 0;
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in6 six{};
    sockaddr_in four{};
    six.sin6_family = AF_INET6;
    six.sin6_port = four.sin_port = htons(port);
    six.sin6_addr = in6addr_any;
    four.sin_family = AF_INET;
    if (family == AF_INET6) setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    const bool is_six = family == AF_INET6;
    const auto* address = is_six ? reinterpret_cast<const sockaddr*>(&six) : reinterpret_cast<const sockaddr*>(&four);
    if (bind(fd.get(), address, is_six ? sizeof six : sizeof four) == 0 && listen(fd.get(), 2048) == 0) return fd;
    error = errno;
  }
  const char* name = strerrorname_np(error);
  std::string message = std::strerror(error);
  if (!message.empty()) message[0] = static_cast<char>(std::tolower(message[0]));
  CRESSET_THROW(DistNetworkError, "The server socket has failed to listen on any local network address. port: ", static_cast<int64_t>(port),
                ", useIpv6: false, code: ", -error, ", name: ", name ? name : "?", ", message: ", message);
}

uint16_t port_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

std::string address_of(int socket, bool other_end) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* const p = reinterpret_cast<sockaddr*>(&address);
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if ((other_end ? getpeername(socket, p, &size) : getsockname(socket, p, &size)) != 0 ||
      getnameinfo(p, size, host, sizeof host, port, sizeof port, NI_NUMERICSERV) != 0)
    return "?:?";
  return "[" + std::string(host) + "]:" + port;
}

Descriptor connect_to(const std::string& host, uint16_t port, std::chrono::milliseconds timeout) {
  const auto deadline = deadline_after(timeout);
  for (auto pause = std::chrono::milliseconds(5);; pause = std::min(pause * 2, std::chrono::milliseconds(500))) {
    if (Descriptor fd = try_connect(host, port, deadline)) return fd;
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline)
      CRESSET_THROW(DistNetworkError, "The client socket has timed out after ", static_cast<int64_t>(timeout.count()),
                    "ms while trying to connect to (", host, ", ", static_cast<int64_t>(port), ").");
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(pause, deadline - now));
    check_signals();
  }
}

void send_message(int socket, const Store::Bytes& body, std::chrono::milliseconds timeout) {
  CRESSET_CHECK(body.size() <= kMostBytes, "store: a message of ", body.size(), " bytes is too long; 1 GiB is the most.");
  Writer framed;
  framed.bytes.reserve(body.size() + sizeof(uint32_t));
  framed.text(body);
  send_bytes(socket, framed.bytes.data(), framed.bytes.size(), timeout);
}

void send_bytes(int socket, const uint8_t* p, std::size_t left, std::chrono::milliseconds timeout) {
  const auto deadline = deadline_after(timeout);
  while (left > 0) {
    CRESSET_CHECK_AS(DistNetworkError, wait_ready(socket, POLLOUT, deadline), "store: the server did not take a question in time.");
    const ssize_t n = send(socket, p, left, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK)) continue;
    CRESSET_CHECK_AS(DistNetworkError, n > 0, std::strerror(errno), ": the store's server is gone.");
    p += n;
    left -= static_cast<std::size_t>(n);
  }
}

void receive_bytes(int socket, uint8_t* to, std::size_t size, std::chrono::milliseconds timeout) {
  receive_all(socket, to, size, deadline_after(timeout));
}

Store::Bytes receive_message(int socket, std::chrono::milliseconds timeout) {
  const auto deadline = deadline_after(timeout);
  uint32_t size = 0;
  receive_all(socket, &size, sizeof size, deadline);
  CRESSET_CHECK_AS(DistNetworkError, size <= kMostBytes, "store: an answer of ", static_cast<int64_t>(size), " bytes is none of a store.");
  Store::Bytes body(size);
  receive_all(socket, body.data(), size, deadline);
  return body;
}

}  // namespace cresset::distributed
