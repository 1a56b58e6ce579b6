// Data loaders: batches of a dataset in a sampler's order, made in this thread or by worker threads that keep some ahead.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <cresset/nn/data.h>
#include <cresset/nn/samplers.h>

namespace cresset::data {

struct DataLoaderOptions {
  DataLoaderOptions() = default;
  DataLoaderOptions(std::size_t batch_size) : batch_size_(batch_size) {}
  CRESSET_ARG(std::size_t, batch_size) = 1;
  /// Threads that make batches; none: the thread that iterates.
  CRESSET_ARG(std::size_t, workers) = 0;
  /// Batches asked for ahead; twice the workers unless given.
  CRESSET_ARG(std::optional<std::size_t>, max_jobs);
  CRESSET_ARG(std::optional<std::chrono::milliseconds>, timeout);
  CRESSET_ARG(bool, enforce_ordering) = true;
  CRESSET_ARG(bool, drop_last) = false;
};

/// A position in an epoch. All iterators of a loader share it.
template <class Batch>
class Iterator {
 public:
  using difference_type = std::ptrdiff_t;
  using value_type = Batch;
  using pointer = Batch*;
  using reference = Batch&;
  using iterator_category = std::input_iterator_tag;

  Iterator() = default;
  explicit Iterator(std::function<std::optional<Batch>()> next) : next_(std::move(next)) { batch_ = next_(); }
  Iterator& operator++() {
    CRESSET_CHECK(batch_, "Attempted to increment iterator past the end");
    batch_ = next_();
    return *this;
  }
  Batch& operator*() {
    CRESSET_CHECK(batch_, "Attempted to dereference iterator that was past the end");
    return *batch_;
  }
  Batch* operator->() { return &**this; }
  /// Only positions at the end are equal to each other.
  bool operator==(const Iterator& other) const { return !batch_ && !other.batch_; }
  bool operator!=(const Iterator& other) const { return !(*this == other); }

 private:
  std::function<std::optional<Batch>()> next_;
  std::optional<Batch> batch_;
};

/// A dataset, the sampler that asks it, and the threads that answer.
template <class Dataset, class Sampler>
class StatelessDataLoader {
 public:
  using BatchType = typename Dataset::BatchType;
  using BatchRequestType = typename Sampler::BatchRequestType;

  StatelessDataLoader(Dataset dataset, Sampler sampler, DataLoaderOptions options)
      : options_(std::move(options)), sampler_(std::move(sampler)), main_(std::move(dataset)) {
    // Workers have datasets of their own, so that get() needs no lock.
    for (std::size_t w = 0; w < options_.workers(); ++w) threads_.emplace_back([this, copy = main_]() mutable { work(copy); });
  }
  StatelessDataLoader(const StatelessDataLoader&) = delete;
  StatelessDataLoader& operator=(const StatelessDataLoader&) = delete;
  ~StatelessDataLoader() { join(); }

