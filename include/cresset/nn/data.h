// Datasets and transforms for C++ training loops, under PyTorch's names.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <cresset/core/tensor.h>
#include <cresset/nn/archive.h>
#include <cresset/nn/arg.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_creation.h>

namespace cresset::data {

/// One piece of data and what belongs to it.
template <class Data = Tensor, class Target = Tensor>
struct Example {
  using DataType = Data;
  using TargetType = Target;
  Example() = default;
  Example(Data data, Target target) : data(std::move(data)), target(std::move(target)) {}
  Data data;
  Target target;
};
namespace example {
struct NoTarget {};
}  // namespace example
template <class Data>
struct Example<Data, example::NoTarget> {
  using DataType = Data;
  using TargetType = example::NoTarget;
  Example() = default;
  Example(Data data) : data(std::move(data)) {}
  operator Data&() { return data; }
  operator const Data&() const { return data; }
  Data data;
};
using TensorExample = Example<Tensor, example::NoTarget>;

// --- datasets

namespace datasets {

template <class Source, class Transform>
class MapDataset;
template <class D, class T>
MapDataset<D, T> map(D dataset, T transform);

/// A source of batches: get_batch() for a request, map() to change what it gives.
template <class Self, class Batch = std::vector<Example<>>, class BatchRequest = ArrayRef<std::size_t>>
class BatchDataset {
 public:
  using SelfType = Self;
  using BatchType = Batch;
  using BatchRequestType = BatchRequest;
  static constexpr bool is_stateful = false;
  virtual ~BatchDataset() = default;
  virtual Batch get_batch(BatchRequest request) = 0;
  virtual std::optional<std::size_t> size() const = 0;

