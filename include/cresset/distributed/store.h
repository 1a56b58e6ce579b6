// Stores: keys and values that the processes of a group share while they find each other.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <cresset/base/intrusive_ptr.h>
#include <cresset/distributed/types.h>

namespace cresset::distributed {

/// Keys with values, shared by processes. Every call is atomic. Waiting raises DistStoreError after the timeout.
class CRESSET_API Store : public intrusive_ptr_target {
 public:
  using Bytes = std::vector<uint8_t>;
  using Timeout = std::chrono::milliseconds;
  static constexpr Timeout kDefaultTimeout = std::chrono::seconds(300);
  static constexpr Timeout kNoTimeout = std::chrono::milliseconds(0);

  Store() = default;
  explicit Store(Timeout timeout) : timeout_(timeout) {}
  ~Store() override;

  void set(const std::string& key, const std::string& value) { set(key, Bytes(value.begin(), value.end())); }
  virtual void set(const std::string& key, const Bytes& value) = 0;
  /// Waits for the key.
  virtual Bytes get(const std::string& key) = 0;
  std::string get_to_str(const std::string& key);
  /// The counter of this key plus value; a key that is not there counts from 0. Stored as decimal text.
  virtual int64_t add(const std::string& key, int64_t value) = 0;
  /// Sets `desired` where the key has `expected`, or is not there and `expected` is empty. What the key has afterwards; `expected` for
  /// none.
  virtual Bytes compareSet(const std::string& key, const Bytes& expected, const Bytes& desired);
  /// Was it there?
  virtual bool deleteKey(const std::string& key) = 0;
  virtual bool check(const std::vector<std::string>& keys) = 0;
  virtual int64_t getNumKeys() = 0;
  virtual void wait(const std::vector<std::string>& keys) = 0;
  virtual void wait(const std::vector<std::string>& keys, const Timeout& timeout) = 0;
  virtual const Timeout& getTimeout() const noexcept { return timeout_; }
  virtual void setTimeout(const Timeout& timeout) { timeout_ = timeout; }

  /// Does it do the next three in one step? Others do them with compareSet, get and set.
  virtual bool hasExtendedApi() const { return false; }
  virtual void append(const std::string& key, const Bytes& value);
  virtual std::vector<Bytes> multiGet(const std::vector<std::string>& keys);
  virtual void multiSet(const std::vector<std::string>& keys, const std::vector<Bytes>& values);
  // RuntimeError where a store lacks them.
  virtual void queuePush(const std::string& key, const Bytes& value);
  virtual Bytes queuePop(const std::string& key, bool block);
  virtual int64_t queueLen(const std::string& key);
  virtual std::vector<std::string> listKeys();
  /// Another object for the same keys, with a connection of its own where there is one.
  virtual intrusive_ptr<Store> clone() = 0;

 protected:
  static void check_pairs(std::size_t keys, std::size_t values);
  Timeout timeout_ = kDefaultTimeout;
};

/// A store in this process.
class CRESSET_API HashStore : public Store {
 public:
  ~HashStore() override;
};
CRESSET_API intrusive_ptr<HashStore> make_hash_store();

/// Keys of another store under "prefix/".
class CRESSET_API PrefixStore final : public Store {
 public:
  PrefixStore(std::string prefix, intrusive_ptr<Store> store);
  using Store::set;
  void set(const std::string& key, const Bytes& value) override;
  Bytes get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t value) override;
  Bytes compareSet(const std::string& key, const Bytes& expected, const Bytes& desired) override;
  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  int64_t getNumKeys() override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, const Timeout& timeout) override;
  const Timeout& getTimeout() const noexcept override;
  void setTimeout(const Timeout& timeout) override;
  bool hasExtendedApi() const override;
  void append(const std::string& key, const Bytes& value) override;
  std::vector<Bytes> multiGet(const std::vector<std::string>& keys) override;
  void multiSet(const std::vector<std::string>& keys, const std::vector<Bytes>& values) override;
  void queuePush(const std::string& key, const Bytes& value) override;
  Bytes queuePop(const std::string& key, bool block) override;
  int64_t queueLen(const std::string& key) override;
  std::vector<std::string> listKeys() override;
  intrusive_ptr<Store> clone() override;
  const intrusive_ptr<Store>& getUnderlyingStore() const { return store_; }
  /// The first store below that is no PrefixStore.
  intrusive_ptr<Store> getUnderlyingNonPrefixStore() const;

 private:
  std::string joined(const std::string& key) const { return prefix_ + "/" + key; }
  std::vector<std::string> joined(const std::vector<std::string>& keys) const;
  const std::string prefix_;
  const intrusive_ptr<Store> store_;
};

/// A store in a file that all processes can reach and lock. The last of `world_size` users removes it; with -1 nobody does.
class CRESSET_API FileStore final : public Store {
 public:
  FileStore(std::string path, int world_size);
  ~FileStore() override;
  using Store::set;
  void set(const std::string& key, const Bytes& value) override;
  Bytes get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t value) override;
  Bytes compareSet(const std::string& key, const Bytes& expected, const Bytes& desired) override;
  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  int64_t getNumKeys() override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, const Timeout& timeout) override;
  std::vector<std::string> listKeys() override;
  intrusive_ptr<Store> clone() override;
  const std::string& getPath() const { return path_; }

 private:
  struct File;
  const std::string path_;
  const int world_size_;
  std::unique_ptr<File> file_;
};

struct TCPStoreOptions {
  uint16_t port = 29500;
  bool isServer = false;
  std::optional<int64_t> numWorkers;
  bool waitWorkers = true;
  Store::Timeout timeout = Store::kDefaultTimeout;
  /// Several stores of this process share one server.
  bool multiTenant = false;
  /// A socket that listens already, for the server.
  std::optional<int> masterListenFd;
  /// Kept for who asks; there is one kind of server.
  bool useLibUV = true;
};

/// A store that one process serves at an address and the others connect to.
class CRESSET_API TCPStore final : public Store {
 public:
  TCPStore(std::string host, const TCPStoreOptions& options);
  ~TCPStore() override;
  using Store::set;
  void set(const std::string& key, const Bytes& value) override;
  Bytes get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t value) override;
  Bytes compareSet(const std::string& key, const Bytes& expected, const Bytes& desired) override;
  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  int64_t getNumKeys() override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, const Timeout& timeout) override;
  bool hasExtendedApi() const override { return true; }
  void append(const std::string& key, const Bytes& value) override;
  std::vector<Bytes> multiGet(const std::vector<std::string>& keys) override;
  void multiSet(const std::vector<std::string>& keys, const std::vector<Bytes>& values) override;
  void queuePush(const std::string& key, const Bytes& value) override;
  Bytes queuePop(const std::string& key, bool block) override;
  int64_t queueLen(const std::string& key) override;
  std::vector<std::string> listKeys() override;
  intrusive_ptr<Store> clone() override;
  const std::string& getHost() const { return host_; }
  uint16_t getPort() const { return port_; }
  bool isLibUvBackend() const { return uses_libuv_; }
  /// The client's socket with its two addresses, and the server's port where this store has the server.
  std::string repr() const;

 private:
  struct Client;
  class Request;
  void wait_for_workers(int64_t workers);
  void connect();
  const std::string host_;
  uint16_t port_;
  const bool uses_libuv_;
  std::shared_ptr<void> server_;
  std::unique_ptr<Client> client_;
};

}  // namespace cresset::distributed
