// einsum: each operand is laid out over one common order of labels, then pairs are contracted left to right by bmm.
#include <algorithm>
#include <array>
#include <string>

#include <cresset/core/limits.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_reduce.h>

#include "ops/ops_decl_matmul.h"

namespace cresset::ops {
namespace {

constexpr int kLetters = 52;
constexpr int kEllipsis = -1;

int letter(char c) { return c >= 'A' && c <= 'Z' ? c - 'A' : 26 + (c - 'a'); }
bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }
char name_of(int l) { return static_cast<char>(l < 26 ? 'A' + l : 'a' + l - 26); }

// Labels of one operand (or, for -1, of the result) from `begin` on in the equation: letters by number, kEllipsis for "...".
std::vector<int> read_labels(std::string_view text, int64_t operand, std::size_t begin) {
  std::vector<int> out;
  bool ellipsis = false;
  const auto where = [&] { return operand < 0 ? std::string("output") : str("operand ", operand); };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text[i] == '.') {
      CRESSET_CHECK(!ellipsis, "einsum(): found '.' for ", where(),
                    operand < 0 ? " but an ellipsis (...) was already found" : " for which an ellipsis was already found");
      CRESSET_CHECK(text.substr(i, 3) == "...", "einsum(): found '.' for ", where(), " that is not part of any ellipsis",
                    operand < 0 ? " (...)" : "");
      ellipsis = true;
      out.push_back(kEllipsis);
      i += 2;
      continue;
    }
    CRESSET_CHECK(is_letter(text[i]), "einsum(): invalid subscript given at index ", begin + i,
                  " in the equation string, subscripts must be in [a-zA-Z]");
    out.push_back(letter(text[i]));
  }
  return out;
}

// Contracts the dimensions in `sum` of two operands that share one layout of dimensions (size 1 where absent).
Tensor contract(Tensor a, Tensor b, uint64_t sum) {
  const int64_t n = a.dim();
  DimVector batch, left, right, both;
  DimVector out_sizes;
  for (int64_t d = 0; d < n; ++d) {
    const bool in_a = a.size(d) != 1, in_b = b.size(d) != 1;
    if (sum >> d & 1) {
      if (in_a && in_b)
        both.push_back(d);
      else if (in_a)
        a = a.sum({d}, true);
      else if (in_b)
        b = b.sum({d}, true);
      out_sizes.push_back(1);
    } else {
      (in_a && in_b ? batch : in_a ? left : right).push_back(d);
      out_sizes.push_back(in_a ? a.size(d) : b.size(d));
    }
  }
  if (both.empty()) return a * b;
  // a: batch, left, both, rest(1); b: batch, both, right, rest(1).
  const auto arrange = [&](const Tensor& t, const DimVector& second, const DimVector& third, const DimVector& rest) {
    DimVector order(batch);
    order.append(second.begin(), second.end());
    order.append(third.begin(), third.end());
    order.append(rest.begin(), rest.end());
    uint64_t used = 0;
    for (int64_t d : order) used |= uint64_t{1} << d;
    for (int64_t d = 0; d < n; ++d)
      if (!(used >> d & 1)) order.push_back(d);
    const auto count = [&](const DimVector& dims) {
      int64_t c = 1;
      for (int64_t d : dims) c *= t.size(d);
      return c;
    };
    return t.permute(order).reshape({count(batch), count(second), count(third)});
  };
  const Tensor product = cresset::bmm(arrange(a, left, both, right), arrange(b, both, right, left));
  // Back to the common order: the product has batch, left, right, then the dimensions of size one.
  DimVector order(batch), sizes;
  order.append(left.begin(), left.end());
  order.append(right.begin(), right.end());
  uint64_t used = 0;
  for (int64_t d : order) used |= uint64_t{1} << d;
  for (int64_t d = 0; d < n; ++d)
    if (!(used >> d & 1)) order.push_back(d);
  for (int64_t d : order) sizes.push_back(out_sizes[d]);
  DimVector inverse(static_cast<std::size_t>(n));
  for (int64_t i = 0; i < n; ++i) inverse[order[i]] = i;
  return product.reshape(sizes).permute(inverse);
}

