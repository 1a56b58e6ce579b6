// Memory of the host as sources for PyTorch make it for their devices: blocks are kept, and wait for the streams that used them.
#include <cstdio>
#include <cstdlib>

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/ops/_copy_from_and_resize.h>
#include <ATen/ops/_to_cpu.h>
#include <c10/core/AllocatorConfig.h>
#include <torch/torch.h>

namespace {

bool queue_is_empty = false;
int freed = 0;

struct Event {
  bool* happened;
};
struct Driver : at::CachingHostAllocatorImpl<c10::Stream, Event> {
  void allocate_host_memory(size_t size, void** ptr) override { *ptr = std::malloc(size); }
  void free_block(at::HostBlock<c10::Stream>* block) override {
    std::free(block->ptr_);
    ++freed;
  }
  void record_stream(std::optional<std::vector<Event>>& events, c10::Stream) override { events->push_back({&queue_is_empty}); }
  bool query_event(Event& event) override { return *event.happened; }
};
DECLARE_HOST_ALLOCATOR(DriverAllocator, Driver, free_driver_block, driver_allocator)
REGISTER_HOST_ALLOCATOR(at::kPrivateUse1, &driver_allocator)

}  // namespace

int main() {
  at::HostAllocator& host = *at::getHostAllocator(at::kPrivateUse1);
  const c10::Stream stream(c10::Stream::DEFAULT, c10::Device(at::kPrivateUse1, 0));
  const void* first = host.allocate(1000).get();
  {
    const at::DataPtr again = host.allocate(600);
    std::printf("%d %d", again.get() == first, host.record_event(again.get(), again.get_context(), stream));
    int elsewhere = 0;
    std::printf(" %d\n", host.record_event(&elsewhere, nullptr, stream));
  }
  std::printf("%d", host.allocate(1000).get() == first);
  host.empty_cache();
  std::printf(" %d", freed);
  queue_is_empty = true;
  host.empty_cache();
  const at::HostStats stats = host.get_stats();
  std::printf(" %d %d %d %d\n", freed, int(stats.num_host_alloc), int(stats.segment.current), int(stats.allocation.allocated));
  using Config = c10::CachingAllocator::AcceleratorAllocatorConfig;
  std::printf("%zu %.1f %d %d %zu\n", Config::max_split_size() >> 20, Config::garbage_collection_threshold(),
              Config::use_expandable_segments(), Config::pinned_use_background_threads(), Config::large_segment_size() >> 20);
  at::Tensor to = at::zeros({1});
  at::_copy_from_and_resize(at::ones({3}), to);
  std::printf("%d %d\n", int(to.sum().item<int64_t>()), int(at::_to_cpu({to, at::Tensor()}).size()));
}
