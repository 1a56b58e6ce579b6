// Operators with two names: graphs have one of them, so that passes need to know only that.
#include <algorithm>

#include "ir/frontend/call_matching.h"

namespace cresset::jit {
namespace {

struct Alias {
  std::string_view name, canonical;
};
constexpr Alias kAliases[] = {
    {"absolute", "abs"},
    {"adjoint", "mH"},
    {"arccos", "acos"},
    {"arccosh", "acosh"},
    {"arcsin", "asin"},
    {"arcsinh", "asinh"},
    {"arctan", "atan"},
    {"arctan2", "atan2"},
    {"arctanh", "atanh"},
    {"clip", "clamp"},
    {"concat", "cat"},
    {"concatenate", "cat"},
    {"det", "linalg_det"},
    {"divide", "div"},
    {"fix", "trunc"},
    {"ger", "outer"},
    {"greater", "gt"},
    {"greater_equal", "ge"},
    {"inverse", "linalg_inv"},
    {"less", "lt"},
    {"less_equal", "le"},
    {"linalg_matmul", "matmul"},
    {"matrix_exp", "linalg_matrix_exp"},
    {"matrix_power", "linalg_matrix_power"},
    {"moveaxis", "movedim"},
    {"multiply", "mul"},
    {"negative", "neg"},
    {"not_equal", "ne"},
    {"orgqr", "linalg_householder_product"},
    {"row_stack", "vstack"},
    {"special_digamma", "digamma"},
    {"special_erf", "erf"},
    {"special_erfc", "erfc"},
    {"special_erfinv", "erfinv"},
    {"special_exp2", "exp2"},
    {"special_expit", "sigmoid"},
    {"special_expm1", "expm1"},
    {"special_gammainc", "igamma"},
    {"special_gammaincc", "igammac"},
    {"special_gammaln", "lgamma"},
    {"special_i0", "i0"},
    {"special_log1p", "log1p"},
    {"special_log_softmax", "log_softmax"},
    {"special_logit", "logit"},
    {"special_logsumexp", "logsumexp"},
    {"special_multigammaln", "mvlgamma"},
    {"special_polygamma", "polygamma"},
    {"special_psi", "digamma"},
    {"special_round", "round"},
    {"special_sinc", "sinc"},
    {"special_softmax", "softmax"},
    {"special_xlogy", "xlogy"},
    {"subtract", "sub"},
    {"swapaxes", "transpose"},
    {"swapdims", "transpose"},
    {"true_divide", "div"},
};

}  // namespace

Symbol canonical_operator(Symbol kind) {
  if (!kind.is_aten()) return kind;
  std::string_view name = kind.toUnqualString();
  const bool in_place = name.size() > 1 && name.back() == '_' && name[name.size() - 2] != '_';
  if (in_place) name.remove_suffix(1);
  const auto* found =
      std::lower_bound(std::begin(kAliases), std::end(kAliases), name, [](const Alias& a, std::string_view n) { return a.name < n; });
  if (found == std::end(kAliases) || found->name != name) return kind;
  const Symbol canonical = Symbol::aten(std::string(found->canonical) + (in_place ? "_" : ""));
  return operators_of(canonical).empty() ? kind : canonical;
}

}  // namespace cresset::jit
