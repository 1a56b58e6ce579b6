// TCPStore: one connection to the server, a question at a time. A connection that broke is made again by the next question.
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <thread>

#include "distributed/key_values.h"
#include "distributed/tcp_protocol.h"
#include "distributed/tcp_server.h"
#include "distributed/wait_slices.h"

namespace cresset::distributed {

namespace {

constexpr const char* kWorkers = "init/";                               // how many clients have come; the only key outside of "/"
constexpr std::chrono::milliseconds kGrace = std::chrono::seconds(10);  // for the server's answer, beyond the time that it may wait itself
constexpr std::chrono::milliseconds kReconnect = std::chrono::seconds(3);  // for a connection that broke

std::string named(const std::string& key) { return "/" + key; }
std::vector<std::string> named(const std::vector<std::string>& keys) {
  std::vector<std::string> out;
  for (const auto& k : keys) out.push_back(named(k));
  return out;
}

/// The server on this port; several stores share it when they say so.
std::shared_ptr<TcpServer> server_for(const TCPStoreOptions& options) {
  static std::mutex mutex;
  static std::map<uint16_t, std::weak_ptr<TcpServer>> shared;
  const std::lock_guard lock(mutex);
  if (options.multiTenant)
    if (auto there = shared[options.port].lock()) return there;
  Descriptor listening = options.masterListenFd ? Descriptor(*options.masterListenFd) : listen_on(options.port);
  if (options.masterListenFd) listen(listening.get(), 2048);  // it may only have its address yet
  const uint16_t port = port_of(listening.get());
  CRESSET_CHECK_AS(DistNetworkError, !options.masterListenFd || options.port == 0 || port == options.port,
                   "The port on the master_listen_fd is ", static_cast<int64_t>(port), "; ", static_cast<int64_t>(options.port),
                   " was given as the port.");
  auto server = std::make_shared<TcpServer>(std::move(listening));
  if (options.multiTenant) shared[port] = server;
  return server;
}

}  // namespace

struct TCPStore::Client {
  std::mutex mutex;
  Descriptor socket;
  bool was_connected = false;
};

/// One question and its answer.
class TCPStore::Request {
 public:
  Request(TCPStore& store, Question question) : store_(store) { question_.number(static_cast<uint8_t>(question)); }
  template <class T>
  Request& number(T v) {
    question_.number(v);
    return *this;
  }
  template <class T>
  Request& text(const T& v) {
    question_.text(v);
    return *this;
  }
  template <class T>
  Request& texts(const std::vector<T>& v) {
    question_.texts(v);
    return *this;
  }
  /// The kind of the answer; `values` has the rest. `patience`: how long the server may take of itself.
  Answer ask(Timeout patience = Timeout(0)) {
    Client& client = *store_.client_;
    const std::lock_guard lock(client.mutex);
    try {
      if (!client.socket) store_.connect();
      send_message(client.socket.get(), question_.bytes, store_.timeout_);
      const Timeout limit = patience.count() < 0 ? Timeout(0) : patience + kGrace;
      answer_ = receive_message(client.socket.get(), limit);
    } catch (...) {
      client.socket = Descriptor();  // what comes now would answer this question
      throw;
    }
    values = Reader(answer_.data(), answer_.size());
    const auto kind = static_cast<Answer>(values.number<uint8_t>());
    CRESSET_CHECK_AS(ValueError, kind != Answer::Failed, values.text<std::string>());
    return kind;
  }
  Reader values{nullptr, 0};

