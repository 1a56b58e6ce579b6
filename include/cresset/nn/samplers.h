// The order in which a data loader asks for examples.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include <cresset/core/tensor.h>
#include <cresset/nn/archive.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_random.h>

namespace cresset::data::samplers {

template <class BatchRequest = std::vector<std::size_t>>
class Sampler {
 public:
  using BatchRequestType = BatchRequest;
  virtual ~Sampler() = default;
  /// Starts anew, for another size when one is given.
  virtual void reset(std::optional<std::size_t> new_size) = 0;
  /// The next request, nothing at the end.
  virtual std::optional<BatchRequest> next(std::size_t batch_size) = 0;
  virtual void save(serialize::OutputArchive& archive) const = 0;
  virtual void load(serialize::InputArchive& archive) = 0;
};

template <class BatchRequest>
serialize::OutputArchive& operator<<(serialize::OutputArchive& archive, const Sampler<BatchRequest>& sampler) {
  sampler.save(archive);
  return archive;
}
template <class BatchRequest>
serialize::InputArchive& operator>>(serialize::InputArchive& archive, Sampler<BatchRequest>& sampler) {
  sampler.load(archive);
  return archive;
}

/// A request that is no list of indices.
struct CustomBatchRequest {
  virtual ~CustomBatchRequest() = default;
  /// The examples that are asked for.
  virtual std::size_t size() const = 0;
};
/// A number of examples.
struct BatchSize : CustomBatchRequest {
  explicit BatchSize(std::size_t size) : size_(size) {}
  std::size_t size() const noexcept override { return size_; }
  operator std::size_t() const noexcept { return size_; }

 private:
  std::size_t size_;
};

/// Asks for numbers of examples, as many as an epoch has.
class StreamSampler : public Sampler<BatchSize> {
 public:
  explicit StreamSampler(std::size_t epoch_size) : epoch_size_(epoch_size) {}
  void reset(std::optional<std::size_t> new_size = std::nullopt) override {
    given_ = 0;
    epoch_size_ = new_size.value_or(epoch_size_);
  }
  std::optional<BatchSize> next(std::size_t batch_size) override {
    if (given_ >= epoch_size_) return std::nullopt;
    batch_size = std::min(batch_size, epoch_size_ - given_);
    given_ += batch_size;
    return BatchSize(batch_size);
  }
  void save(serialize::OutputArchive& archive) const override { archive.write("given", IValue(static_cast<int64_t>(given_))); }
  void load(serialize::InputArchive& archive) override {
    IValue given;
    archive.read("given", given);
    given_ = static_cast<std::size_t>(given.toInt());
  }

 private:
  std::size_t epoch_size_, given_ = 0;
};

/// Indices in the order of a list that reset() makes.
class ListSampler : public Sampler<> {
 public:
  std::optional<std::vector<std::size_t>> next(std::size_t batch_size) override {
    if (at_ >= order_.size()) return std::nullopt;
    const std::size_t n = std::min(batch_size, order_.size() - at_);
    const auto first = order_.begin() + static_cast<std::ptrdiff_t>(at_);
    at_ += n;
    return std::vector<std::size_t>(first, first + static_cast<std::ptrdiff_t>(n));
  }
  std::size_t index() const noexcept { return at_; }
  void save(serialize::OutputArchive& archive) const override {
    Tensor order = cresset::empty({static_cast<int64_t>(order_.size())}, TensorOptions(kLong));
    std::copy(order_.begin(), order_.end(), order.data_ptr<int64_t>());
    archive.write("index", IValue(static_cast<int64_t>(at_)));
    archive.write("order", order, true);
  }
  void load(serialize::InputArchive& archive) override {
    IValue at;
    Tensor order;
    archive.read("index", at);
    archive.read("order", order, true);
    at_ = static_cast<std::size_t>(at.toInt());
    order = order.to(kLong).contiguous();
    order_.assign(order.data_ptr<int64_t>(), order.data_ptr<int64_t>() + order.numel());
  }

