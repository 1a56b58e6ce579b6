// Indexing as in Python: get_item(x, {Slice(1, None), None, Ellipsis, mask, 0}) is x[1:, None, ..., mask, 0].
#pragma once

#include <optional>
#include <string_view>

#include <cresset/core/tensor.h>

namespace cresset::indexing {

/// A new dimension of size 1; in a Slice, a bound that is left out.
inline constexpr std::nullopt_t None = std::nullopt;

struct EllipsisType {};
/// As many whole dimensions as the other indices leave over.
inline constexpr EllipsisType Ellipsis{};

/// start : stop : step. Negative bounds count from the end; step is at least 1.
struct Slice {
  Slice(std::optional<int64_t> start = None, std::optional<int64_t> stop = None, std::optional<int64_t> step = None)
      : start(start), stop(stop), step(step) {}
  std::optional<int64_t> start, stop, step;
};

/// One index: a number, a Slice, None, Ellipsis (or "..."), true or false, or a tensor of integers or a mask.
class CRESSET_API TensorIndex {
 public:
  enum class Kind { None, Ellipsis, Integer, Boolean, Slice, Tensor };

  TensorIndex(std::nullopt_t) : kind_(Kind::None) {}
  TensorIndex(EllipsisType) : kind_(Kind::Ellipsis) {}
  TensorIndex(const char* ellipsis);
  template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
  TensorIndex(T value) : kind_(std::is_same_v<T, bool> ? Kind::Boolean : Kind::Integer), integer_(static_cast<int64_t>(value)) {}
  TensorIndex(indexing::Slice slice) : kind_(Kind::Slice), slice_(slice) {}
  TensorIndex(cresset::Tensor tensor) : kind_(Kind::Tensor), tensor_(std::move(tensor)) {}

  Kind kind() const { return kind_; }
  int64_t integer() const { return integer_; }
  bool boolean() const { return integer_ != 0; }
  const indexing::Slice& slice() const { return slice_; }
  const cresset::Tensor& tensor() const { return tensor_; }

 private:
  Kind kind_;
  int64_t integer_ = 0;
  indexing::Slice slice_;
  cresset::Tensor tensor_;
};

/// self[indices]: a view where no index is a tensor, true or false, else a copy. Raises IndexError for indices out of range or too
/// many of them, ValueError for a step below 1.
CRESSET_API Tensor get_item(const Tensor& self, ArrayRef<TensorIndex> indices);

/// self[indices] = value, broadcast to the place; leading dimensions of size 1 that the place does not have are dropped.
CRESSET_API void set_item(const Tensor& self, ArrayRef<TensorIndex> indices, const Tensor& value);
CRESSET_API void set_item(const Tensor& self, ArrayRef<TensorIndex> indices, const Scalar& value);

}  // namespace cresset::indexing