 private:
  TCPStore& store_;
  Writer question_;
  Store::Bytes answer_;
};

TCPStore::TCPStore(std::string host, const TCPStoreOptions& options)
    : Store(options.timeout),
      host_(std::move(host)),
      port_(options.port),
      uses_libuv_(options.useLibUV),
      client_(std::make_unique<Client>()) {
  CRESSET_CHECK_VALUE(!options.numWorkers || *options.numWorkers != 0, "TCPStore world size cannot be 0");
  if (options.isServer) {
    auto server = server_for(options);
    port_ = server->port();
    server_ = std::move(server);
  }
  connect();
  if (!options.waitWorkers) return;
  Request(*this, Question::Add).text(std::string(kWorkers)).number(int64_t{1}).ask();
  if (options.numWorkers && *options.numWorkers > 0) wait_for_workers(*options.numWorkers);
}
TCPStore::~TCPStore() = default;

/// Nobody else uses the client meanwhile.
void TCPStore::connect() {
  Descriptor socket = connect_to(host_, port_, client_->was_connected ? std::min(kReconnect, timeout_) : timeout_);
  uint8_t greeting[Greeting::kSize], nonce[Greeting::kSize - Greeting::kNonce];
  const auto pid = static_cast<uint32_t>(getpid());
  static_assert(sizeof nonce == sizeof pid);
  std::memcpy(greeting, Greeting::kBegin, sizeof Greeting::kBegin);
  std::memcpy(greeting + Greeting::kNonce, &pid, sizeof pid);
  send_bytes(socket.get(), greeting, sizeof greeting, timeout_);
  receive_bytes(socket.get(), nonce, sizeof nonce, timeout_);
  CRESSET_CHECK_AS(DistNetworkError, std::memcmp(nonce, &pid, sizeof pid) == 0, "TCPStore: what answers at (", host_, ", ",
                   static_cast<int64_t>(port_), ") is no store.");
  client_->socket = std::move(socket);
  client_->was_connected = true;
}

std::string TCPStore::repr() const {
  const std::lock_guard lock(client_->mutex);
  const int fd = client_->socket.get();
  const std::string client = fd < 0 ? "<nullptr>"
                                    : "TCPClient(SocketImpl(fd=" + std::to_string(fd) + ", addr=" + address_of(fd, false) +
                                          ", remote=" + address_of(fd, true) + "))";
  return "TCPStore(client=" + client + ", server=" + (server_ ? "TCPServer(port=" + std::to_string(port_) + ")" : "<nullptr>") + ")";
}

void TCPStore::wait_for_workers(int64_t workers) {
  if (!server_) return;
  const auto deadline = deadline_after(timeout_);
  for (auto pause = std::chrono::milliseconds(1);; pause = std::min(pause * 2, std::chrono::milliseconds(50))) {
    Request count(*this, Question::Add);
    count.text(std::string(kWorkers)).number(int64_t{0}).ask();
    const auto joined = count.values.number<int64_t>();
    if (joined >= workers) return;
    if (std::chrono::steady_clock::now() >= deadline)
      CRESSET_THROW(DistStoreError, "Timed out after ", static_cast<int64_t>((timeout_.count() + 999) / 1000),
                    " seconds waiting for clients. ", joined, "/", workers, " clients joined.");
    std::this_thread::sleep_for(pause);
    check_signals();
  }
}

void TCPStore::set(const std::string& key, const Bytes& value) { Request(*this, Question::Set).text(named(key)).text(value).ask(); }
Store::Bytes TCPStore::get(const std::string& key) { return multiGet({key})[0]; }
int64_t TCPStore::add(const std::string& key, int64_t value) {
  Request r(*this, Question::Add);
  r.text(named(key)).number(value).ask();
  return r.values.number<int64_t>();
}
Store::Bytes TCPStore::compareSet(const std::string& key, const Bytes& expected, const Bytes& desired) {
  Request r(*this, Question::CompareSet);
  r.text(named(key)).text(expected).text(desired).ask();
  return r.values.text<Bytes>();
}
bool TCPStore::deleteKey(const std::string& key) {
  Request r(*this, Question::Erase);
  r.text(named(key)).ask();
  return r.values.number<uint8_t>() != 0;
}
bool TCPStore::check(const std::vector<std::string>& keys) {
  Request r(*this, Question::Check);
  r.texts(named(keys)).ask();
  return r.values.number<uint8_t>() != 0;
}
int64_t TCPStore::getNumKeys() {
  Request r(*this, Question::Size);
  r.ask();
  return r.values.number<int64_t>();
}
void TCPStore::wait(const std::vector<std::string>& keys) { wait(keys, timeout_); }
void TCPStore::wait(const std::vector<std::string>& keys, const Timeout& timeout) {
  const int64_t limit = timeout.count() > 0 ? timeout.count() : int64_t{1} << 40;
  Request r(*this, Question::Wait);
  if (r.number(limit).texts(named(keys)).ask(timeout.count() > 0 ? timeout : Timeout(-1)) == Answer::Timeout)
    throw_wait_timeout(timeout, keys);
}
void TCPStore::append(const std::string& key, const Bytes& value) { Request(*this, Question::Append).text(named(key)).text(value).ask(); }
std::vector<Store::Bytes> TCPStore::multiGet(const std::vector<std::string>& keys) {
  Request r(*this, Question::Get);
  const int64_t limit = timeout_.count() > 0 ? timeout_.count() : int64_t{1} << 40;
  if (r.number(limit).texts(named(keys)).ask(timeout_.count() > 0 ? timeout_ : Timeout(-1)) == Answer::Timeout)
    throw_wait_timeout(timeout_, keys);
  return r.values.texts<Bytes>();
}
void TCPStore::multiSet(const std::vector<std::string>& keys, const std::vector<Bytes>& values) {
  Request(*this, Question::MultiSet).texts(named(keys)).texts(values).ask();
}
void TCPStore::queuePush(const std::string& key, const Bytes& value) { Request(*this, Question::Push).text(named(key)).text(value).ask(); }
Store::Bytes TCPStore::queuePop(const std::string& key, bool block) {
  Request r(*this, Question::Pop);
  const Answer kind = r.number(block ? timeout_.count() : int64_t{-1}).text(named(key)).ask(block ? timeout_ : Timeout(0));
  if (kind == Answer::Timeout) throw_wait_timeout(timeout_, {key});
  CRESSET_CHECK_AS(QueueEmptyError, kind != Answer::Empty, "queue is empty");
  return r.values.text<Bytes>();
}
int64_t TCPStore::queueLen(const std::string& key) {
  Request r(*this, Question::QueueLength);
  r.text(named(key)).ask();
  return r.values.number<int64_t>();
}
std::vector<std::string> TCPStore::listKeys() {
  Request r(*this, Question::Keys);
  r.ask();
  std::vector<std::string> out;
  for (auto& key : r.values.texts<std::string>())
    if (key.starts_with("/")) out.push_back(key.substr(1));
  return out;
}
intrusive_ptr<Store> TCPStore::clone() {
  TCPStoreOptions options;
  options.port = port_;
  options.timeout = timeout_;
  options.waitWorkers = false;
  options.useLibUV = uses_libuv_;
  auto copy = make_intrusive<TCPStore>(host_, options);
  copy->server_ = server_;
  return copy;
}

}  // namespace cresset::distributed
