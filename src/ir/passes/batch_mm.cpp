// Sums of many products of matrices become one node, and so do many products with one matrix on the same side. Where the other operands
// have the same sizes such a node multiplies once:
//
//   a1 @ b1 + a2 @ b2 + … = [a1 a2 …] @ [b1; b2; …]
//   a @ b1, a @ b2, … = a @ [b1 b2 …]
//
// Such sums are what the backward pass of a recurrent layer computes for its weights. The result differs by roundings. A product of which
// an operand is written somewhere stays.
#include <unordered_map>
#include <unordered_set>

#include <cresset/ir/pass_functions.h>

#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {

constexpr std::size_t kFewestProducts = 4;
constexpr std::size_t kFewestOnOneSide = 8;

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
    return batch_sides(graph_->block()) || changed;
  }

 private:
  // Products of the block that have one operand in common, on its left or right.
  bool batch_sides(Block* block) {
    bool changed = false;
    std::vector<Value*> order[2];
    std::unordered_map<Value*, std::vector<Node*>> with[2];
    for (Node* n : block->nodes()) {
      for (Block* b : n->blocks()) changed = batch_sides(b) || changed;
      if (!rewrite::calls(n, "aten::mm") || is_marked(n) || !n->hasUses() || aliases_->hasWriters(n)) continue;
      for (const std::size_t side : {0, 1}) {
        std::vector<Node*>& same = with[side][n->input(side)];
        if (same.empty()) order[side].push_back(n->input(side));
        same.push_back(n);
      }
    }
    for (const std::size_t side : {0, 1})
      for (Value* common : order[side]) changed = batch(with[side][common], side) || changed;
    return changed;
  }
  bool batch(const std::vector<Node*>& products, std::size_t side) {
    std::vector<Node*> together;
    for (Node* n : products) {
      if (taken_.count(n)) continue;
      if (together.empty() || aliases_->moveAfterTopologicallyValid(n, together.back())) together.push_back(n);
    }
    if (together.size() < kFewestOnOneSide) return false;
    std::vector<Value*> operands{together[0]->input(side)};
    for (const Node* n : together) operands.push_back(n->input(1 - side));
    // Behind all operands, and in front of all users, which moved behind the last product.
    Node* fresh = graph_->create(prim::MMBatchSide, operands, together.size())->insertBefore(together.back())->copyMetadata(together[0]);
    fresh->i_(attr::side, static_cast<int64_t>(side));
    for (std::size_t i = 0; i < together.size(); ++i) {
      rewrite::replace_value(together[i]->output(), fresh->output(i), &aliases_);
      taken_.insert(together[i]);
      aliases_.bury(together[i]);
    }
    return true;
  }

  // Collects products and sums of the tree from left to right. Each belongs to the tree alone and sees what it would see at the root.
  bool is_tree(Node* n, const Node* root) {
    const bool is_product = rewrite::calls(n, "aten::mm");
    if ((!is_product && !is_plain_sum(n)) || n->owningBlock() != root->owningBlock() || is_marked(n)) return false;
    if (n != root && n->output()->use_count() != 1) return false;
    if (is_product) {
      if (aliases_->hasWriters(n)) return false;
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
    .summary = "many products of matrices that are added, or have one operand in common, to one product",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = [](PassContext& c) { return Batching(c.graph).run(); },
});

}  // namespace

void BatchMM(std::shared_ptr<Graph>& graph) { find_pass("batch_mm")->run(graph); }

}  // namespace cresset::jit
