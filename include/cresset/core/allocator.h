// DataPtr, Allocator and the CPU allocator.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include <cresset/core/device.h>

namespace cresset {

using DeleterFnPtr = void (*)(void*);

/// A pointer to memory on a device together with the context that frees it.
class DataPtr {
 public:
  DataPtr() : device_(kCPU) {}
  DataPtr(void* data, Device device) : data_(data), device_(device) {}
  DataPtr(void* data, void* ctx, DeleterFnPtr deleter, Device device) : data_(data), ctx_(ctx), deleter_(deleter), device_(device) {}
  DataPtr(DataPtr&& o) noexcept
      : data_(std::exchange(o.data_, nullptr)),
        ctx_(std::exchange(o.ctx_, nullptr)),
        deleter_(std::exchange(o.deleter_, nullptr)),
        device_(o.device_) {}
  DataPtr& operator=(DataPtr&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(ctx_, o.ctx_);
    std::swap(deleter_, o.deleter_);
    std::swap(device_, o.device_);
    return *this;
  }
  ~DataPtr() {
    if (ctx_ && deleter_) deleter_(ctx_);
  }
  void* get() const { return data_; }
  void* mutable_get() { return data_; }
  void* get_context() const { return ctx_; }
  DeleterFnPtr get_deleter() const { return deleter_; }
  /// Gives up ownership of the context.
  void* release_context() { return std::exchange(ctx_, nullptr); }
  void clear() { *this = DataPtr(nullptr, device_); }
  explicit operator bool() const { return data_ || ctx_; }
  friend bool operator==(const DataPtr& p, std::nullptr_t) noexcept { return !p; }
  void* operator->() const { return data_; }
  /// Gives another deleter to the same context, if the present one is `expected`.
  bool compare_exchange_deleter(DeleterFnPtr expected, DeleterFnPtr deleter) {
    if (deleter_ != expected) return false;
    deleter_ = deleter;
    return true;
  }
  Device device() const { return device_; }
  void unsafe_set_device(Device d) { device_ = d; }

 private:
  void* data_ = nullptr;
  void* ctx_ = nullptr;
  DeleterFnPtr deleter_ = nullptr;
  Device device_;
};

/// Source of memory on one kind of device.
struct CRESSET_API Allocator {
  virtual ~Allocator() = default;
  /// At least n bytes; n = 0 may give a null pointer. Raises OutOfMemoryError. An allocator overrides this form, or the const one below
  /// (sources for PyTorch before 2.3); one that overrides neither raises when it is asked.
  virtual DataPtr allocate(std::size_t n) { return static_cast<const Allocator&>(*this).allocate(n); }
  /// Deleter for DataPtrs whose context is the data pointer itself, or null.
  virtual DeleterFnPtr raw_deleter() const { return nullptr; }
  /// Copies n bytes between two blocks of this allocator.
  virtual void copy_data(void* target, const void* source, std::size_t n) const { default_copy_data(target, source, n); }
  /// allocate for callers that keep the bare pointer; only for allocators with a raw_deleter.
  void* raw_allocate(std::size_t n) {
    DataPtr p = allocate(n);
    CRESSET_CHECK(p.get() == p.get_context(), "raw_allocate: an allocator whose context is the data pointer was required.");
    return p.release_context();
  }
  void raw_deallocate(void* p) { raw_deleter()(p); }
  /// The older form of it; raises where only the other one is overridden.
  virtual DataPtr allocate(std::size_t n) const;

 protected:
  /// The copy for memory that the host can reach.
  static void default_copy_data(void* target, const void* source, std::size_t n) { std::memcpy(target, source, n); }
};

/// DataPtr with any callable as deleter.
struct CRESSET_API InefficientStdFunctionContext {
  std::function<void(void*)> deleter;
  void* data;
  static DataPtr makeDataPtr(void* data, std::function<void(void*)> deleter, Device device) {
    return {data, new InefficientStdFunctionContext{std::move(deleter), data}, &run, device};
  }

 private:
  static void run(void* context) {
    auto* self = static_cast<InefficientStdFunctionContext*>(context);
    self->deleter(self->data);
    delete self;
  }
};

/// The allocator of a device kind; raises when the kind has none.
CRESSET_API Allocator* GetAllocator(DeviceType t);
/// Sets it; the allocator must live as long as the process.
CRESSET_API void SetAllocator(DeviceType t, Allocator* allocator);
/// 64-byte aligned host memory; small blocks come from a thread-local free list, big ones are kept and reused.
CRESSET_API Allocator* GetCPUAllocator();
inline Allocator* GetDefaultCPUAllocator() { return GetCPUAllocator(); }

/// Raw host memory of the CPU allocator, 64-byte aligned. alloc_cpu raises OutOfMemoryError.
CRESSET_API void* alloc_cpu(std::size_t n);
/// n must be the size given to alloc_cpu.
CRESSET_API void free_cpu_sized(void* p, std::size_t n) noexcept;

/// Bytes in use and the peak since the last reset, of the CPU allocator (for tests and reports).
struct MemoryStats {
  int64_t allocated_bytes = 0;
  int64_t peak_bytes = 0;
};
CRESSET_API MemoryStats cpu_memory_stats();
CRESSET_API void reset_peak_cpu_memory_stats();

}  // namespace cresset
