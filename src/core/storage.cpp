// Life of a storage block.
#include <cresset/core/backend.h>
#include <cresset/core/storage.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "core/kept_object.h"
#include "core/memory_watch.h"

namespace cresset {
namespace detail {
namespace {
struct Kept {
  weak_intrusive_ptr<StorageImpl> storage;  // whose last owner therefore comes by release_resources()
  void* object = nullptr;
  void (*release)(void*) = nullptr;
};
struct KeptObjects {
  std::mutex mutex;
  std::unordered_map<const StorageImpl*, Kept> by_storage;
};
KeptObjects& kept_objects() {
  static auto* const kept = new KeptObjects;  // storages go after static objects have
  return *kept;
}
std::atomic<std::size_t> kept_count{0};

Kept take(const StorageImpl& storage) {
  KeptObjects& kept = kept_objects();
  const std::lock_guard<std::mutex> lock(kept.mutex);
  const auto at = kept.by_storage.find(&storage);
  if (at == kept.by_storage.end()) return {};
  Kept found = std::move(at->second);
  kept.by_storage.erase(at);
  --kept_count;
  return found;
}

void release_kept(const StorageImpl& storage) {
  if (CRESSET_LIKELY(kept_count.load(std::memory_order_relaxed) == 0)) return;
  if (const Kept found = take(storage); found.object) found.release(found.object);
}
}  // namespace

void keep_with_storage(const Storage& storage, void* object, void (*release)(void*)) {
  KeptObjects& kept = kept_objects();
  const std::lock_guard<std::mutex> lock(kept.mutex);
  Kept one{weak_intrusive_ptr<StorageImpl>(storage.getIntrusivePtr()), object, release};
  CRESSET_INTERNAL_ASSERT(kept.by_storage.emplace(storage.unsafeGetStorageImpl(), std::move(one)).second, "a storage keeps two objects.");
  ++kept_count;
}
void* take_kept(const StorageImpl& storage) { return kept_count.load(std::memory_order_relaxed) ? take(storage).object : nullptr; }
intrusive_ptr<StorageImpl> keeper_of(const void* object) {
  KeptObjects& kept = kept_objects();
  const std::lock_guard<std::mutex> lock(kept.mutex);
  for (const auto& [storage, k] : kept.by_storage)
    if (k.object == object) return k.storage.lock();
  return nullptr;
}
}  // namespace detail

StorageImpl::StorageImpl(use_byte_size_t, std::size_t nbytes)
    : data_(nbytes ? detail::alloc_storage(nbytes) : nullptr, Device(kCPU)),
      nbytes_(nbytes),
      allocator_(GetCPUAllocator()),
      resizable_(true),
      sized_cpu_(nbytes != 0),
      allocated_(nbytes) {}

void StorageImpl::free_sized() noexcept {
  if (!sized_cpu_) return;
  detail::free_storage(data_.get(), allocated_);
  sized_cpu_ = false;
}

StorageImpl::~StorageImpl() { free_sized(); }

void StorageImpl::release_resources() {
  detail::release_kept(*this);
  if (sized_cpu_) {
    free_sized();
    data_ = DataPtr(nullptr, data_.device());
  } else {
    data_.clear();
  }
}

DataPtr StorageImpl::set_data_ptr(DataPtr p) {
  if (sized_cpu_) {
    // Hand the sized block out as an ordinary DataPtr that knows how to free itself.
    struct Block {
      void* p;
      std::size_t n;
    };
    auto* block = new Block{data_.get(), allocated_};
    DataPtr old(
        block->p, block,
        [](void* c) {
          auto* b = static_cast<Block*>(c);
          detail::free_storage(b->p, b->n);
          delete b;
        },
        data_.device());
    sized_cpu_ = false;
    data_ = std::move(p);
    return old;
  }
  std::swap(data_, p);
  return p;
}

// More memory is a new block with the old bytes. Less is a smaller number, but for none at all, which gives the block back.
static void resize_on_device(StorageImpl& s, std::size_t nbytes) {
  CRESSET_CHECK(is_backend(s.device_type()), "resize_: storage on ", s.device(),
                " is resized by its backend's resize_ kernel, which is missing.");
  if (nbytes == 0 || nbytes > s.nbytes()) {
    DataPtr fresh = detail::allocate_on(s.device(), nbytes);
    const std::size_t kept = std::min(nbytes, s.nbytes());
    if (kept) detail::copy_bytes(fresh.get(), s.device(), 0, s.data(), s.device(), 0, kept, true);
    s.set_data_ptr(std::move(fresh));
  }
  s.set_nbytes(nbytes);
}

void StorageImpl::resize_bytes(std::size_t nbytes) {
  CRESSET_CHECK(resizable_ && allocator_, "Trying to resize storage that is not resizable");
  if (device_type() != kCPU) return resize_on_device(*this, nbytes);
  if (nbytes > (sized_cpu_ ? allocated_ : nbytes_) || !sized_cpu_) {
    void* fresh = nbytes ? detail::alloc_storage(nbytes) : nullptr;
    if (fresh && data_.get()) std::memcpy(fresh, data_.get(), std::min(nbytes, nbytes_));
    free_sized();
    data_ = DataPtr(fresh, Device(kCPU));
    sized_cpu_ = fresh != nullptr;
    allocated_ = nbytes;
  }
  nbytes_ = nbytes;
}

void* StorageImpl::operator new(std::size_t n) { return alloc_cpu(n); }
void StorageImpl::operator delete(void* p, std::size_t n) noexcept { free_cpu_sized(p, n); }

namespace {
std::array<std::atomic<StorageImplCreateHelper>, kDeviceTypeCount>& storage_makers() {
  static std::array<std::atomic<StorageImplCreateHelper>, kDeviceTypeCount> makers{};
  return makers;
}
}  // namespace

void SetStorageImplCreate(DeviceType t, StorageImplCreateHelper create) {
  CRESSET_CHECK(t != kCPU && t != kCUDA && t != kMeta, "SetStorageImplCreate: a device kind outside of the core was required; ", t,
                " was given.");
  storage_makers().at(static_cast<std::size_t>(t)).store(create);
}
StorageImplCreateHelper GetStorageImplCreate(DeviceType t) {
  return t >= DeviceType::HIP ? nullptr : storage_makers().at(static_cast<std::size_t>(t)).load();
}

intrusive_ptr<StorageImpl> make_storage_impl(StorageImpl::use_byte_size_t tag, SymInt nbytes, DataPtr data, Allocator* allocator,
                                             bool resizable, std::optional<Device> device) {
  if (device)
    if (StorageImplCreateHelper create = GetStorageImplCreate(device->type()))
      return create(tag, nbytes, std::move(data), allocator, resizable);
  const auto n = static_cast<std::size_t>(nbytes.value);
  if (data == nullptr) return make_intrusive<StorageImpl>(tag, n, allocator, resizable);
  return make_intrusive<StorageImpl>(tag, n, std::move(data), allocator, resizable);
}

}  // namespace cresset
