// Host memory that a device reaches, kept for reuse: CachingHostAllocatorImpl by PyTorch's names, for sources that say how their driver
// allocates and how its queues are asked, and leave the rest to it.
#pragma once

#include <cresset_compat/device_allocator.h>

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace at {

template <class S>
struct HostBlock {
  std::size_t size_ = 0;
  void* ptr_ = nullptr;
  std::vector<S> streams_;  // where it was used since it was allocated
  bool allocated_ = false;
  std::size_t event_count_ = 0;  // of those behind that use, the ones that have not happened
};

/// Blocks of powers of two. A freed block is given out again when the work that was in the recorded streams at that time is done.
template <class S, class E, class B = HostBlock<S>>
class CachingHostAllocatorImpl {
 public:
  virtual ~CachingHostAllocatorImpl() = default;

  /// (memory, context of the block); null for no bytes. Raises what allocate_host_memory raises.
  virtual std::pair<void*, void*> allocate(std::size_t size) {
    if (size == 0) return {nullptr, nullptr};
    process_events();
    const std::size_t rounded = std::bit_ceil(size);
    const std::lock_guard lock(mutex_);
    auto& kept = idle_[rounded];
    B* block = kept.empty() ? take(rounded) : kept.back();
    if (!kept.empty()) kept.pop_back();
    block->allocated_ = true;
    stats_.allocation.increase(1);
    stats_.allocated_bytes.increase(rounded);
    return {block->ptr_, block};
  }

  virtual void free(void* context) {
    if (!context) return;
    auto* block = static_cast<B*>(context);
    std::optional<std::vector<E>> events;
    {
      const std::lock_guard lock(mutex_);
      block->allocated_ = false;
      stats_.allocation.decrease(1);
      stats_.allocated_bytes.decrease(block->size_);
      if (block->streams_.empty()) return idle_[block->size_].push_back(block);
    }
    events.emplace();
    for (const S& stream : block->streams_) record_stream(events, stream);
    const std::lock_guard lock(mutex_);
    block->streams_.clear();
    block->event_count_ = events->size();
    if (events->empty()) return idle_[block->size_].push_back(block);
    for (E& event : *events) pending_.emplace_back(std::move(event), block);
  }

  /// Remembers a use of the block with this context, or that begins at `ptr`; false when there is none.
  virtual bool record_event(void* ptr, void* context, c10::Stream stream) {
    const std::lock_guard lock(mutex_);
    auto* block = static_cast<B*>(context);
    if (!blocks_.contains(block)) {
      const auto it = std::ranges::find_if(blocks_, [&](const auto& entry) { return entry.first->ptr_ == ptr; });
      if (it == blocks_.end()) return false;
      block = it->first;
    }
    if (!block->allocated_) return false;
    const S own = own_stream(stream);
    if (std::ranges::find(block->streams_, own) == block->streams_.end()) block->streams_.push_back(own);
    return true;
  }

  /// Gives back what is kept and not in use.
  virtual void empty_cache() {
    process_events();
    const std::lock_guard lock(mutex_);
    for (auto& [size, kept] : idle_) {
      for (B* block : kept) {
        free_block(block);
        stats_.segment.decrease(1);
        stats_.reserved_bytes.decrease(block->size_);
        ++stats_.num_host_free;
        blocks_.erase(block);
      }
      kept.clear();
    }
  }

  virtual HostStats getStats() {
    const std::lock_guard lock(mutex_);
    return stats_;
  }
  virtual void resetAccumulatedStats() {
    const std::lock_guard lock(mutex_);
    for (auto* s : all_stats()) s->reset_accumulated();
    stats_.num_host_alloc = stats_.num_host_free = 0;
  }
  virtual void resetPeakStats() {
    const std::lock_guard lock(mutex_);
    for (auto* s : all_stats()) s->reset_peak();
  }

 protected:
  virtual void allocate_host_memory(std::size_t size, void** ptr) = 0;
  virtual void free_block(B* block) = 0;
  /// Adds an event behind what is in the stream.
  virtual void record_stream(std::optional<std::vector<E>>& events, S stream) = 0;
  /// Has it happened?
  virtual bool query_event(E& event) = 0;

 private:
  static S own_stream(c10::Stream stream) {
    if constexpr (requires { S(S::UNCHECKED, stream); })
      return S(S::UNCHECKED, stream);
    else
      return S(stream);
  }
  std::array<c10::CachingAllocator::Stat*, 4> all_stats() {
    return {&stats_.allocation, &stats_.segment, &stats_.allocated_bytes, &stats_.reserved_bytes};
  }
  B* take(std::size_t size) {
    auto block = std::make_unique<B>();
    block->size_ = size;
    allocate_host_memory(size, &block->ptr_);
    stats_.segment.increase(1);
    stats_.reserved_bytes.increase(size);
    ++stats_.num_host_alloc;
    B* const place = block.get();
    blocks_.emplace(place, std::move(block));
    return place;
  }
  void process_events() {
    const std::lock_guard lock(mutex_);
    while (!pending_.empty() && query_event(pending_.front().first)) {
      B* const block = pending_.front().second;
      pending_.pop_front();
      if (--block->event_count_ == 0) idle_[block->size_].push_back(block);
    }
  }

  std::mutex mutex_;
  std::unordered_map<B*, std::unique_ptr<B>> blocks_;
  std::map<std::size_t, std::vector<B*>> idle_;
  std::deque<std::pair<E, B*>> pending_;
  HostStats stats_;
};

/// The allocator over an Impl, as what setHostAllocator wants.
template <class Impl>
struct CachingHostAllocatorInterface : HostAllocator {
  CachingHostAllocatorInterface() : impl_(std::make_unique<Impl>()) {}
  c10::DataPtr allocate(std::size_t) override { TORCH_CHECK_NOT_IMPLEMENTED(false, "Not implemented for allocate"); }
  void free(void* context) { impl_->free(context); }
  bool record_event(void* ptr, void* context, c10::Stream stream) override { return impl_->record_event(ptr, context, stream); }
  void empty_cache() override { impl_->empty_cache(); }
  HostStats get_stats() override { return impl_->getStats(); }
  void reset_accumulated_stats() override { impl_->resetAccumulatedStats(); }
  void reset_peak_stats() override { impl_->resetPeakStats(); }
  void copy_data(void* target, const void* source, std::size_t n) const override { default_copy_data(target, source, n); }

  std::unique_ptr<Impl> impl_;
};

}  // namespace at

#define DECLARE_HOST_ALLOCATOR(name, impl, deleter, instance)            \
  void deleter(void* context);                                           \
  struct name final : public ::at::CachingHostAllocatorInterface<impl> { \
    ::c10::DataPtr allocate(::std::size_t size) override {               \
      const auto [data, context] = impl_->allocate(size);                \
      return {data, context, &deleter, ::at::DeviceType::CPU};           \
    }                                                                    \
  };                                                                     \
  static name instance;                                                  \
  void deleter(void* context) { instance.free(context); }
