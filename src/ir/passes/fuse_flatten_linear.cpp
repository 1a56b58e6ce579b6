// linear(flatten(x, 1, -1), w, bias) becomes linear(x, w, bias).
//
// With the option linear_flattens (a backend whose linear takes all dimensions behind the first as one; off by default) for every x; a note
// says so. Without it only where flatten changes nothing: it flattens one dimension alone, as for an x known to be a matrix. The flattened
// value must have no other user.
#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {
using rewrite::Site;

struct Dims {
  int64_t first, last;
};

// Dimensions that are flattened; a last one of -1 is only known with the rank.
std::optional<Dims> dims_of(const Node* flatten, std::optional<std::size_t> rank) {
  const auto first = constant_as<int64_t>(flatten->input(1)), last = constant_as<int64_t>(flatten->input(2));
  if (!first || !last) return std::nullopt;
  const auto from_front = [&](int64_t d) { return d < 0 && rank ? d + static_cast<int64_t>(*rank) : d; };
  return Dims{from_front(*first), from_front(*last)};
}

bool fuse(const Site& site) {
  Node* linear = site.node;
  if (!rewrite::calls(linear, "aten::linear")) return false;
  Node* flatten = linear->input(0)->node();
  if (!rewrite::calls(flatten, "aten::flatten.using_ints") || is_marked(flatten) || flatten->output()->use_count() != 1) return false;
  const auto rank = rewrite::rank_of(flatten->input(0), site.context.options);
  const auto dims = dims_of(flatten, rank);
  if (!dims) return false;
  const bool does_nothing = rank && *rank > 0 && dims->first == dims->last && dims->first >= 0 && dims->last < static_cast<int64_t>(*rank);
  if (!does_nothing) {
    const int64_t last = rank ? static_cast<int64_t>(*rank) - 1 : -1;
    if (!site.context.options.linear_flattens || dims->first != 1 || dims->last != last) return false;
    site.context.note(NoteLevel::info, linear, "left flatten to the backend's linear");
  }
  linear->replaceInput(0, flatten->input(0));
  flatten->destroy();
  return true;
}

bool fuse_flatten_linear(PassContext& context) {
  rewrite::Aliases aliases(context.graph);
  bool changed = false;
  for (Node* n : rewrite::nodes_of(*context.graph, {"aten::linear"})) changed = fuse({n, context, aliases}) || changed;
  return changed;
}

const RegisterPass fuse_flatten_linear_pass({
    .name = "fuse_flatten_linear",
    .phase = "fuse",
    .summary = "leaves flatten to a linear that flattens",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = fuse_flatten_linear,
});

}  // namespace
}  // namespace cresset::jit