  template <class T>
  MapDataset<Self, T> map(T transform) & {
    return datasets::map(static_cast<Self&>(*this), std::move(transform));
  }
  template <class T>
  MapDataset<Self, T> map(T transform) && {
    return datasets::map(std::move(static_cast<Self&>(*this)), std::move(transform));
  }
};

/// A dataset with an example for each index.
template <class Self, class SingleExample = Example<>>
class Dataset : public BatchDataset<Self, std::vector<SingleExample>> {
 public:
  using ExampleType = SingleExample;
  virtual ExampleType get(std::size_t index) = 0;
  std::vector<ExampleType> get_batch(ArrayRef<std::size_t> indices) override {
    std::vector<ExampleType> batch;
    batch.reserve(indices.size());
    for (const std::size_t i : indices) batch.push_back(get(i));
    return batch;
  }
};

/// A source without indices: get_batch() is asked for a number of examples.
template <class Self, class Batch = std::vector<Example<>>>
using StreamDataset = BatchDataset<Self, Batch, std::size_t>;

/// A dataset that keeps its own place: get_batch() gives nothing when an epoch is over, reset() starts the next.
template <class Self, class Batch = std::vector<Example<>>, class BatchRequest = std::size_t>
class StatefulDataset : public BatchDataset<Self, std::optional<Batch>, BatchRequest> {
 public:
  static constexpr bool is_stateful = true;
  virtual void reset() = 0;
  virtual void save(serialize::OutputArchive& archive) const = 0;
  virtual void load(serialize::InputArchive& archive) = 0;
};
template <class... A>
serialize::OutputArchive& operator<<(serialize::OutputArchive& archive, const StatefulDataset<A...>& dataset) {
  dataset.save(archive);
  return archive;
}
template <class... A>
serialize::InputArchive& operator>>(serialize::InputArchive& archive, StatefulDataset<A...>& dataset) {
  dataset.load(archive);
  return archive;
}

/// Batches of a source changed by a transform.
template <class SourceDataset, class Transform>
class MapDataset : public BatchDataset<MapDataset<SourceDataset, Transform>,
                                       std::conditional_t<SourceDataset::is_stateful, std::optional<typename Transform::OutputBatchType>,
                                                          typename Transform::OutputBatchType>,
                                       typename SourceDataset::BatchRequestType> {
 public:
  using DatasetType = SourceDataset;
  using TransformType = Transform;
  using OutputBatchType = typename Transform::OutputBatchType;
  using BatchRequestType = typename SourceDataset::BatchRequestType;
  static constexpr bool is_stateful = SourceDataset::is_stateful;
  using Result = std::conditional_t<is_stateful, std::optional<OutputBatchType>, OutputBatchType>;

  MapDataset(DatasetType dataset, Transform transform) : dataset_(std::move(dataset)), transform_(std::move(transform)) {}
  Result get_batch(BatchRequestType request) override {
    auto batch = dataset_.get_batch(std::move(request));
    if constexpr (is_stateful)
      return batch ? Result(transform_.apply_batch(std::move(*batch))) : std::nullopt;
    else
      return transform_.apply_batch(std::move(batch));
  }
  std::optional<std::size_t> size() const noexcept override { return dataset_.size(); }
  void reset() { dataset_.reset(); }
  const SourceDataset& dataset() const { return dataset_; }
  const Transform& transform() const { return transform_; }

 private:
  SourceDataset dataset_;
  Transform transform_;
};
template <class D, class T>
MapDataset<D, T> map(D dataset, T transform) {
  static_assert(std::is_same_v<std::conditional_t<D::is_stateful, std::optional<typename T::InputBatchType>, typename T::InputBatchType>,
                               typename D::BatchType>,
                "BatchType type of dataset does not match input type of transform");
  return {std::move(dataset), std::move(transform)};
}

/// One dataset for all threads, without copies.
template <class Underlying>
class SharedBatchDataset
    : public BatchDataset<SharedBatchDataset<Underlying>, typename Underlying::BatchType, typename Underlying::BatchRequestType> {
 public:
  static constexpr bool is_stateful = Underlying::is_stateful;
  SharedBatchDataset(std::shared_ptr<Underlying> dataset) : dataset_(std::move(dataset)) {}
  typename Underlying::BatchType get_batch(typename Underlying::BatchRequestType request) override {
    return dataset_->get_batch(std::move(request));
  }
  std::optional<std::size_t> size() const override { return dataset_->size(); }
  Underlying& operator*() { return *dataset_; }
  Underlying* operator->() { return dataset_.get(); }
  void reset() { dataset_->reset(); }

 private:
  std::shared_ptr<Underlying> dataset_;
};
template <class D, class... A>
SharedBatchDataset<D> make_shared_dataset(A&&... arguments) {
  return std::make_shared<D>(std::forward<A>(arguments)...);
}

/// The rows of a tensor.
struct TensorDataset : Dataset<TensorDataset, TensorExample> {
  explicit TensorDataset(const std::vector<Tensor>& tensors) : TensorDataset(cresset::stack(tensors)) {}
  explicit TensorDataset(Tensor tensor) : tensor(std::move(tensor)) {}
  TensorExample get(std::size_t index) override { return tensor[static_cast<int64_t>(index)]; }
  std::optional<std::size_t> size() const override { return static_cast<std::size_t>(tensor.size(0)); }
  Tensor tensor;
};

/// The handwritten digits of LeCun et al., read from the four files in `root` as they are published (unpacked).
class CRESSET_API MNIST : public Dataset<MNIST> {
 public:
  enum class Mode { kTrain, kTest };
  explicit MNIST(const std::string& root, Mode mode = Mode::kTrain);
  Example<> get(std::size_t index) override { return {images_[static_cast<int64_t>(index)], targets_[static_cast<int64_t>(index)]}; }
  std::optional<std::size_t> size() const override { return static_cast<std::size_t>(images_.size(0)); }
  bool is_train() const noexcept { return mode_ == Mode::kTrain; }
  /// (n, 1, 28, 28), from 0 to 1.
  const Tensor& images() const { return images_; }
  const Tensor& targets() const { return targets_; }

