#include "distributed/gloo_context.h"

#include <gloo/transport/tcp/device.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <future>

#include "distributed/bytes.h"

namespace cresset::distributed {

namespace {

/// Our store with the face that Gloo asks.
class StoreForGloo final : public gloo::rendezvous::Store {
 public:
  StoreForGloo(intrusive_ptr<distributed::Store> store, std::chrono::milliseconds timeout) : store_(std::move(store)), timeout_(timeout) {}
  void set(const std::string& key, const std::vector<char>& data) override { store_->set(key, std::string(data.begin(), data.end())); }
  std::vector<char> get(const std::string& key) override {
    store_->wait({key}, timeout_);
    const auto value = store_->get(key);
    return std::vector<char>(value.begin(), value.end());
  }
  void wait(const std::vector<std::string>& keys) override { store_->wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override { wait(keys); }

 private:
  const intrusive_ptr<distributed::Store> store_;
  const std::chrono::milliseconds timeout_;
};

/// Can this host listen at the address of that name?
bool is_own_address(const std::string& name) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) return false;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(found, freeaddrinfo);
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const bool own = bind(fd, found->ai_addr, found->ai_addrlen) == 0;
  close(fd);
  return own;
}

std::shared_ptr<gloo::transport::Device> make_device(const GlooOptions& options) {
  gloo::transport::tcp::attr attr;
  const char* chosen = std::getenv("GLOO_SOCKET_IFNAME");
  if (!options.interface.empty()) {
    attr.iface = options.interface;
  } else if (!options.hostname.empty()) {
    attr.hostname = options.hostname;
  } else if (chosen && *chosen) {
    const std::string names = chosen;  // of several, the first
    attr.iface = names.substr(0, names.find(','));
  } else {
    char host[HOST_NAME_MAX + 1] = {};
    gethostname(host, HOST_NAME_MAX);
    attr.hostname = is_own_address(host) ? host : "127.0.0.1";
  }
  try {
    return gloo::transport::tcp::CreateDevice(attr);
  } catch (const std::exception& e) {
    CRESSET_THROW(DistBackendError, "gloo: no connection can be offered at ", attr.iface.empty() ? attr.hostname : attr.iface, ": ",
                  std::string(e.what()), ". GLOO_SOCKET_IFNAME names the network interface.");
  }
}

/// The device, whose thread waits for messages and may not take a core from a thread that runs (SCHED_BATCH). A call that sends holds its
/// connection's lock while the kernel wakes the other rank; the answer wakes the device's thread. Where it comes first, it finds the lock
/// taken and asks again and again, in place of the thread that has the lock, until the end of a time slice: milliseconds.
std::shared_ptr<gloo::transport::Device> make_patient_device(const GlooOptions& options) {
  // Threads begin with the policy of who makes them.
  return std::async(std::launch::async,
                    [&options] {
                      const sched_param none{};
                      if (sched_getscheduler(0) == SCHED_OTHER) sched_setscheduler(0, SCHED_BATCH, &none);
                      return make_device(options);
                    })
      .get();
}

}  // namespace

GlooConnections connect_gloo(const intrusive_ptr<Store>& store, int rank, int size, const GlooOptions& options) {
  GlooConnections made;
  made.addresses.resize(static_cast<std::size_t>(size));
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->setTimeout(options.timeout);
  made.context = context;
  if (size == 1) return made;
  auto device = make_patient_device(options);
  StoreForGloo adapter(store, options.timeout);
  try {
    context->connectFullMesh(adapter, device);
  } catch (const cresset::Error&) {
    throw;
  } catch (const std::exception& e) {
    CRESSET_THROW(DistBackendError, "gloo: rank ", rank, " could not connect with all ", size, " ranks: ", std::string(e.what()));
  }
  // Each rank tells under which address the others see it.
  Writer mine;
  std::vector<std::string> keys, seen;
  for (int r = 0; r < size; ++r) {
    keys.push_back("address of " + std::to_string(r));
    seen.push_back(r == rank ? "" : context->getPair(r)->address().str());
  }
  store->set(keys[static_cast<std::size_t>(rank)], mine.texts(seen).bytes);
  store->wait(keys, options.timeout);
  for (int r = 0; r < size; ++r) {
    if (r == rank) continue;
    const auto value = store->get(keys[static_cast<std::size_t>(r)]);
    made.addresses[static_cast<std::size_t>(r)] =
        Reader(value.data(), value.size()).texts<std::string>().at(static_cast<std::size_t>(rank));
  }
  return made;
}

}  // namespace cresset::distributed
