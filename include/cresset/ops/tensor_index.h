// Indexing as Python has it: x.index({Slice(1, None), None, "...", 0, mask}) is x[1:, None, ..., 0, mask].
#pragma once

#include <cstdint>
#include <iosfwd>
#include <limits>
#include <optional>

#include <cresset/core/sym_int.h>
#include <cresset/core/tensor.h>

namespace cresset::indexing {

enum class EllipsisIndexType { Ellipsis };
/// As many whole dimensions as the other indices leave over.
inline constexpr EllipsisIndexType Ellipsis = EllipsisIndexType::Ellipsis;
/// A new dimension of size 1; in a Slice, a bound that is left out.
inline constexpr std::nullopt_t None = std::nullopt;

/// The bounds of a Slice that has none, as PyTorch names them.
inline constexpr int64_t INDEX_MIN = std::numeric_limits<int64_t>::min();
inline constexpr int64_t INDEX_MAX = std::numeric_limits<int64_t>::max();

/// start:stop:step. Negative bounds count from the end; bounds that are left out become those of the whole dimension. Indexing raises for
/// a step below 1.
struct Slice {
  Slice(std::optional<int64_t> start = std::nullopt, std::optional<int64_t> stop = std::nullopt, std::optional<int64_t> step = std::nullopt)
      : step_(step.value_or(1)),
        start_(start.value_or(step_ < 0 ? INDEX_MAX : 0)),
        stop_(stop.value_or(step_ < 0 ? INDEX_MIN : INDEX_MAX)) {}
  int64_t start() const { return start_; }
  int64_t stop() const { return stop_; }
  int64_t step() const { return step_; }

 private:
  int64_t step_, start_, stop_;
};

}  // namespace cresset::indexing

namespace cresset {

/// One index: a number, a Slice, None, Ellipsis (or "..."), true or false, or a tensor of integers or a mask.
class CRESSET_API TensorIndex {
 public:
  enum class Kind : uint8_t { None, Ellipsis, Integer, Boolean, Slice, Tensor };

  TensorIndex(std::nullopt_t) : kind_(Kind::None) {}
  TensorIndex(indexing::EllipsisIndexType) : kind_(Kind::Ellipsis) {}
  TensorIndex(const char* text);
  template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
  TensorIndex(T v) : kind_(std::is_same_v<T, bool> ? Kind::Boolean : Kind::Integer), integer_(static_cast<int64_t>(v)) {}
  TensorIndex(SymInt v) : kind_(Kind::Integer), integer_(v) {}
  TensorIndex(indexing::Slice s) : kind_(Kind::Slice), slice_(s) {}
  TensorIndex(cresset::Tensor t) : kind_(Kind::Tensor), tensor_(std::move(t)) {}

  Kind kind() const { return kind_; }
  bool is_none() const { return kind_ == Kind::None; }
  bool is_ellipsis() const { return kind_ == Kind::Ellipsis; }
  bool is_integer() const { return kind_ == Kind::Integer; }
  bool is_boolean() const { return kind_ == Kind::Boolean; }
  bool is_slice() const { return kind_ == Kind::Slice; }
  bool is_tensor() const { return kind_ == Kind::Tensor; }
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

/// As Python writes an index; the bounds of a slice in full.
CRESSET_API std::ostream& operator<<(std::ostream& out, const TensorIndex& index);
CRESSET_API std::ostream& operator<<(std::ostream& out, const std::vector<TensorIndex>& indices);

namespace indexing {
using cresset::TensorIndex;
CRESSET_API std::ostream& operator<<(std::ostream& out, const Slice& slice);

/// self[indices]: a view where no index is a tensor, true or false, else a copy. Raises IndexError for indices out of range or too
/// many of them, ValueError for a step below 1.
CRESSET_API Tensor get_item(const Tensor& self, ArrayRef<TensorIndex> indices);

/// self[indices] = value, broadcast to the place; leading dimensions of size 1 that the place does not have are dropped.
CRESSET_API void set_item(const Tensor& self, ArrayRef<TensorIndex> indices, const Tensor& value);
CRESSET_API void set_item(const Tensor& self, ArrayRef<TensorIndex> indices, const Scalar& value);

}  // namespace indexing
}  // namespace cresset
