#include "distributed/tcp_server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <thread>

#include "distributed/key_values.h"
#include "distributed/tcp_protocol.h"

namespace cresset::distributed {

namespace {

using Clock = std::chrono::steady_clock;

/// A question that waits for keys.
struct Waiting {
  Question question;
  std::vector<std::string> keys;
  Clock::time_point deadline;
};

struct Connection {
  explicit Connection(Descriptor s) : socket(std::move(s)) {}
  Descriptor socket;
  Store::Bytes received;  // what is not a whole message yet
  Store::Bytes to_send;
  std::size_t sent = 0;  // of to_send
  std::optional<Waiting> waiting;
  bool greeted = false;
};

Writer answer(Answer a) {
  Writer w;
  w.number(static_cast<uint8_t>(a));
  return w;
}

Store::Bytes value_of(const KeyValues& table, const std::string& key) {
  const Store::Bytes* value = table.find(key);
  return value ? *value : Store::Bytes();
}

}  // namespace

struct TcpServer::Loop {
  explicit Loop(Descriptor listening_socket) : listening(std::move(listening_socket)) {
    int ends[2];
    CRESSET_CHECK_AS(DistNetworkError, pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0, "TCPStore: no pipe could be made: ", std::strerror(errno),
                     ".");
    stop_read = Descriptor(ends[0]);
    stop_write = Descriptor(ends[1]);
    fcntl(listening.get(), F_SETFL, fcntl(listening.get(), F_GETFL) | O_NONBLOCK);
    sigset_t all, before;  // signals belong to the threads of the program
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    thread = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~Loop() {
    [[maybe_unused]] const ssize_t n = write(stop_write.get(), "x", 1);
    thread.join();
  }

  void run() {
    std::vector<pollfd> polled;
    for (;;) {
      polled.clear();
      polled.push_back({stop_read.get(), POLLIN, 0});
      polled.push_back({listening.get(), POLLIN, 0});
      for (const Connection& c : connections)
        polled.push_back({c.socket.get(), static_cast<short>(POLLIN | (c.to_send.empty() ? 0 : POLLOUT)), 0});
      if (poll(polled.data(), polled.size(), milliseconds_to_deadline()) < 0 && errno != EINTR) return;
      if (polled[0].revents) return;
      auto c = connections.begin();
      for (std::size_t i = 2; i < polled.size(); ++i) {
        const bool alive = !polled[i].revents || serve(*c);
        c = alive ? std::next(c) : connections.erase(c);
      }
      answer_waiting();
      if (polled[1].revents) accept_one();
    }
  }

 private:
  int milliseconds_to_deadline() const {
    auto first = Clock::time_point::max();
    for (const Connection& c : connections)
      if (c.waiting) first = std::min(first, c.waiting->deadline);
    if (first == Clock::time_point::max()) return -1;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(first - Clock::now()).count() + 1;
    return static_cast<int>(std::clamp<int64_t>(left, 0, 1'000'000));
  }
  void accept_one() {
    Descriptor fd(accept4(listening.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) return;
    const int on = 1;
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connections.emplace_back(std::move(fd));
  }

  /// Reads some of what is there, so that others have their turn, and answers whole questions; false when the connection is over.
  bool serve(Connection& c) {
    uint8_t block[65536];
    const ssize_t n = recv(c.socket.get(), block, sizeof block, 0);
    if (n < 0) return (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK) && flush(c);
    if (n == 0) return false;
    c.received.insert(c.received.end(), block, block + n);
    if (c.received.size() > std::size_t{kMostBytes} + sizeof block) return false;  // asks on without waiting for answers
    return take_messages(c) && flush(c);
  }
  bool take_messages(Connection& c) {
    std::size_t at = 0;
    if (!c.greeted) {
      const std::size_t known = std::min(c.received.size(), Greeting::kNonce);
      if (std::memcmp(c.received.data(), Greeting::kBegin, known) != 0) return false;
      if (c.received.size() < Greeting::kSize) return true;
      c.to_send.insert(c.to_send.end(), c.received.begin() + Greeting::kNonce, c.received.begin() + Greeting::kSize);
      c.greeted = true;
      at = Greeting::kSize;
    }
    uint32_t size;
    while (!c.waiting && c.received.size() - at >= sizeof size) {
      std::memcpy(&size, c.received.data() + at, sizeof size);
      if (size > kMostBytes) return false;  // no client of ours
      if (c.received.size() - at - sizeof size < size) break;
      Reader message(c.received.data() + at + sizeof size, size);
      at += sizeof size + size;
      handle(c, message);
    }
    if (at > 0) c.received.erase(c.received.begin(), c.received.begin() + static_cast<std::ptrdiff_t>(at));
    return true;
  }
  bool flush(Connection& c) {
    while (c.sent < c.to_send.size()) {
      const ssize_t n = send(c.socket.get(), c.to_send.data() + c.sent, c.to_send.size() - c.sent, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
      c.sent += static_cast<std::size_t>(n);
    }
    c.to_send.clear();
    c.sent = 0;
    return true;
  }
  static void reply(Connection& c, const Writer& w) {
    Writer framed;
    framed.text(w.bytes);
    c.to_send.insert(c.to_send.end(), framed.bytes.begin(), framed.bytes.end());
  }

  void handle(Connection& c, Reader& m) {
    try {
      const auto question = static_cast<Question>(m.number<uint8_t>());
      if (question == Question::Get || question == Question::Wait || question == Question::Pop)
        begin_waiting(c, question, m);
      else
        reply(c, change_or_ask(question, m));
    } catch (const std::exception& e) {
      reply(c, answer(Answer::Failed).text(std::string(e.what())));
    }
  }
  void begin_waiting(Connection& c, Question question, Reader& m) {
    const auto timeout = m.number<int64_t>();
    Waiting w{question, {}, Clock::now() + std::chrono::milliseconds(std::min<int64_t>(timeout, int64_t{1} << 40))};
    if (question == Question::Pop)
      w.keys = {m.text<std::string>()};
    else
      w.keys = m.texts<std::string>();
    if (timeout < 0 && !table.has_all(w.keys)) return reply(c, answer(question == Question::Pop ? Answer::Empty : Answer::Timeout));
    c.waiting = std::move(w);  // answer_waiting() comes next
  }
  Writer change_or_ask(Question question, Reader& m) {
    Writer done = answer(Answer::Done);
    if (question == Question::Size) return done.number(table.size());
    if (question == Question::Keys) return done.texts(table.keys());
    if (question == Question::Check) return done.number(static_cast<uint8_t>(table.has_all(m.texts<std::string>())));
    if (question == Question::MultiSet) {
      const auto keys = m.texts<std::string>();
      auto values = m.texts<Store::Bytes>();
      CRESSET_CHECK(keys.size() == values.size(), "multi_set: as many values as keys were required.");
      for (std::size_t i = 0; i < keys.size(); ++i) table.set(keys[i], std::move(values[i]));
      return done;
    }
    const auto key = m.text<std::string>();
    switch (question) {
      case Question::Set: table.set(key, m.text<Store::Bytes>()); return done;
      case Question::Add: return done.number(table.add(key, m.number<int64_t>()));
      case Question::CompareSet: {
        const auto expected = m.text<Store::Bytes>();
        return done.text(table.compare_set(key, expected, m.text<Store::Bytes>()));
      }
      case Question::Erase: return done.number(static_cast<uint8_t>(table.erase(key)));
      case Question::Append: table.append(key, m.text<Store::Bytes>()); return done;
      case Question::Push: table.push(key, m.text<Store::Bytes>()); return done;
      case Question::QueueLength: return done.number(table.queue_length(key));
      default: CRESSET_THROW(Error, "store: the server does not know what was asked; are all processes of one version?");
    }
  }

  /// Answers who waits for what has come, again and again: a value that one pops is not there for the next.
  void answer_waiting() {
    const auto now = Clock::now();
    for (auto c = connections.begin(); c != connections.end();) {
      bool alive = true;
      if (c->waiting && (table.has_all(c->waiting->keys) || now >= c->waiting->deadline)) {
        const Waiting w = std::move(*c->waiting);
        c->waiting.reset();
        reply(*c, table.has_all(w.keys) ? found(w) : answer(Answer::Timeout));
        alive = take_messages(*c) && flush(*c);
      }
      c = alive ? std::next(c) : connections.erase(c);
    }
  }
  Writer found(const Waiting& w) {
    Writer done = answer(Answer::Done);
    if (w.question == Question::Pop) {
      if (auto value = table.pop(w.keys[0])) return done.text(*value);
      return answer(Answer::Empty);
    }
    if (w.question == Question::Get) {
      std::vector<Store::Bytes> values;
      for (const auto& k : w.keys) values.push_back(value_of(table, k));
      done.texts(values);
    }
    return done;
  }

  Descriptor listening, stop_read, stop_write;
  KeyValues table;
  std::list<Connection> connections;
  std::thread thread;
};

TcpServer::TcpServer(Descriptor listening) : port_(port_of(listening.get())), loop_(std::in_place, std::move(listening)) {}
TcpServer::~TcpServer() = default;

}  // namespace cresset::distributed
