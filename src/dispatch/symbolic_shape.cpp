// Names for sizes that are not known.
#include <cresset/dispatch/symbolic_shape.h>

#include <algorithm>
#include <atomic>
#include <iostream>

namespace cresset {

std::ostream& operator<<(std::ostream& out, const Stride& stride) {
  const auto put = [&](const std::optional<std::size_t>& part) { part ? out << *part : out << "*"; };
  out << "{";
  put(stride.stride_index_);
  out << ":";
  put(stride.stride_);
  return out << "}";
}

ShapeSymbol ShapeSymbol::newSymbol() {
  static std::atomic<int64_t> last{-1};  // what has no name of its own
  return ShapeSymbol(--last);
}
std::ostream& operator<<(std::ostream& out, const ShapeSymbol& symbol) {
  return symbol.is_static() ? out << symbol.value() : out << "SS(" << symbol.value() << ")";
}
ShapeSymbol merge_primitive(const ShapeSymbol& a, const ShapeSymbol& b) { return a == b ? a : ShapeSymbol::newSymbol(); }

SymbolicShape::SymbolicShape(std::optional<std::size_t> rank) {
  if (!rank) return;
  sizes_.emplace(*rank);
  for (ShapeSymbol& s : *sizes_) s = ShapeSymbol::newSymbol();
}
SymbolicShape::SymbolicShape(const std::vector<std::optional<int64_t>>& sizes) : sizes_(std::in_place) {
  for (const auto& size : sizes) sizes_->push_back(size ? ShapeSymbol::fromStaticSize(*size) : ShapeSymbol::newSymbol());
}
SymbolicShape::SymbolicShape(IntArrayRef sizes) : sizes_(std::in_place) {
  for (const int64_t size : sizes) sizes_->push_back(ShapeSymbol::fromStaticSize(size));
}
ShapeSymbol SymbolicShape::at(std::size_t i) const {
  CRESSET_CHECK(sizes_, "SymbolicShape: a shape whose number of dimensions is known was required.");
  CRESSET_CHECK_INDEX(i < sizes_->size(), "SymbolicShape: dimension ", i, " is out of range for ", sizes_->size(), " dimensions.");
  return (*sizes_)[i];
}
std::optional<std::vector<bool>> SymbolicShape::symbolicDims() const {
  if (!sizes_) return std::nullopt;
  std::vector<bool> out;
  for (const ShapeSymbol s : *sizes_) out.push_back(!s.is_static());
  return out;
}
bool SymbolicShape::isComplete() const {
  return sizes_ && std::ranges::all_of(*sizes_, [](ShapeSymbol s) { return s.is_static(); });
}
SymbolicShape SymbolicShape::merge(const SymbolicShape& other) const {
  if (!sizes_ || rank() != other.rank()) return {};
  std::vector<ShapeSymbol> out;
  for (std::size_t i = 0; i < sizes_->size(); ++i) out.push_back(merge_primitive((*sizes_)[i], (*other.sizes_)[i]));
  return SymbolicShape(std::move(out));
}
void SymbolicShape::dump() const { std::cout << *this << "\n"; }

std::ostream& operator<<(std::ostream& out, const SymbolicShape& shape) {
  if (!shape.rank()) return out << "(*)";
  out << "(";
  for (std::size_t i = 0; i < *shape.rank(); ++i) {
    if (i) out << ", ";
    shape[i].is_static() ? out << shape[i].static_size() : out << "*";
  }
  return out << ")";
}

}  // namespace cresset