// The order of contraction changes no result: a path is checked only.
void check_path(IntArrayRef path, std::size_t operands) {
  const std::size_t expected = operands == 1 ? 1 : 2 * (operands - 1);
  CRESSET_CHECK(path.size() == expected, "einsum(): expected contraction path given in path parameter to have size ", expected, " but got ",
                path.size());
  auto left = static_cast<int64_t>(operands);
  for (std::size_t i = 0; i + 1 < path.size(); i += 2, --left)
    CRESSET_CHECK(path[i] >= 0 && path[i] < left && path[i + 1] >= 0 && path[i + 1] < left, "einsum(): invalid contraction (",
                  std::min(path[i], path[i + 1]), ", ", std::max(path[i], path[i + 1]), ") operand index is out of bounds");
}

// The labels of an equation beside its operands.
struct Labels {
  std::vector<std::vector<int>> operands;
  std::vector<int> result;
  std::array<int, kLetters> uses{};  // how often each letter stands in the operands
  int64_t ellipsis_dims = 0;         // the most dimensions that an operand has for "..."
};

int64_t ellipsis_dims(const Tensor& operand, const std::vector<int>& labels) {
  return operand.dim() - (static_cast<int64_t>(labels.size()) - std::count(labels.begin(), labels.end(), kEllipsis));
}

std::vector<std::vector<int>> read_operands(std::string_view equation, std::string_view left) {
  std::vector<std::vector<int>> out;
  for (std::size_t k = 0;; ++k) {
    const std::size_t comma = left.find(',');
    out.push_back(read_labels(left.substr(0, comma), static_cast<int64_t>(k), static_cast<std::size_t>(left.data() - equation.data())));
    if (comma == std::string_view::npos) return out;
    left.remove_prefix(comma + 1);
  }
}

Labels read_equation(std::string_view equation, TensorList tensors) {
  Labels out;
  const std::size_t arrow = equation.find("->");
  out.operands = read_operands(equation, equation.substr(0, arrow));
  CRESSET_CHECK(out.operands.size() == tensors.size(), out.operands.size() < tensors.size()
                                                           ? "einsum(): more operands were provided than specified in the equation"
                                                           : "einsum(): fewer operands were provided than specified in the equation");
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    const std::vector<int>& labels = out.operands[k];
    const int64_t extra = ellipsis_dims(tensors[k], labels), named = tensors[k].dim() - extra;
    const bool dots = named != static_cast<int64_t>(labels.size());
    CRESSET_CHECK(dots ? extra >= 0 : extra == 0, "einsum(): the number of subscripts in the equation (", named, ") ",
                  dots ? "is more than" : "does not match", " the number of dimensions (", tensors[k].dim(), ") for operand ", k,
                  dots ? "" : " and no ellipsis was given");
    if (dots) out.ellipsis_dims = std::max(out.ellipsis_dims, extra);
    for (int l : labels)
      if (l != kEllipsis) ++out.uses[l];
  }
  if (arrow != std::string_view::npos) {
    out.result = read_labels(equation.substr(arrow + 2), -1, arrow + 2);
    return out;
  }
  out.result.push_back(kEllipsis);
  for (int l = 0; l < kLetters; ++l)
    if (out.uses[l] == 1) out.result.push_back(l);
  return out;
}

// The common order: the result's labels, then those that are summed.
struct Order {
  std::array<int64_t, kLetters> position;  // -1: the letter does not occur
  int64_t ellipsis_at = -1, kept = 0, dims = 0;
};

Order common_order(const Labels& labels) {
  Order out;
  out.position.fill(-1);
  for (int l : labels.result) {
    if (l == kEllipsis) {
      out.ellipsis_at = out.dims;
      out.dims += labels.ellipsis_dims;
    } else {
      CRESSET_CHECK(out.position[l] < 0, "einsum(): output subscript ", name_of(l), " appears more than once in the output");
      CRESSET_CHECK(labels.uses[l] > 0, "einsum(): output subscript ", name_of(l),
                    " does not appear in the equation for any input operand");
      out.position[l] = out.dims++;
    }
  }
  out.kept = out.dims;
  if (out.ellipsis_at < 0) {
    out.ellipsis_at = out.dims;
    out.dims += labels.ellipsis_dims;
  }
  for (int l = 0; l < kLetters; ++l)
    if (labels.uses[l] > 0 && out.position[l] < 0) out.position[l] = out.dims++;
  CRESSET_CHECK(out.dims <= kMaxDims, "einsum(): more than 64 dimensions");
  return out;
}