 private:
  Mode mode_;
  Tensor images_, targets_;
};

}  // namespace datasets

// --- transforms

namespace transforms {

template <class InputBatch, class OutputBatch>
class BatchTransform {
 public:
  using InputBatchType = InputBatch;
  using OutputBatchType = OutputBatch;
  virtual ~BatchTransform() = default;
  virtual OutputBatch apply_batch(InputBatch input) = 0;
};

/// A transform that makes one thing of a batch.
template <class Output, class Input = std::vector<Output>>
using Collation = BatchTransform<Input, Output>;

/// A transform of single examples.
template <class Input, class Output>
class Transform : public BatchTransform<std::vector<Input>, std::vector<Output>> {
 public:
  using InputType = Input;
  using OutputType = Output;
  virtual Output apply(Input input) = 0;
  std::vector<Output> apply_batch(std::vector<Input> inputs) override {
    std::vector<Output> out;
    out.reserve(inputs.size());
    for (Input& input : inputs) out.push_back(apply(std::move(input)));
    return out;
  }
};
template <class Input, class Output = Input>
class Lambda : public Transform<Input, Output> {
 public:
  using FunctionType = std::function<Output(Input)>;
  explicit Lambda(FunctionType function) : function_(std::move(function)) {}
  Output apply(Input input) override { return function_(std::move(input)); }

 private:
  FunctionType function_;
};
template <class Input, class Output = Input>
class BatchLambda : public BatchTransform<Input, Output> {
 public:
  using FunctionType = std::function<Output(Input)>;
  explicit BatchLambda(FunctionType function) : function_(std::move(function)) {}
  Output apply_batch(Input input) override { return function_(std::move(input)); }

 private:
  FunctionType function_;
};

template <class Output, class Input = std::vector<Output>>
using Collate = BatchLambda<Input, Output>;

/// Changes the data of examples and keeps their targets.
template <class Target = Tensor>
class TensorTransform : public Transform<Example<Tensor, Target>, Example<Tensor, Target>> {
 public:
  using E = Example<Tensor, Target>;
  virtual Tensor operator()(Tensor input) = 0;
  E apply(E input) override {
    input.data = (*this)(std::move(input.data));
    return input;
  }
};
template <class Target = Tensor>
class TensorLambda : public TensorTransform<Target> {
 public:
  using FunctionType = std::function<Tensor(Tensor)>;
  explicit TensorLambda(FunctionType function) : function_(std::move(function)) {}
  Tensor operator()(Tensor input) override { return function_(std::move(input)); }

 private:
  FunctionType function_;
};
/// (x - mean) / stddev, by channel where several values are given.
template <class Target = Tensor>
struct Normalize : public TensorTransform<Target> {
  Normalize(ArrayRef<double> mean, ArrayRef<double> stddev) : mean(by_channel(mean)), stddev(by_channel(stddev)) {}
  Tensor operator()(Tensor input) override { return input.sub(mean).div(stddev); }
  Tensor mean, stddev;

 private:
  static Tensor by_channel(ArrayRef<double> values) {
    Tensor t = cresset::empty({static_cast<int64_t>(values.size()), 1, 1}, TensorOptions(kFloat));
    for (std::size_t i = 0; i < values.size(); ++i) t[static_cast<int64_t>(i)].fill_(values[i]);
    return t;
  }
};

/// A vector of examples as one example of stacked tensors.
template <class T = Example<>>
struct Stack;
template <>
struct Stack<Example<>> {
  using InputBatchType = std::vector<Example<>>;
  using OutputBatchType = Example<>;
  Example<> apply_batch(std::vector<Example<>> examples) {
    std::vector<Tensor> data, targets;
    for (const Example<>& e : examples) {
      data.push_back(e.data);
      targets.push_back(e.target);
    }
    return {cresset::stack(data), cresset::stack(targets)};
  }
};
template <>
struct Stack<TensorExample> {
  using InputBatchType = std::vector<TensorExample>;
  using OutputBatchType = TensorExample;
  TensorExample apply_batch(std::vector<TensorExample> examples) {
    std::vector<Tensor> data;
    for (const TensorExample& e : examples) data.push_back(e.data);
    return cresset::stack(data);
  }
};

}  // namespace transforms
}  // namespace cresset::data
