// FileStore: a log of changes in a file. Every call locks the file, reads what others have added, and may add a record.
//
// A record: its size, what is done (kSet, kErase), key, value. Values of counters and the like are computed under the lock and stored
// whole.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <thread>

#include "distributed/bytes.h"
#include "distributed/key_values.h"
#include "distributed/wait_slices.h"

namespace cresset::distributed {

namespace {

enum Change : uint8_t { kSet = 0, kErase = 1 };
constexpr const char* kUsers = "\x01users";  // how many stores are open; not among the keys
constexpr std::chrono::milliseconds kLook{10};

}  // namespace

struct FileStore::File {
  explicit File(const std::string& path) : path(path) {}

  /// f(keys and values) with the file locked and all changes read. The file is made when it is not there.
  template <class F>
  auto locked(bool exclusive, F f) {
    const std::lock_guard lock(mutex);
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    CRESSET_CHECK_AS(DistStoreError, fd >= 0, "FileStore: '", path, "' could not be opened: ", std::strerror(errno), ".");
    struct Close {
      int fd;
      ~Close() { close(fd); }  // gives the lock back, too
    } closing{fd};
    while (flock(fd, exclusive ? LOCK_EX : LOCK_SH) != 0)
      CRESSET_CHECK_AS(DistStoreError, errno == EINTR, "FileStore: '", path, "' could not be locked: ", std::strerror(errno), ".");
    read_changes(fd);
    descriptor = fd;
    return f(table);
  }
  /// Adds a record; inside of locked(true, …).
  void write(Change change, const std::string& key, const Store::Bytes& value) {
    Writer body;
    body.number(static_cast<uint8_t>(change)).text(key).text(value);
    Writer record;
    record.text(body.bytes);
    std::size_t done = 0;
    while (done < record.bytes.size()) {
      const ssize_t n = pwrite(descriptor, record.bytes.data() + done, record.bytes.size() - done, position + static_cast<off_t>(done));
      if (n < 0 && errno == EINTR) continue;
      CRESSET_CHECK_AS(DistStoreError, n > 0, "FileStore: '", path, "' could not be written: ", std::strerror(errno), ".");
      done += static_cast<std::size_t>(n);
    }
    position += static_cast<off_t>(done);
    apply(change, key, value);
  }

  std::mutex mutex;
  const std::string path;
  KeyValues table;

 private:
  void apply(Change change, const std::string& key, const Store::Bytes& value) {
    if (change == kSet)
      table.set(key, value);
    else
      table.erase(key);
  }
  // A record that its writer did not finish (it was killed) ends the log and is written over.
  void read_changes(int fd) {
    struct stat info {};
    fstat(fd, &info);
    if (info.st_ino != inode || info.st_size < position) {
      table = KeyValues();
      position = 0;
      inode = info.st_ino;
    }
    Store::Bytes added(static_cast<std::size_t>(info.st_size - position));
    std::size_t n = 0;
    while (n < added.size()) {
      const ssize_t got = pread(fd, added.data() + n, added.size() - n, position + static_cast<off_t>(n));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      n += static_cast<std::size_t>(got);
    }
    Reader log(added.data(), n);
    while (log.left() >= sizeof(uint32_t)) {
      uint32_t size;
      std::memcpy(&size, added.data() + (n - log.left()), sizeof size);
      if (log.left() - sizeof size < size) break;
      const auto body = log.text<Store::Bytes>();
      Reader record(body.data(), body.size());
      const auto change = static_cast<Change>(record.number<uint8_t>());
      const auto key = record.text<std::string>();
      apply(change, key, record.text<Store::Bytes>());
      position += static_cast<off_t>(sizeof size + size);
    }
  }
  off_t position = 0;
  ino_t inode = 0;
  int descriptor = -1;
};

FileStore::FileStore(std::string path, int world_size)
    : path_(std::move(path)), world_size_(world_size), file_(std::make_unique<File>(path_)) {
  file_->locked(true, [&](KeyValues& table) {
    const std::string users = std::to_string(counter_value(kUsers, table.find(kUsers)) + 1);
    file_->write(kSet, kUsers, Bytes(users.begin(), users.end()));
  });
}

FileStore::~FileStore() {
  try {
    file_->locked(true, [&](KeyValues& table) {
      const int64_t left = counter_value(kUsers, table.find(kUsers)) - 1;
      const std::string users = std::to_string(left);
      file_->write(kSet, kUsers, Bytes(users.begin(), users.end()));
      if (left == 0 && world_size_ >= 0) std::remove(path_.c_str());
    });
  } catch (const std::exception&) {  // the folder may be gone
  }
}

void FileStore::set(const std::string& key, const Bytes& value) {
  file_->locked(true, [&](KeyValues&) { file_->write(kSet, key, value); });
}
Store::Bytes FileStore::get(const std::string& key) {
  wait({key}, timeout_);
  return file_->locked(false, [&](KeyValues& table) {
    const Bytes* value = table.find(key);
    return value ? *value : Bytes();
  });
}
int64_t FileStore::add(const std::string& key, int64_t value) {
  return file_->locked(true, [&](KeyValues& table) {
    const int64_t sum = table.add(key, value);
    file_->write(kSet, key, *table.find(key));
    return sum;
  });
}
Store::Bytes FileStore::compareSet(const std::string& key, const Bytes& expected, const Bytes& desired) {
  return file_->locked(true, [&](KeyValues& table) {
    const Bytes result = table.compare_set(key, expected, desired);
    if (table.find(key) && result == desired) file_->write(kSet, key, desired);
    return result;
  });
}
bool FileStore::deleteKey(const std::string& key) {
  return file_->locked(true, [&](KeyValues& table) {
    if (!table.find(key)) return false;
    file_->write(kErase, key, {});
    return true;
  });
}
bool FileStore::check(const std::vector<std::string>& keys) {
  return file_->locked(false, [&](KeyValues& table) { return table.has_all(keys); });
}
int64_t FileStore::getNumKeys() {
  return file_->locked(false, [&](KeyValues& table) { return table.size(); });
}
std::vector<std::string> FileStore::listKeys() {
  auto keys = file_->locked(false, [&](KeyValues& table) { return table.keys(); });
  std::erase(keys, kUsers);
  return keys;
}
void FileStore::wait(const std::vector<std::string>& keys) { wait(keys, timeout_); }
void FileStore::wait(const std::vector<std::string>& keys, const Timeout& timeout) {
  const auto deadline = deadline_after(timeout);
  while (!check(keys)) {
    if (std::chrono::steady_clock::now() >= deadline) throw_wait_timeout(timeout, keys, "");
    std::this_thread::sleep_for(kLook);
    check_signals();
  }
}
intrusive_ptr<Store> FileStore::clone() { return make_intrusive<FileStore>(path_, world_size_); }

}  // namespace cresset::distributed