// Brings operands into the common order, one after the other, and checks that their sizes fit together.
class Alignment {
 public:
  Alignment(const Labels& labels, const Order& order)
      : labels_(labels), order_(order), last_use_(order.dims, 0), dots_size_(static_cast<std::size_t>(labels.ellipsis_dims), 0) {}

  Tensor add(Tensor t, std::size_t k) {
    const std::vector<int64_t> places = diagonals(t, k);
    std::vector<int64_t> source(static_cast<std::size_t>(order_.dims), -1);
    for (std::size_t i = 0; i < places.size(); ++i) {
      source[places[i]] = static_cast<int64_t>(i);
      last_use_[places[i]] = k;
    }
    for (int64_t& from : source) {
      if (from >= 0) continue;
      from = t.dim();
      t = t.unsqueeze(-1);
    }
    return t.permute(source);
  }

  /// The summed dimensions that operand `k` is the last to have.
  uint64_t summed_at(std::size_t k) const {
    uint64_t mask = 0;
    for (int64_t d = order_.kept; d < order_.dims; ++d)
      if (last_use_[d] == k) mask |= uint64_t{1} << d;
    return mask;
  }

 private:
  // Letters that repeat inside of the operand take its diagonal; where each dimension of what is left belongs.
  std::vector<int64_t> diagonals(Tensor& t, std::size_t k) {
    std::vector<int64_t> places;
    std::array<int64_t, kLetters> seen;
    seen.fill(-1);
    int64_t d = 0;
    const int64_t extra = ellipsis_dims(t, labels_.operands[k]), missing = labels_.ellipsis_dims - extra;
    for (int l : labels_.operands[k]) {
      if (l == kEllipsis) {
        for (int64_t j = missing; j < labels_.ellipsis_dims; ++j, ++d) {
          int64_t& known = dots_size_[static_cast<std::size_t>(j)];
          CRESSET_CHECK(known <= 1 || t.size(d) == 1 || t.size(d) == known, "einsum(): dimension ", d, " covered by ellipsis in operand ",
                        k, " has size ", t.size(d), " which does not broadcast with previously seen ellipsis with size ", known,
                        " for the respective dimension");
          known = std::max(known, t.size(d));
          places.push_back(order_.ellipsis_at + j);
        }
      } else if (seen[l] >= 0) {
        CRESSET_CHECK(t.size(d) == t.size(seen[l]), "einsum(): subscript ", name_of(l), " is repeated for operand ", k,
                      " but the sizes don't match, ", t.size(d), " != ", t.size(seen[l]));
        t = t.diagonal(0, seen[l], d).movedim(-1, seen[l]);
      } else {
        CRESSET_CHECK(size_of_[l] <= 1 || t.size(d) == 1 || t.size(d) == size_of_[l], "einsum(): subscript ", name_of(l), " has size ",
                      t.size(d), " for operand ", k, " which does not broadcast with previously seen size ", size_of_[l]);
        size_of_[l] = std::max(size_of_[l], t.size(d));
        seen[l] = d++;
        places.push_back(order_.position[l]);
      }
    }
    return places;
  }

  const Labels& labels_;
  const Order& order_;
  std::vector<std::size_t> last_use_;  // by dimension: the last operand that has it
  std::vector<int64_t> dots_size_;
  std::array<int64_t, kLetters> size_of_{};
};
}  // namespace

Tensor einsum_impl(std::string_view equation, TensorList tensors, OptionalIntArrayRef path) {
  CRESSET_CHECK(!tensors.empty(), "einsum(): must provide at least one operand");
  if (path) check_path(*path, tensors.size());
  const Labels labels = read_equation(equation, tensors);
  const Order order = common_order(labels);
  Alignment alignment(labels, order);
  std::vector<Tensor> operands;
  for (std::size_t k = 0; k < tensors.size(); ++k) operands.push_back(alignment.add(tensors[k], k));

  Tensor result = operands[0];
  DimVector first;
  for (int64_t d = 0; d < order.dims; ++d)
    if (alignment.summed_at(0) >> d & 1) first.push_back(d);
  if (!first.empty() && operands.size() == 1) return result.sum(first, false);  // itself, no view of it
  if (!first.empty()) result = result.sum(first, true);
  for (std::size_t k = 1; k < operands.size(); ++k) result = contract(result, operands[k], alignment.summed_at(k));
  return order.kept == order.dims ? result : result.reshape(result.sizes().slice(0, static_cast<std::size_t>(order.kept)));
}

}  // namespace cresset::ops
