// What is known of a tensor's sizes and strides before it exists.
#pragma once

#include <iosfwd>
#include <optional>
#include <vector>

#include <cresset/base/array_ref.h>
#include <cresset/base/error.h>

namespace cresset {

/// What is known of sizes or strides: nothing, the number of dimensions, or some or all entries. Prints as "(2, *)", unknown as "(*)".
template <class T>
struct VaryingShape : std::optional<std::vector<std::optional<T>>> {
  using Entries = std::vector<std::optional<T>>;
  using ListOfOptionalElements = Entries;
  using std::optional<Entries>::optional;
  VaryingShape() = default;
  VaryingShape(std::optional<Entries> entries) : std::optional<Entries>(std::move(entries)) {}
  VaryingShape(const std::vector<T>& all) : std::optional<Entries>(Entries(all.begin(), all.end())) {}
  VaryingShape(ArrayRef<T> all) : std::optional<Entries>(Entries(all.begin(), all.end())) {}
  explicit VaryingShape(std::size_t dimensions) : std::optional<Entries>(Entries(dimensions)) {}
  explicit VaryingShape(std::optional<std::size_t> dimensions) {
    if (dimensions) this->emplace(*dimensions);
  }
  /// The number of dimensions.
  std::optional<std::size_t> size() const { return *this ? std::optional((*this)->size()) : std::nullopt; }
  const std::optional<Entries>& sizes() const { return *this; }
  const std::optional<T>& operator[](std::size_t i) const { return this->value().at(i); }
  std::optional<std::vector<T>> concrete_sizes() const {
    if (!*this) return std::nullopt;
    std::vector<T> out;
    for (const std::optional<T>& entry : **this) {
      if (!entry) return std::nullopt;
      out.push_back(*entry);
    }
    return out;
  }
  bool isComplete() const { return concrete_sizes().has_value(); }
  /// What both know and agree about.
  VaryingShape merge(const VaryingShape& other) const {
    if (!*this || size() != other.size()) return {};
    Entries out;
    for (std::size_t i = 0; i < *size(); ++i) out.push_back((*this)[i] == other[i] ? (*this)[i] : std::nullopt);
    return VaryingShape(std::optional(std::move(out)));
  }
  // std::optional's own templates would take one side for a value.
  friend bool operator==(const VaryingShape& a, const VaryingShape& b) { return a.sizes() == b.sizes(); }
  friend bool operator==(const VaryingShape& a, const std::optional<Entries>& b) { return a.sizes() == b; }
  friend bool operator==(const VaryingShape& a, const std::vector<T>& b) { return a == VaryingShape(b); }
  friend std::ostream& operator<<(std::ostream& out, const VaryingShape& shape) {
    if (!shape) return out << "(*)";
    out << "(";
    for (std::size_t i = 0; i < *shape.size(); ++i) {
      if (i) out << ", ";
      shape[i] ? out << *shape[i] : out << "*";
    }
    return out << ")";
  }
};

/// What is known of the dimension that comes at one place when dimensions are ordered by stride, the smallest first.
struct Stride {
  Stride() = default;
  Stride(std::optional<std::size_t> stride_index, std::optional<bool> contiguous, std::optional<std::size_t> stride)
      : stride_index_(stride_index), contiguous_(contiguous), stride_(stride) {}
  bool isComplete() const { return stride_index_ && contiguous_ && stride_; }
  friend bool operator==(const Stride&, const Stride&) = default;

  std::optional<std::size_t> stride_index_;  // which dimension it is
  std::optional<bool> contiguous_;           // does it follow the one before without a gap?
  std::optional<std::size_t> stride_;        // in elements
};
/// "{1:4}": dimension 1 has stride 4; "*" for what is not known.
CRESSET_API std::ostream& operator<<(std::ostream& out, const Stride& stride);

/// A size: a number, or a name for one that is not known (a negative number, which prints as "SS(-2)").
class CRESSET_API ShapeSymbol {
 public:
  /// The name that all sizes of no name have.
  ShapeSymbol() = default;
  static ShapeSymbol fromStaticSize(int64_t size) { return ShapeSymbol(size); }
  /// A name that none has yet.
  static ShapeSymbol newSymbol();
  bool is_static() const { return value_ >= 0; }
  /// Raises for a name.
  int64_t static_size() const {
    CRESSET_CHECK(is_static(), "ShapeSymbol.static_size: a size that is known was required; the name SS(", value_, ") was given.");
    return value_;
  }
  /// The size, or the name's negative number.
  int64_t value() const { return value_; }
  friend bool operator==(ShapeSymbol a, ShapeSymbol b) { return a.value_ == b.value_; }
  friend bool operator<(ShapeSymbol a, ShapeSymbol b) { return a.value_ < b.value_; }

 private:
  explicit ShapeSymbol(int64_t value) : value_(value) {}
  int64_t value_ = -1;
};
CRESSET_API std::ostream& operator<<(std::ostream& out, const ShapeSymbol& symbol);
/// The size that both are, or a new name.
CRESSET_API ShapeSymbol merge_primitive(const ShapeSymbol& a, const ShapeSymbol& b);

/// Sizes that are known or have names; nothing where not even their number is known. Prints as VaryingShape does.
class CRESSET_API SymbolicShape {
 public:
  SymbolicShape() = default;
  /// Sizes with new names.
  SymbolicShape(std::optional<std::size_t> rank);
  /// The unknown ones get new names.
  SymbolicShape(const std::vector<std::optional<int64_t>>& sizes);
  SymbolicShape(std::vector<ShapeSymbol> sizes) : sizes_(std::move(sizes)) {}
  SymbolicShape(IntArrayRef sizes);
  std::optional<std::size_t> rank() const { return sizes_ ? std::optional(sizes_->size()) : std::nullopt; }
  const std::optional<std::vector<ShapeSymbol>>& sizes() const { return sizes_; }
  /// Raise where the rank is not known, and behind the last size.
  ShapeSymbol operator[](std::size_t i) const { return at(i); }
  ShapeSymbol at(std::size_t i) const;
  /// For each size: has it a name only?
  std::optional<std::vector<bool>> symbolicDims() const;
  bool isComplete() const;
  /// What both know and agree about; a name that both have stays.
  SymbolicShape merge(const SymbolicShape& other) const;
  void dump() const;
  friend bool operator==(const SymbolicShape& a, const SymbolicShape& b) { return a.sizes_ == b.sizes_; }

 private:
  std::optional<std::vector<ShapeSymbol>> sizes_;
};
CRESSET_API std::ostream& operator<<(std::ostream& out, const SymbolicShape& shape);

}  // namespace cresset
