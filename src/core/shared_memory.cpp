// Shared mappings: memfd for memory without a name, files of /dev/shm for memory with one.
#include "core/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <cresset/base/fork.h>

#include "core/memory_watch.h"

namespace cresset::detail {
namespace {

constexpr std::size_t kHeader = 64;  // of memory with a name: the count of users, and alignment of what follows

std::atomic<int32_t>& users(const SharedBlock& b) { return *static_cast<std::atomic<int32_t>*>(b.base); }

/// The blocks of this process by their keys. Never destroyed: storages may outlive static destruction.
struct Open {
  struct Entry {
    SharedBlock* block;
    weak_intrusive_ptr<StorageImpl> storage;
  };
  ForkSafe<std::mutex> mutex;
  std::map<std::string, Entry> blocks;
};
Open& open_blocks() {
  static auto& o = *new Open;
  return o;
}

struct File {
  explicit File(int f) : fd(f) {}
  File(File&& o) noexcept : fd(o.release()) {}
  ~File() {
    if (fd >= 0) ::close(fd);
  }
  int release() { return std::exchange(fd, -1); }
  int fd;
};

[[noreturn]] void failed(const char* what, std::size_t nbytes) {
  CRESSET_THROW(Error, "shared memory: ", what, " of ", nbytes, " bytes failed: ", std::strerror(errno), " (", errno, ").");
}

void give_up_name(SharedBlock& b) noexcept {
  if (b.name.empty() || b.owner != ::getpid()) return;
  b.owner = 0;
  if (users(b).fetch_sub(1) == 1) ::shm_unlink(b.name.c_str());
}

void release(void* context) {
  auto* b = static_cast<SharedBlock*>(context);
  const std::size_t header = b->name.empty() ? 0 : kHeader;
  memory_changed(static_cast<char*>(b->base) + header, -static_cast<int64_t>(b->mapped - header), kCPU);
  {
    const std::lock_guard lock(open_blocks().mutex);
    const auto at = open_blocks().blocks.find(b->key);
    if (at != open_blocks().blocks.end() && at->second.block == b) open_blocks().blocks.erase(at);
    give_up_name(*b);
  }
  ::munmap(b->base, b->mapped);
  if (b->fd >= 0) ::close(b->fd);
  delete b;
}

std::string key_of(const File& file) {
  struct stat s;
  if (::fstat(file.fd, &s) != 0) failed("a look at the file", 0);
  return std::to_string(s.st_dev) + ":" + std::to_string(s.st_ino);
}

/// Maps nbytes (at least one) behind the header, and takes the file over when the block has no name.
DataPtr map(File file, std::size_t nbytes, std::string name) {
  const std::size_t header = name.empty() ? 0 : kHeader, bytes = header + std::max<std::size_t>(nbytes, 1);
  void* const base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, 0);
  if (base == MAP_FAILED) failed("a mapping", nbytes);
  std::string key = header ? name : key_of(file);
  auto* b = new SharedBlock{base, bytes, header ? -1 : file.release(), std::move(name), std::move(key), 0};
  if (header) {
    users(*b).fetch_add(1);
    b->owner = ::getpid();
  }
  void* const data = static_cast<char*>(base) + header;
  memory_changed(data, static_cast<int64_t>(bytes - header), kCPU);
  return DataPtr(data, b, &release, kCPU);
}

void check_size(const File& file, std::size_t needed) {
  struct stat s;
  if (::fstat(file.fd, &s) != 0) failed("a look at the file", needed);
  CRESSET_CHECK(static_cast<std::size_t>(s.st_size) >= needed, "shared memory: ", needed, " bytes were required; the file has ", s.st_size,
                ".");
}

DataPtr create(std::size_t nbytes, bool named) {
  const std::size_t bytes = std::max<std::size_t>(nbytes, 1) + (named ? kHeader : 0);
  std::string name;
  int fd;
  if (named) {
    static std::atomic<uint64_t> number{0};
    do {
      name = "/torch_" + std::to_string(::getpid()) + "_cresset_" + std::to_string(number.fetch_add(1));  // as PyTorch names its own
      fd = ::shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    } while (fd < 0 && errno == EEXIST);
  } else {
    fd = ::memfd_create("cresset", MFD_CLOEXEC);
  }
  if (fd < 0) failed("a file", nbytes);
  File file(fd);
  // Memory is taken now: where there is too little, a later write would end the process.
  if (const int error = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes))) {
    if (named) ::shm_unlink(name.c_str());
    errno = error;
    failed("a file", nbytes);
  }
  return map(std::move(file), nbytes, std::move(name));
}

/// The storage of this memory is known from now on.
void remember(StorageImpl& storage) {
  auto* b = static_cast<SharedBlock*>(storage.data_ptr().get_context());
  const std::lock_guard lock(open_blocks().mutex);
  open_blocks().blocks.insert_or_assign(
      b->key, Open::Entry{b, weak_intrusive_ptr<StorageImpl>(intrusive_ptr<StorageImpl>::reclaim_copy(&storage))});
}
std::optional<Storage> remembered(const std::string& key) {
  const std::lock_guard lock(open_blocks().mutex);
  const auto at = open_blocks().blocks.find(key);
  if (at == open_blocks().blocks.end()) return std::nullopt;
  intrusive_ptr<StorageImpl> storage = at->second.storage.lock();
  return storage ? std::make_optional<Storage>(std::move(storage)) : std::nullopt;
}

Storage over(DataPtr data, std::size_t nbytes) {
  Storage storage(Storage::use_byte_size_t(), nbytes, std::move(data), GetCPUAllocator(), false);
  remember(*storage.unsafeGetStorageImpl());
  return storage;
}

}  // namespace

const SharedBlock* shared_block(const StorageImpl& storage) {
  const DataPtr& p = storage.data_ptr();
  return p.get_deleter() == &release ? static_cast<const SharedBlock*>(p.get_context()) : nullptr;
}

void share_storage(StorageImpl& storage, bool named) {
  if (shared_block(storage)) return;
  CRESSET_CHECK(storage.device_type() == kCPU, "share_memory_: memory of the CPU was required; given: ", storage.device(),
                ". Copy the tensor to the CPU first.");
  DataPtr fresh = create(storage.nbytes(), named);
  if (storage.nbytes() && storage.data()) std::memcpy(fresh.get(), storage.data(), storage.nbytes());
  storage.set_data_ptr(std::move(fresh));
  storage.set_resizable(false);
  remember(storage);
}

Storage open_shared(int fd, std::size_t nbytes) {
  File file(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (file.fd < 0) failed("a duplicate of the file", nbytes);
  check_size(file, nbytes);
  if (auto found = remembered(key_of(file))) return *std::move(found);
  return over(map(std::move(file), nbytes, {}), nbytes);
}

Storage open_shared(const std::string& name, std::size_t nbytes) {
  if (auto found = remembered(name)) return *std::move(found);
  File file(::shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0));
  if (file.fd < 0) failed(("opening " + name).c_str(), nbytes);
  check_size(file, nbytes + kHeader);
  return over(map(std::move(file), nbytes, name), nbytes);
}

void count_shared(const SharedBlock& block, int change) {
  CRESSET_CHECK(!block.name.empty(), "shared memory: a block with a name was required.");
  if (users(block).fetch_add(change) + change == 0) ::shm_unlink(block.name.c_str());
}

void release_shared_names() noexcept {
  const std::lock_guard lock(open_blocks().mutex);
  for (auto& [key, entry] : open_blocks().blocks) give_up_name(*entry.block);
}

}  // namespace cresset::detail
