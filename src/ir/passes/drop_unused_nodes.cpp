// Removes nodes whose results nobody uses, without alias analysis: everything that writes stays. Quick, for use between other passes;
// eliminate-dead-code removes more.
#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {

const RegisterPass drop_unused_nodes_pass({
    .name = "drop_unused_nodes",
    .phase = "cleanup",
    .summary = "removes unused nodes that write nothing",
    .needs = {},
    .keeps = {"marks", "names", "aliasing"},
    .run = [](const std::shared_ptr<Graph>& g) { return eliminate_dead_code(g, {.with_aliases = false}); },
});

}  // namespace
}  // namespace cresset::jit
