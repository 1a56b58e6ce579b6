// Data loaders: batches of a dataset in a sampler's order, made in this thread or by worker threads that keep some ahead.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <cresset/nn/data.h>
#include <cresset/nn/data_shuttle.h>
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
  /// How long a batch may take; without end unless given.
  CRESSET_ARG(std::optional<std::chrono::milliseconds>, timeout);
  CRESSET_ARG(bool, enforce_ordering) = true;
  CRESSET_ARG(bool, drop_last) = false;
};
/// The options with everything decided.
struct FullDataLoaderOptions {
  explicit FullDataLoaderOptions(const DataLoaderOptions& options)
      : batch_size(options.batch_size()),
        workers(options.workers()),
        max_jobs(options.max_jobs().value_or(2 * workers)),
        timeout(options.timeout()),
        enforce_ordering(options.enforce_ordering()),
        drop_last(options.drop_last()) {}
  std::size_t batch_size, workers, max_jobs;
  std::optional<std::chrono::milliseconds> timeout;
  bool enforce_ordering, drop_last;
};

/// What iterating raises for an error of a worker thread.
struct WorkerException : public std::exception {
  explicit WorkerException(std::exception_ptr original) : original_exception(std::move(original)) {
    message = "Caught exception in DataLoader worker thread.";
    try {
      std::rethrow_exception(original_exception);
    } catch (const std::exception& error) {
      message += std::string(" Original message: ") + error.what();
    } catch (...) {
      message += " It is no std::exception.";
    }
  }
  const char* what() const noexcept override { return message.c_str(); }
  std::string message;
  std::exception_ptr original_exception;
};

/// A position in an epoch; copies share it. Batches are made when they are first asked for.
template <class Batch>
class Iterator {
 public:
  using difference_type = std::ptrdiff_t;
  using value_type = Batch;
  using pointer = Batch*;
  using reference = Batch&;
  using iterator_category = std::input_iterator_tag;

  /// The end.
  Iterator() = default;
  explicit Iterator(std::function<std::optional<Batch>()> next) : place_(std::make_shared<Place>()) { place_->next = std::move(next); }
  Iterator& operator++() {
    CRESSET_CHECK(place_, "Incrementing the DataLoader's past-the-end iterator is not allowed");
    CRESSET_CHECK(place_->current(), "Attempted to increment iterator past the end");
    place_->batch = place_->next();
    return *this;
  }
  Batch& operator*() {
    CRESSET_CHECK(place_, "Dereferencing the DataLoader's past-the-end iterator is not allowed");
    CRESSET_CHECK(place_->current(), "Attempted to dereference iterator that was past the end");
    return *place_->batch;
  }
  Batch* operator->() { return &**this; }
  /// Equal are copies of each other, and an exhausted one and the end.
  bool operator==(const Iterator& other) const {
    if (place_ && other.place_) return place_ == other.place_;
    return (!place_ || !place_->current()) && (!other.place_ || !other.place_->current());
  }
  bool operator!=(const Iterator& other) const { return !(*this == other); }

 private:
  struct Place {
    const std::optional<Batch>& current() {
      if (!begun) batch = next();
      begun = true;
      return batch;
    }
    std::function<std::optional<Batch>()> next;
    std::optional<Batch> batch;
    bool begun = false;
  };
  std::shared_ptr<Place> place_;
};

/// A dataset and the threads that answer its requests; what is asked for is the business of the two classes below.
template <class Dataset, class Batch, class BatchRequest>
class DataLoaderBase {
 public:
  using BatchType = Batch;
  using BatchRequestType = BatchRequest;

  DataLoaderBase(DataLoaderOptions options, std::unique_ptr<Dataset> dataset = nullptr)
      : options_(options), main_dataset_(std::move(dataset)), sequencer_(new_sequencer()) {}
  DataLoaderBase(const DataLoaderBase&) = delete;
  DataLoaderBase& operator=(const DataLoaderBase&) = delete;
  virtual ~DataLoaderBase() { join(); }

  Iterator<Batch> begin() {
    CRESSET_CHECK(shuttle_.in_flight_jobs() == 0, "Attempted to get a new DataLoader iterator while another iterator is not yet exhausted");
    reset();
    return Iterator<Batch>([this] { return next(); });
  }
  Iterator<Batch> end() { return {}; }
  const FullDataLoaderOptions& options() const noexcept { return options_; }
  /// Ends the threads.
  void join() {
    if (workers_.empty()) return;
    shuttle_.drain();
    for (std::size_t w = 0; w < workers_.size(); ++w) shuttle_.push_job(Job{});
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
  }

 protected:
  /// A request, or the word to quit.
  struct Job {
    std::optional<BatchRequest> request;
    std::size_t sequence_number = 0;
  };
  struct Result {
    std::optional<Batch> batch;
    std::exception_ptr exception;
    std::size_t sequence_number = 0;
  };

