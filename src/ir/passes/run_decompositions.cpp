// Operators that have a decomposition, a graph that computes the same by others, become it. Programs register theirs; those that are known
// without are var's.
#include <mutex>
#include <unordered_map>

#include <cresset/base/fork.h>
#include <cresset/ir/function.h>
#include <cresset/ir/operator.h>
#include <cresset/ir/pass_functions.h>

#include "ir/rewrite/pass_tools.h"

namespace cresset::jit {
namespace {

// Sums of squared distances from the mean, of complex numbers too, by what var divides by.
constexpr const char* kKnownDecompositions = R"(
def variance(self: Tensor, dim: Optional[List[int]], correction: float, keepdim: bool) -> Tensor:
    dims: List[int] = []
    if dim is not None:
        dims = dim
    n = 1
    if len(dims) == 0:
        n = self.numel()
    else:
        for d in dims:
            n *= self.size(d)
    distance = torch.abs(self - torch.mean(self, dims, True))
    return torch.sum(distance * distance, dims, keepdim) / max(float(n) - correction, 0.0)

def var(self: Tensor, unbiased: bool) -> Tensor:
    return variance(self, None, 1.0 if unbiased else 0.0, False)

def var_dim(self: Tensor, dim: Optional[List[int]], unbiased: bool, keepdim: bool) -> Tensor:
    return variance(self, dim, 1.0 if unbiased else 0.0, keepdim)

def var_correction(self: Tensor, dim: Optional[List[int]], correction: Optional[number], keepdim: bool) -> Tensor:
    return variance(self, dim, 1.0 if correction is None else float(correction), keepdim)
)";
constexpr std::pair<const char*, const char*> kKnownDecompositionNames[] = {
    {"aten::var", "var"}, {"aten::var.dim", "var_dim"}, {"aten::var.correction", "var_correction"}};

std::string overload_of(const FunctionSchema& s) { return s.overload_name().empty() ? s.name() : s.name() + "." + s.overload_name(); }

struct DecompositionRegistry {
  ForkSafe<std::mutex> mutex;
  std::unordered_map<std::string, std::shared_ptr<Graph>> graphs;
};
DecompositionRegistry& decomposition_registry() {
  static auto* made = new DecompositionRegistry;
  static std::once_flag once;
  std::call_once(once, [] {
    const auto unit = compile(kKnownDecompositions);
    for (const auto& [schema, function] : kKnownDecompositionNames) {
      std::shared_ptr<Graph> graph = unit->get_function(function).graph()->copy();
      inline_calls(graph);
      made->graphs.emplace(schema, std::move(graph));
    }
  });
  return *made;
}

const RegisterPass run_decompositions_pass({
    .name = "run_decompositions",
    .phase = "lower",
    .summary = "operators with a registered decomposition become it",
    .needs = {},
    .keeps = {"marks"},
    .run =
        [](const std::shared_ptr<Graph>& g) {
          bool changed = false;
          for (Node* n : nodes_where(*g, [](const Node* m) { return m->kind().is_aten() && !is_marked(m); })) {
            const FunctionSchema* schema = n->maybeSchema();
            const auto body = schema ? GetDecomposition(*schema) : std::nullopt;
            if (!body) continue;
            const WithInsertPoint guard(n);
            Node* before = n->prev();
            const std::vector<Value*> results = g->insertGraph(**body, n->inputs());
            for (Node* fresh = before->next(); fresh != n; fresh = fresh->next())
              fresh->setSourceRange(n->sourceRange())->setCallStack(n->callstack());
            for (std::size_t i = 0; i < results.size(); ++i) hand_on(n->output(i), results[i]);
            n->destroy();
            changed = true;
          }
          if (changed) eliminate_dead_code(g);
          return in_subgraphs(*g, [](const std::shared_ptr<Graph>& inner) { return find_pass("run_decompositions")->run(inner); }) ||
                 changed;
        },
});

}  // namespace

void RunDecompositions(std::shared_ptr<Graph> graph) { find_pass("run_decompositions")->run(graph); }

void RegisterDecomposition(const FunctionSchema& schema, std::shared_ptr<Graph> graph) {
  const std::string name = overload_of(schema);
  CRESSET_CHECK(!schema.is_mutable(), "RegisterDecomposition: an operator that writes nothing was required; '", schema.str(),
                "' was given.");
  CRESSET_CHECK(graph->inputs().size() == schema.arguments().size() && graph->outputs().size() == schema.returns().size(),
                "RegisterDecomposition: a graph with ", schema.arguments().size(), " inputs and ", schema.returns().size(),
                " outputs was required, as ", name, " has; this one has ", graph->inputs().size(), " and ", graph->outputs().size(), ".");
  DecompositionRegistry& r = decomposition_registry();
  const std::lock_guard lock(r.mutex);
  r.graphs[name] = graph->copy();
}

std::optional<std::shared_ptr<Graph>> GetDecomposition(const FunctionSchema& schema) {
  DecompositionRegistry& r = decomposition_registry();
  const std::lock_guard lock(r.mutex);
  const auto found = r.graphs.find(overload_of(schema));
  return found == r.graphs.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace cresset::jit
