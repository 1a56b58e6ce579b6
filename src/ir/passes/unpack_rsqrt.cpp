// rsqrt(x) becomes reciprocal(sqrt(x)). Integers become floating point in sqrt as they do in rsqrt.
#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {
using rewrite::Emitter, rewrite::Site;

Value* unpack_rsqrt(const Site& site) {
  if (!rewrite::calls(site.node, "aten::rsqrt")) return nullptr;
  const Emitter emit(site.node);
  return emit("aten::reciprocal", {emit("aten::sqrt", {site.node->input(0)})});
}

const RegisterPass unpack_rsqrt_pass({
    .name = "unpack_rsqrt",
    .phase = "lower",
    .summary = "rsqrt to the reciprocal of a square root",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = [](PassContext& c) { return rewrite::rewrite_nodes(c, {"aten::rsqrt"}, unpack_rsqrt); },
});

}  // namespace
}  // namespace cresset::jit