  /// What to ask for next; nothing when the epoch is over.
  virtual std::optional<BatchRequest> get_batch_request() = 0;
  virtual void reset() {
    shuttle_.drain();
    sequence_number_ = 0;
    sequencer_ = new_sequencer();
    if (!workers_.empty()) prefetch(options_.max_jobs);
  }
  void work(Dataset& dataset) {
    for (;;) {
      Job job = shuttle_.pop_job();
      if (!job.request) return;
      Result result;
      result.sequence_number = job.sequence_number;
      try {
        result.batch = std::optional<Batch>(dataset.get_batch(std::move(*job.request)));
      } catch (...) {
        result.exception = std::current_exception();
      }
      shuttle_.push_result(std::move(result));
    }
  }

  const FullDataLoaderOptions options_;
  std::unique_ptr<Dataset> main_dataset_;
  std::vector<std::thread> workers_;

 private:
  using Sequencer = detail::sequencers::Sequencer<Result>;

  std::unique_ptr<Sequencer> new_sequencer() const {
    if (options_.enforce_ordering && options_.max_jobs > 0)
      return std::make_unique<detail::sequencers::OrderedSequencer<Result>>(options_.max_jobs);
    return std::make_unique<detail::sequencers::NoSequencer<Result>>();
  }
  void prefetch(std::size_t jobs) {
    for (std::size_t i = 0; i < jobs; ++i) {
      std::optional<BatchRequest> request = get_batch_request();
      if (!request) return;
      shuttle_.push_job({std::move(request), sequence_number_++});
    }
  }
  std::optional<Batch> next() {
    if (workers_.empty()) {
      std::optional<BatchRequest> request = get_batch_request();
      if (!request) return std::nullopt;
      return main_dataset_->get_batch(std::move(*request));
    }
    while (std::optional<Result> result = sequencer_->next([this] { return shuttle_.pop_result(options_.timeout); })) {
      if (result->exception) throw WorkerException(result->exception);
      if (!result->batch) continue;  // a dataset that keeps its own place is exhausted
      prefetch(1);
      return std::move(result->batch);
    }
    return std::nullopt;
  }

  detail::DataShuttle<Job, Result> shuttle_;
  std::size_t sequence_number_ = 0;
  std::unique_ptr<Sequencer> sequencer_;
};

/// A dataset and the sampler that asks it. Workers have copies of the dataset, so that get() needs no lock.
template <class Dataset, class Sampler>
class StatelessDataLoader : public DataLoaderBase<Dataset, typename Dataset::BatchType, typename Sampler::BatchRequestType> {
  using Base = DataLoaderBase<Dataset, typename Dataset::BatchType, typename Sampler::BatchRequestType>;

 public:
  StatelessDataLoader(Dataset dataset, Sampler sampler, DataLoaderOptions options)
      : Base(std::move(options)), sampler_(std::move(sampler)) {
    for (std::size_t w = 0; w < this->options_.workers; ++w)
      this->workers_.emplace_back([this, dataset]() mutable { this->work(dataset); });
    if (this->options_.workers == 0) this->main_dataset_ = std::make_unique<Dataset>(std::move(dataset));
  }
  ~StatelessDataLoader() override { this->join(); }

 private:
  std::optional<typename Sampler::BatchRequestType> get_batch_request() override {
    auto request = sampler_.next(this->options_.batch_size);
    if (request && this->options_.drop_last && request->size() < this->options_.batch_size) return std::nullopt;
    return request;
  }
  void reset() override {
    sampler_.reset(std::nullopt);
    Base::reset();
  }
  Sampler sampler_;
};

/// A dataset that keeps its own place. Workers share it: it must be made for several threads where there are any.
template <class Dataset>
class StatefulDataLoader : public DataLoaderBase<Dataset, typename Dataset::BatchType::value_type, typename Dataset::BatchRequestType> {
  using Base = DataLoaderBase<Dataset, typename Dataset::BatchType::value_type, typename Dataset::BatchRequestType>;

 public:
  StatefulDataLoader(Dataset dataset, DataLoaderOptions options) : Base(std::move(options), std::make_unique<Dataset>(std::move(dataset))) {
    for (std::size_t w = 0; w < this->options_.workers; ++w) this->workers_.emplace_back([this] { work_shared(); });
  }
  ~StatefulDataLoader() override { this->join(); }

 private:
  void work_shared() { this->work(*this->main_dataset_); }
  std::optional<typename Dataset::BatchRequestType> get_batch_request() override { return this->options_.batch_size; }
  void reset() override {
    this->main_dataset_->reset();
    Base::reset();
  }
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