  Iterator<BatchType> begin() {
    CRESSET_CHECK(!in_epoch_, "Attempted to get a new DataLoader iterator while another iterator is not yet exhausted");
    in_epoch_ = true;
    sampler_.reset(std::nullopt);
    {
      const std::lock_guard lock(mutex_);
      asked_ = given_ = 0;
      done_.clear();
    }
    const std::size_t ahead = threads_.empty() ? 0 : options_.max_jobs().value_or(2 * options_.workers());
    for (std::size_t i = 0; i < ahead; ++i) ask();
    return Iterator<BatchType>([this] { return next(); });
  }
  Iterator<BatchType> end() { return {}; }
  const DataLoaderOptions& options() const { return options_; }
  /// Ends the threads.
  void join() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& t : threads_) t.join();
    threads_.clear();
  }

 private:
  struct Answer {
    std::optional<BatchType> batch;
    std::exception_ptr error;
  };

  std::optional<BatchRequestType> next_request() {
    auto request = sampler_.next(options_.batch_size());
    if (request && options_.drop_last() && request->size() < options_.batch_size()) return std::nullopt;
    return request;
  }
  bool ask() {
    auto request = next_request();
    if (!request) return false;
    {
      const std::lock_guard lock(mutex_);
      jobs_.emplace_back(asked_++, std::move(*request));
    }
    wake_.notify_one();
    return true;
  }
  void work(Dataset& dataset) {
    for (;;) {
      std::pair<std::size_t, BatchRequestType> job;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
        if (stopping_) return;
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
      Answer answer;
      try {
        answer.batch.emplace(dataset.get_batch(job.second));
      } catch (...) {
        answer.error = std::current_exception();
      }
      {
        const std::lock_guard lock(mutex_);
        done_.emplace(job.first, std::move(answer));
      }
      ready_.notify_one();
    }
  }
  std::optional<BatchType> next() {
    if (threads_.empty()) {
      auto request = next_request();
      if (!request) return finished();
      return main_.get_batch(*request);
    }
    std::unique_lock lock(mutex_);
    if (given_ == asked_) return finished();
    const auto arrived = [&] { return options_.enforce_ordering() ? done_.count(given_) != 0 : !done_.empty(); };
    if (options_.timeout())
      CRESSET_CHECK(ready_.wait_for(lock, *options_.timeout(), arrived),
                    "Timeout in DataLoader queue while waiting for next batch (timeout was ", options_.timeout()->count(), " ms)");
    else
      ready_.wait(lock, arrived);
    const auto it = options_.enforce_ordering() ? done_.find(given_) : done_.begin();
    Answer answer = std::move(it->second);
    done_.erase(it);
    ++given_;
    lock.unlock();
    ask();
    if (answer.error) {
      in_epoch_ = false;
      std::rethrow_exception(answer.error);
    }
    return std::move(answer.batch);
  }
  std::optional<BatchType> finished() {
    in_epoch_ = false;
    return std::nullopt;
  }

  DataLoaderOptions options_;
  Sampler sampler_;
  Dataset main_;
  bool in_epoch_ = false;
  std::mutex mutex_;
  std::condition_variable wake_, ready_;
  std::deque<std::pair<std::size_t, BatchRequestType>> jobs_;
  std::map<std::size_t, Answer> done_;
  std::size_t asked_ = 0, given_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

/// A dataset that keeps its own place.
template <class Dataset>
class StatefulDataLoader {
 public:
  using BatchType = typename Dataset::BatchType::value_type;
  StatefulDataLoader(Dataset dataset, DataLoaderOptions options) : dataset_(std::move(dataset)), options_(std::move(options)) {}
  Iterator<BatchType> begin() {
    dataset_.reset();
    return Iterator<BatchType>([this]() -> std::optional<BatchType> { return dataset_.get_batch(options_.batch_size()); });
  }
  Iterator<BatchType> end() { return {}; }
  const DataLoaderOptions& options() const { return options_; }
  void join() {}

 private:
  Dataset dataset_;
  DataLoaderOptions options_;
};

template <class Dataset, class Sampler, std::enable_if_t<!Dataset::is_stateful, int> = 0>
std::unique_ptr<StatelessDataLoader<Dataset, Sampler>> make_data_loader(Dataset dataset, Sampler sampler, DataLoaderOptions options) {
  return std::make_unique<StatelessDataLoader<Dataset, Sampler>>(std::move(dataset), std::move(sampler), std::move(options));
}
/// With a sampler of the dataset's size: random unless another class is named.
template <class Sampler = samplers::RandomSampler, class Dataset, std::enable_if_t<!Dataset::is_stateful, int> = 0>
std::unique_ptr<StatelessDataLoader<Dataset, Sampler>> make_data_loader(Dataset dataset, DataLoaderOptions options = DataLoaderOptions()) {
  const std::optional<std::size_t> size = dataset.size();
  CRESSET_CHECK(size, "Expected the dataset to be sized in order to construct the Sampler");
  return make_data_loader(std::move(dataset), Sampler(*size), std::move(options));
}
template <class Dataset, std::enable_if_t<Dataset::is_stateful, int> = 0>
std::unique_ptr<StatefulDataLoader<Dataset>> make_data_loader(Dataset dataset, DataLoaderOptions options = DataLoaderOptions()) {
  return std::make_unique<StatefulDataLoader<Dataset>>(std::move(dataset), std::move(options));
}

}  // namespace cresset::data
