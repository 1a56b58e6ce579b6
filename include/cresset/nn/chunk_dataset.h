// Datasets of chunks (files, say): threads read whole chunks ahead, and batches come out of a cache.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <cresset/nn/data_loader.h>

namespace cresset::data::datasets {

/// Reads chunks by number. read_chunk() is called by several threads where there are several preloaders.
template <class Example_, class Chunk = std::vector<Example_>>
class ChunkDataReader {
 public:
  using ExampleType = Example_;
  using ChunkType = Chunk;
  using BatchType = Chunk;
  virtual ~ChunkDataReader() = default;
  virtual ChunkType read_chunk(std::size_t chunk_index) = 0;
  virtual std::size_t chunk_count() = 0;
  /// Called when an epoch begins.
  virtual void reset() = 0;
};

struct ChunkDatasetOptions {
  ChunkDatasetOptions(std::size_t preloader_count, std::size_t batch_size, std::size_t cache_size = 2048,
                      std::size_t cross_chunk_shuffle_count = 1)
      : preloader_count_(preloader_count),
        batch_size_(batch_size),
        cache_size_(cache_size),
        cross_chunk_shuffle_count_(cross_chunk_shuffle_count) {
    CRESSET_CHECK(preloader_count > 0, "Preloader count is 0. At least one preloader needs to be specified.");
    CRESSET_CHECK(batch_size > 0, "Batch size is 0. A positive batch size needs to be specified.");
    CRESSET_CHECK(cache_size > 0, "Cache size is 0. A positive cache size needs to be specified.");
    CRESSET_CHECK(cache_size >= batch_size,
                  "Cache size is less than batch size. Cache needs to be large enough to hold at least one batch.");
    CRESSET_CHECK(cross_chunk_shuffle_count > 0, "cross_chunk_shuffle_count needs to be greater than 0.");
  }
  /// Threads that read chunks.
  CRESSET_ARG(std::size_t, preloader_count);
  CRESSET_ARG(std::size_t, batch_size);
  /// Examples that may wait; readers wait for their turn above it.
  CRESSET_ARG(std::size_t, cache_size);
  /// Chunks that are read together, so that the sampler of examples mixes them.
  CRESSET_ARG(std::size_t, cross_chunk_shuffle_count);
};

namespace detail {

/// Batches between the threads that read and those that ask.
template <class Batch, class ExampleSampler>
class BatchDataBuffer {
 public:
  BatchDataBuffer(std::size_t batch_size, ExampleSampler& sampler, std::size_t capacity)
      : batch_size_(batch_size), capacity_(capacity), sampler_(sampler) {}

  /// The next batch; nothing when all is read and given. Raises the error of a reader.
  std::optional<Batch> get_batch() {
    std::unique_lock lock(mutex_);
    readable_.wait(lock, [this] { return stopped_ || waiting_ >= batch_size_ || (!queue_.empty() && queue_.front().exception); });
    if (queue_.empty()) return std::nullopt;
    Entry entry = std::move(queue_.front());
    queue_.pop_front();
    waiting_ -= entry.batch.size();
    lock.unlock();
    writable_.notify_all();
    if (entry.exception) throw WorkerException(entry.exception);
    return std::move(entry.batch);
  }
  /// Adds the examples in the sampler's order; the last batch is filled first.
  void add(Batch data) {
    std::unique_lock lock(mutex_);
    writable_.wait(lock, [this] { return stopped_ || waiting_ < capacity_; });
    if (stopped_) return;
    std::size_t left = data.size();
    waiting_ += left;
    sampler_.reset(left);
    const auto fill = [&](Batch& batch) {
      const std::size_t count = std::min(left, batch_size_ - batch.size());
      const auto indices = sampler_.next(count);
      CRESSET_CHECK(indices && indices->size() == count,
                    "ChunkDataset: the example sampler gave not as many indices as there are examples.");
      for (const std::size_t i : *indices) batch.push_back(std::move(data.at(i)));
      left -= count;
    };
    if (left > 0 && !queue_.empty() && !queue_.back().exception && queue_.back().batch.size() < batch_size_) fill(queue_.back().batch);
    while (left > 0) fill(queue_.emplace_back().batch);
    lock.unlock();
    readable_.notify_all();
  }
  void add(std::exception_ptr exception) {
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) return;
      queue_.push_back({{}, std::move(exception)});
    }
    readable_.notify_all();
  }
  /// Nothing more will come; nobody waits any longer.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    readable_.notify_all();
    writable_.notify_all();
  }

 private:
  struct Entry {
    Batch batch;
    std::exception_ptr exception;
  };
  const std::size_t batch_size_, capacity_;
  ExampleSampler& sampler_;
  std::mutex mutex_;
  std::condition_variable readable_, writable_;
  std::deque<Entry> queue_;
  std::size_t waiting_ = 0;  // examples in the queue
  bool stopped_ = false;
};

}  // namespace detail