 protected:
  std::vector<std::size_t> order_;
  std::size_t at_ = 0;
};

class SequentialSampler : public ListSampler {
 public:
  explicit SequentialSampler(std::size_t size) { SequentialSampler::reset(size); }
  void reset(std::optional<std::size_t> new_size = std::nullopt) override {
    order_.resize(new_size.value_or(order_.size()));
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    at_ = 0;
  }
};

/// Every index once, in an order drawn from the default CPU generator.
class RandomSampler : public ListSampler {
 public:
  explicit RandomSampler(int64_t size, ScalarType = kLong) { RandomSampler::reset(static_cast<std::size_t>(size)); }
  void reset(std::optional<std::size_t> new_size = std::nullopt) override {
    order_.resize(new_size.value_or(order_.size()));
    const Tensor order = cresset::randperm(static_cast<int64_t>(order_.size()), TensorOptions(kLong));
    std::copy(order.data_ptr<int64_t>(), order.data_ptr<int64_t>() + order.numel(), order_.begin());
    at_ = 0;
  }
};

/// The part of a sequence that belongs to one of several processes. All parts have the same length: with allow_duplicates the sequence
/// begins again where it is too short, else what is left over is left out.
class DistributedSequentialSampler : public ListSampler {
 public:
  explicit DistributedSequentialSampler(std::size_t size, std::size_t num_replicas = 1, std::size_t rank = 0, bool allow_duplicates = true)
      : size_(size), replicas_(num_replicas), rank_(rank), duplicates_(allow_duplicates) {
    CRESSET_CHECK_VALUE(rank < num_replicas, "DistributedSampler: a rank under ", num_replicas, " was required; ", rank, " was given.");
    DistributedSequentialSampler::reset(size);
  }
  void reset(std::optional<std::size_t> new_size = std::nullopt) override {
    size_ = new_size.value_or(size_);
    std::vector<std::size_t> all(count());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    take(all);
  }

 protected:
  std::size_t part() const { return duplicates_ ? (size_ + replicas_ - 1) / replicas_ : size_ / replicas_; }
  /// Of all parts together.
  std::size_t count() const { return part() * replicas_; }
  /// This process's part of the places.
  void take(const std::vector<std::size_t>& all) {
    order_.clear();
    for (std::size_t i = 0; i < part(); ++i) order_.push_back(all[rank_ * part() + i] % size_);
    at_ = 0;
  }
  std::size_t size_, replicas_, rank_;
  bool duplicates_;
};

/// The same of an order drawn anew for every epoch; set_epoch() tells all processes which.
class DistributedRandomSampler : public DistributedSequentialSampler {
 public:
  explicit DistributedRandomSampler(std::size_t size, std::size_t num_replicas = 1, std::size_t rank = 0, bool allow_duplicates = true)
      : DistributedSequentialSampler(size, num_replicas, rank, allow_duplicates) {
    DistributedRandomSampler::reset(size);
  }
  void set_epoch(std::size_t epoch) { epoch_ = epoch; }
  std::size_t epoch() const { return epoch_; }
  void save(serialize::OutputArchive& archive) const override {
    ListSampler::save(archive);
    archive.write("epoch", IValue(static_cast<int64_t>(epoch_)));
  }
  void load(serialize::InputArchive& archive) override {
    ListSampler::load(archive);
    IValue epoch;
    archive.read("epoch", epoch);
    epoch_ = static_cast<std::size_t>(epoch.toInt());
  }
  void reset(std::optional<std::size_t> new_size = std::nullopt) override {
    size_ = new_size.value_or(size_);
    const Tensor order = cresset::randperm(static_cast<int64_t>(count()), make_cpu_generator(epoch_), TensorOptions(kLong));
    take({order.data_ptr<int64_t>(), order.data_ptr<int64_t>() + order.numel()});
  }

 private:
  std::size_t epoch_ = 0;
};

}  // namespace cresset::data::samplers
