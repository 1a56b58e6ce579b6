// Sums of many products of matrices become one node, which multiplies once where the operands have the same sizes:
//
//   a1 @ b1 + a2 @ b2 + … = [a1 a2 …] @ [b1; b2; …]
//
// Such sums are what the backward pass of a recurrent layer computes for its weights. The result differs by roundings.
#include <unordered_set>

#include <cresset/ir/pass_functions.h>

#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {

constexpr std::size_t kFewestProducts = 4;

bool is_plain_sum(const Node* n) { return rewrite::calls(n, "aten::add.Tensor") && rewrite::is_number(n->input(2), 1); }

class Batching {
 public:
  explicit Batching(std::shared_ptr<Graph> graph) : graph_(std::move(graph)), aliases_(graph_) {}

  bool run() {
    bool changed = false;
    const std::vector<Node*> sums = rewrite::nodes_of(*graph_, {"aten::add"});
    // From the last sum to the first: the root of a tree comes before its parts.
    for (auto at = sums.rbegin(); at != sums.rend(); ++at) {
      if (taken_.count(*at)) continue;
      products_.clear(), sums_.clear();
      if (is_tree(*at, *at) && products_.size() >= kFewestProducts) {
        replace(*at);
        changed = true;
      }
    }
    return changed;
  }

 private:
  // Collects products and sums of the tree from left to right. Each belongs to the tree alone and sees what it would see at the root.
  bool is_tree(Node* n, const Node* root) {
    const bool is_product = rewrite::calls(n, "aten::mm");
    if ((!is_product && !is_plain_sum(n)) || n->owningBlock() != root->owningBlock() || is_marked(n)) return false;
    if (n != root && n->output()->use_count() != 1) return false;
    if (is_product) {
      if (rewrite::written_between(n, root, {n->input(0), n->input(1)}, *aliases_) || aliases_->hasWriters(n->output())) return false;
      products_.push_back(n);
      return true;
    }
    if (aliases_->hasWriters(n->output())) return false;
    sums_.push_back(n);
    return is_tree(n->input(0)->node(), root) && is_tree(n->input(1)->node(), root);
  }

  void replace(Node* root) {
    std::vector<Value*> operands;
    for (const std::size_t side : {0, 1})
      for (const Node* product : products_) operands.push_back(product->input(side));
    Node* fresh = graph_->create(prim::MMTreeReduce, operands)->insertBefore(root)->copyMetadata(root);
    fresh->output()->setType(root->output()->type());
    rewrite::replace_value(root->output(), fresh->output());
    for (Node* n : sums_) taken_.insert(n), aliases_.bury(n);
    for (Node* n : products_) aliases_.bury(n);
  }

  std::shared_ptr<Graph> graph_;
  rewrite::Aliases aliases_;
  std::vector<Node*> products_, sums_;
  std::unordered_set<const Node*> taken_;
};

const RegisterPass batch_mm_pass({
    .name = "batch_mm",
    .phase = "fuse",
    .summary = "sums of many products of matrices to one product",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = [](PassContext& c) { return Batching(c.graph).run(); },
});

}  // namespace

void BatchMM(std::shared_ptr<Graph>& graph) { find_pass("batch_mm")->run(graph); }

}  // namespace cresset::jit