/// Reads the chunks that one sampler names, mixes the examples of each by another and gives them as batches. reset() begins an epoch.
template <class ChunkReader, class ChunkSampler = samplers::RandomSampler, class ExampleSampler = samplers::RandomSampler>
class ChunkDataset final
    : public StatefulDataset<ChunkDataset<ChunkReader, ChunkSampler, ExampleSampler>, typename ChunkReader::BatchType, std::size_t> {
 public:
  using UnwrappedBatchType = typename ChunkReader::BatchType;
  using BatchType = std::optional<UnwrappedBatchType>;
  using BatchRequestType = std::size_t;
  using ChunkSamplerType = ChunkSampler;
  using ExampleSamplerType = ExampleSampler;

  /// The policy, where there is one, changes what was read before it is mixed.
  ChunkDataset(ChunkReader chunk_reader, ChunkSampler chunk_sampler, ExampleSampler example_sampler, ChunkDatasetOptions options,
               std::function<void(UnwrappedBatchType&)> preprocessing_policy = nullptr)
      : reader_(std::move(chunk_reader)),
        chunk_sampler_(std::move(chunk_sampler)),
        example_sampler_(std::move(example_sampler)),
        options_(std::move(options)),
        policy_(std::move(preprocessing_policy)) {}
  ChunkDataset(const ChunkDataset&) = delete;
  ChunkDataset& operator=(const ChunkDataset&) = delete;
  ~ChunkDataset() override { end_threads(); }

  BatchType get_batch(std::size_t batch_size) override {
    CRESSET_CHECK(buffer_, "Dataset needs to call reset() before calling get_batch().");
    CRESSET_CHECK(batch_size == options_.batch_size(),
                  "The requested batch size does not match with the initialized batch size.\n The requested batch size is ", batch_size,
                  ", while the dataset is created with batch size equal to ", options_.batch_size());
    return buffer_->get_batch();
  }
  BatchType get_batch() { return get_batch(options_.batch_size()); }
  std::optional<std::size_t> size() const override { return std::nullopt; }

  void reset() override {
    end_threads();
    if (!continues_) {
      reader_.reset();
      chunk_sampler_.reset(reader_.chunk_count());
    }
    continues_ = false;
    quit_ = false;
    buffer_ = std::make_unique<Buffer>(options_.batch_size(), example_sampler_, options_.cache_size());
    running_ = options_.preloader_count();
    for (std::size_t i = 0; i < options_.preloader_count(); ++i) preloaders_.emplace_back([this] { preload(); });
  }

  /// The place of the sampler of chunks. Chunks that are read and not given yet count as given. The next epoch after load() continues
  /// there.
  void save(serialize::OutputArchive& archive) const override {
    const std::lock_guard lock(mutex_);
    chunk_sampler_.save(archive);
  }
  void load(serialize::InputArchive& archive) override {
    const std::lock_guard lock(mutex_);
    chunk_sampler_.load(archive);
    continues_ = true;
  }
  /// Its threads use it, too, while an epoch runs.
  ChunkSampler& chunk_sampler() { return chunk_sampler_; }

 private:
  using Buffer = detail::BatchDataBuffer<UnwrappedBatchType, ExampleSampler>;

  std::optional<std::vector<std::size_t>> next_chunks() {
    const std::lock_guard lock(mutex_);
    if (quit_) return std::nullopt;
    return chunk_sampler_.next(options_.cross_chunk_shuffle_count());
  }
  void preload() {
    try {
      while (const auto chunks = next_chunks()) {
        UnwrappedBatchType data;
        for (const std::size_t chunk : *chunks) {
          UnwrappedBatchType read = reader_.read_chunk(chunk);
          std::move(read.begin(), read.end(), std::back_inserter(data));
        }
        if (policy_) policy_(data);
        if (!data.empty()) buffer_->add(std::move(data));
      }
    } catch (...) {
      buffer_->add(std::current_exception());
    }
    const std::lock_guard lock(mutex_);
    if (--running_ == 0) buffer_->stop();
  }
  void end_threads() {
    {
      const std::lock_guard lock(mutex_);
      quit_ = true;
    }
    if (buffer_) buffer_->stop();
    for (std::thread& t : preloaders_) t.join();
    preloaders_.clear();
  }

  ChunkReader reader_;
  ChunkSampler chunk_sampler_;
  ExampleSampler example_sampler_;
  const ChunkDatasetOptions options_;
  const std::function<void(UnwrappedBatchType&)> policy_;
  mutable std::mutex mutex_;  // of the chunk sampler and the two below
  bool quit_ = false;
  std::size_t running_ = 0;
  bool continues_ = false;
  std::unique_ptr<Buffer> buffer_;
  std::vector<std::thread> preloaders_;
};

}  // namespace cresset::data::datasets
