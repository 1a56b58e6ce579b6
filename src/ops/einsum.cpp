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

}  // namespace

namespace {
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
}  // namespace

Tensor einsum_impl(std::string_view equation, TensorList tensors, OptionalIntArrayRef path) {
  CRESSET_CHECK(!tensors.empty(), "einsum(): must provide at least one operand");
  if (path) check_path(*path, tensors.size());
  const std::size_t arrow = equation.find("->");
  std::string_view left = equation.substr(0, arrow);
  std::vector<std::vector<int>> labels;
  for (std::size_t k = 0;; ++k) {
    const std::size_t comma = left.find(',');
    labels.push_back(read_labels(left.substr(0, comma), static_cast<int64_t>(k), static_cast<std::size_t>(left.data() - equation.data())));
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  CRESSET_CHECK(labels.size() == tensors.size(), labels.size() < tensors.size()
                                                     ? "einsum(): more operands were provided than specified in the equation"
                                                     : "einsum(): fewer operands were provided than specified in the equation");

  std::array<int, kLetters> uses{};
  std::array<int64_t, kLetters> size_of{};
  int64_t ellipsis_dims = 0;
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    const int64_t named = static_cast<int64_t>(labels[k].size()) - std::count(labels[k].begin(), labels[k].end(), kEllipsis);
    const bool dots = named != static_cast<int64_t>(labels[k].size());
    const int64_t extra = tensors[k].dim() - named;
    CRESSET_CHECK(dots ? extra >= 0 : extra == 0, "einsum(): the number of subscripts in the equation (", named, ") ",
                  dots ? "is more than" : "does not match", " the number of dimensions (", tensors[k].dim(), ") for operand ", k,
                  dots ? "" : " and no ellipsis was given");
    if (dots) ellipsis_dims = std::max(ellipsis_dims, extra);
    for (int l : labels[k])
      if (l != kEllipsis) ++uses[l];
  }
  std::vector<int> result;
  if (arrow != std::string_view::npos) {
    result = read_labels(equation.substr(arrow + 2), -1, arrow + 2);
  } else {
    result.push_back(kEllipsis);
    for (int l = 0; l < kLetters; ++l)
      if (uses[l] == 1) result.push_back(l);
  }

  // Common order: the result's labels, then the summed letters.
  std::array<int64_t, kLetters> position;
  position.fill(-1);
  int64_t n = 0, ellipsis_at = -1;
  for (int l : result) {
    if (l == kEllipsis) {
      ellipsis_at = n;
      n += ellipsis_dims;
    } else {
      CRESSET_CHECK(position[l] < 0, "einsum(): output subscript ", name_of(l), " appears more than once in the output");
      CRESSET_CHECK(uses[l] > 0, "einsum(): output subscript ", name_of(l), " does not appear in the equation for any input operand");
      position[l] = n++;
    }
  }
  const int64_t kept = n;
  if (ellipsis_at < 0) {
    ellipsis_at = n;
    n += ellipsis_dims;
  }
  for (int l = 0; l < kLetters; ++l)
    if (uses[l] > 0 && position[l] < 0) position[l] = n++;
  CRESSET_CHECK(n <= kMaxDims, "einsum(): more than 64 dimensions");

  std::vector<Tensor> operands;
  std::vector<int> last_use(static_cast<std::size_t>(n), 0);
  std::vector<int64_t> dots_size(static_cast<std::size_t>(ellipsis_dims), 0);
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    Tensor t = tensors[k];
    // Repeated letters inside one operand take the diagonal.
    std::vector<int64_t> places;
    std::array<int64_t, kLetters> seen;
    seen.fill(-1);
    int64_t d = 0;
    const int64_t extra = t.dim() - (static_cast<int64_t>(labels[k].size()) - std::count(labels[k].begin(), labels[k].end(), kEllipsis));
    for (int l : labels[k]) {
      if (l == kEllipsis) {
        for (int64_t j = 0; j < extra; ++j, ++d) {
          int64_t& known = dots_size[static_cast<std::size_t>(ellipsis_dims - extra + j)];
          CRESSET_CHECK(known <= 1 || t.size(d) == 1 || t.size(d) == known, "einsum(): dimension ", d, " covered by ellipsis in operand ",
                        k, " has size ", t.size(d), " which does not broadcast with previously seen ellipsis with size ", known,
                        " for the respective dimension");
          known = std::max(known, t.size(d));
          places.push_back(ellipsis_at + ellipsis_dims - extra + j);
        }
      } else if (seen[l] >= 0) {
        CRESSET_CHECK(t.size(d) == t.size(seen[l]), "einsum(): subscript ", name_of(l), " is repeated for operand ", k,
                      " but the sizes don't match, ", t.size(d), " != ", t.size(seen[l]));
        t = t.diagonal(0, seen[l], d).movedim(-1, seen[l]);
      } else {
        CRESSET_CHECK(size_of[l] <= 1 || t.size(d) == 1 || t.size(d) == size_of[l], "einsum(): subscript ", name_of(l), " has size ",
                      t.size(d), " for operand ", k, " which does not broadcast with previously seen size ", size_of[l]);
        size_of[l] = std::max(size_of[l], t.size(d));
        seen[l] = d++;
        places.push_back(position[l]);
      }
    }
    // Into the common order, size 1 where the operand has no such dimension.
    std::vector<int64_t> order(static_cast<std::size_t>(n), -1);
    for (std::size_t i = 0; i < places.size(); ++i) {
      order[places[i]] = static_cast<int64_t>(i);
      last_use[places[i]] = static_cast<int>(k);
    }
    DimVector permutation;
    for (int64_t p : order)
      if (p >= 0) permutation.push_back(p);
    t = t.permute(permutation);
    for (int64_t i = 0; i < n; ++i)
      if (order[i] < 0) t = t.unsqueeze(i);
    operands.push_back(t);
  }

  Tensor acc = operands[0];
  const auto sum_now = [&](int k) {
    uint64_t mask = 0;
    for (int64_t d = kept; d < n; ++d)
      if (last_use[d] == k) mask |= uint64_t{1} << d;
    return mask;
  };
  DimVector first;
  for (int64_t d = 0; d < n; ++d)
    if (sum_now(0) >> d & 1) first.push_back(d);
  if (!first.empty()) acc = acc.sum(first, true);
  for (std::size_t k = 1; k < operands.size(); ++k) acc = contract(acc, operands[k], sum_now(static_cast<int>(k)));
  for (int64_t d = n; d-- > kept;) acc = acc.squeeze(d);
  return acc;
}

}  // namespace cresset::ops
