// What passes between a data loader and its worker threads, and the order in which it comes out.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include <cresset/base/error.h>

namespace cresset::data::detail {

/// A queue for several threads.
template <class T>
class Queue {
 public:
  void push(T value) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push(std::move(value));
    }
    filled_.notify_one();
  }
  /// Waits for a value; raises when none came in the given time.
  T pop(std::optional<std::chrono::milliseconds> timeout = std::nullopt) {
    std::unique_lock lock(mutex_);
    const auto has_one = [this] { return !queue_.empty(); };
    if (timeout)
      CRESSET_CHECK(filled_.wait_for(lock, *timeout, has_one), "Timeout in DataLoader queue while waiting for next batch (timeout was ",
                    static_cast<int64_t>(timeout->count()), " ms)");
    else
      filled_.wait(lock, has_one);
    T value = std::move(queue_.front());
    queue_.pop();
    return value;
  }
  /// Drops everything and says how much it was.
  std::size_t clear() {
    const std::lock_guard lock(mutex_);
    const std::size_t size = queue_.size();
    queue_ = {};
    return size;
  }

 private:
  std::queue<T> queue_;
  std::mutex mutex_;
  std::condition_variable filled_;
};

/// Jobs on their way to the workers and results on their way back. One thread gives jobs and takes results.
template <class Job, class Result>
class DataShuttle {
 public:
  void push_job(Job job) {
    jobs_.push(std::move(job));
    ++in_flight_;
  }
  void push_result(Result result) { results_.push(std::move(result)); }
  Job pop_job() { return jobs_.pop(); }
  /// Waits for the next result; nothing when no job is on its way.
  std::optional<Result> pop_result(std::optional<std::chrono::milliseconds> timeout = std::nullopt) {
    if (in_flight_ == 0) return std::nullopt;
    std::optional<Result> result(results_.pop(timeout));
    --in_flight_;
    return result;
  }
  /// Takes back the jobs that nobody has begun and drops the results of the others.
  void drain() {
    in_flight_ -= jobs_.clear();
    while (in_flight_ != 0) pop_result();
  }
  std::size_t in_flight_jobs() const noexcept { return in_flight_; }

 private:
  Queue<Job> jobs_;
  Queue<Result> results_;
  std::size_t in_flight_ = 0;
};

namespace sequencers {

/// Gives out results in an order of its own; next() asks the function for more until it has one or there are none.
template <class Result>
class Sequencer {
 public:
  using ResultProducer = std::function<std::optional<Result>()>;
  virtual ~Sequencer() = default;
  virtual std::optional<Result> next(ResultProducer next_result) = 0;
};

/// As they come.
template <class Result>
class NoSequencer final : public Sequencer<Result> {
 public:
  using typename Sequencer<Result>::ResultProducer;
  std::optional<Result> next(ResultProducer next_result) override { return next_result(); }
};

/// By their `sequence_number`. No more than max_jobs results may be ahead of the next one.
template <class Result>
class OrderedSequencer final : public Sequencer<Result> {
 public:
  using typename Sequencer<Result>::ResultProducer;
  explicit OrderedSequencer(std::size_t max_jobs) : buffer_(max_jobs) {}
  std::optional<Result> next(ResultProducer next_result) override {
    for (std::optional<Result>* kept = &slot(next_sequence_number_); !kept->has_value();) {
      std::optional<Result> result = next_result();
      if (!result) return std::nullopt;
      slot(result->sequence_number) = std::move(result);
    }
    return std::exchange(slot(next_sequence_number_++), std::nullopt);
  }

  std::size_t next_sequence_number_ = 0;
  std::vector<std::optional<Result>> buffer_;

 private:
  std::optional<Result>& slot(std::size_t number) { return buffer_.at(number % buffer_.size()); }
};

}  // namespace sequencers
}  // namespace cresset::data::detail
