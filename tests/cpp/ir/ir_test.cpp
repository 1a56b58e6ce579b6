// Use lists: what they hold and in which order, whatever was done to the inputs of nodes.
#include <algorithm>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include <cresset/ir/ir.h>

namespace cresset::jit {
namespace {

// Lists of uses as plain lists, searched and erased.
struct Model {
  std::map<const Value*, std::vector<Use>> uses;

  void remove(const Value* v, const Use& use) {
    std::vector<Use>& list = uses[v];
    const auto at = std::find(list.begin(), list.end(), use);
    ASSERT_NE(at, list.end());
    list.erase(at);
  }
  void move(const Value* v, const Use& use, std::size_t offset) {
    std::vector<Use>& list = uses[v];
    std::find(list.begin(), list.end(), use)->offset = offset;
  }
};

TEST(UseLists, AreInTheOrderOfUsing) {
  const auto graph = std::make_shared<Graph>();
  std::vector<Value*> values;
  std::vector<Node*> nodes;
  for (int i = 0; i < 3; ++i) values.push_back(graph->addInput());
  for (int i = 0; i < 40; ++i) nodes.push_back(graph->appendNode(graph->create(Symbol::fromQualString("my::op"), 0)));
  Model model;
  std::mt19937 random(0);
  const auto below = [&](std::size_t n) { return std::size_t{random()} % n; };
  for (int step = 0; step < 20000; ++step) {
    Node* n = nodes[below(nodes.size())];
    // Mostly one value, so that its list is long.
    Value* v = values[below(8) < 6 ? 0 : below(values.size())];
    const std::size_t size = n->inputs().size();
    switch (size ? below(size > 12 ? 3 : 7) : 6) {
      case 0: {
        const std::size_t i = below(size);
        model.remove(n->input(i), {n, i});
        for (std::size_t k = i + 1; k < size; ++k) model.move(n->input(k), {n, k}, k - 1);
        n->removeInput(i);
        break;
      }
      case 1: {
        if (below(10)) break;
        for (std::size_t i = size; i-- > 0;) model.remove(n->input(i), {n, i});
        n->removeAllInputs();
        break;
      }
      case 2: {
        if (below(10)) break;
        std::vector<std::size_t> order(size);
        for (std::size_t i = 0; i < size; ++i) order[i] = i;
        std::shuffle(order.begin(), order.end(), random);
        for (std::size_t i = size; i-- > 0;) model.remove(n->input(i), {n, i});
        for (std::size_t i = 0; i < size; ++i) model.uses[n->input(order[i])].push_back({n, i});
        n->permuteInputs(order);
        break;
      }
      case 3: {
        const std::size_t i = below(size);
        model.remove(n->input(i), {n, i});
        model.uses[v].push_back({n, i});
        n->replaceInput(i, v);
        break;
      }
      case 4: {
        const std::size_t i = below(size + 1);
        for (std::size_t k = size; k > i; --k) model.move(n->input(k - 1), {n, k - 1}, k);
        model.uses[v].push_back({n, i});
        n->insertInput(i, v);
        break;
      }
      case 5: {
        if (below(50)) break;
        Value* other = values[below(values.size())];
        if (other == v) break;
        std::vector<Use>& from = model.uses[v];
        model.uses[other].insert(model.uses[other].end(), from.begin(), from.end());
        from.clear();
        v->replaceAllUsesWith(other);
        break;
      }
      default: model.uses[v].push_back({n, size}); n->addInput(v);
    }
    if (step % 16) continue;
    graph->lint();
    for (const Value* known : values) {
      const std::vector<Use>& wanted = model.uses[known];
      ASSERT_EQ(std::vector<Use>(known->uses()), wanted) << step;
      ASSERT_EQ(known->uses().size(), wanted.size());
      ASSERT_EQ(known->hasUses(), !wanted.empty());
      ASSERT_EQ(known->uses().empty(), wanted.empty());
      if (!wanted.empty()) {
        ASSERT_EQ(known->uses().front(), wanted.front());
        ASSERT_EQ(known->uses()[wanted.size() / 2], wanted[wanted.size() / 2]);
      }
    }
  }
}

// ---- insertion points

struct Points : ::testing::Test {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  Node* add() { return graph->appendNode(graph->create(Symbol::fromQualString("my::op"), 0)); }
  Node *first = add(), *second = add(), *third = add();
};

TEST_F(Points, GoBackToTheSuccessorOfANodeThatWent) {
  graph->setInsertPoint(second);
  {
    const WithInsertPoint guard(first);
    second->destroy();
    EXPECT_EQ(graph->insertPoint(), first);
  }
  EXPECT_EQ(graph->insertPoint(), third);
}

TEST_F(Points, OfNestedGuardsAllMove) {
  graph->setInsertPoint(first);
  {
    const WithInsertPoint outer(second);
    {
      const WithInsertPoint inner(third);
      first->destroy();
      second->destroy();
    }
    EXPECT_EQ(graph->insertPoint(), third);
    third->destroy();
    EXPECT_EQ(graph->insertPoint(), graph->return_node());
  }
  EXPECT_EQ(graph->insertPoint(), graph->return_node());
}

TEST_F(Points, OfANodeThatWasTakenOutGoToTheEnd) {
  graph->setInsertPoint(second);
  {
    const WithInsertPoint guard(third);
    second->removeFromList();
  }
  EXPECT_EQ(graph->insertPoint(), graph->return_node());
  second->destroy();
}

TEST_F(Points, OfABlockThatWentGoToTheEnd) {
  Block* block = first->addBlock();
  Node* nested = block->appendNode(graph->create(Symbol::fromQualString("my::op"), 0));
  for (Node* place : {nested, block->return_node()}) {
    graph->setInsertPoint(place);
    const WithInsertPoint guard(third);
    if (place == block->return_node()) first->eraseBlock(0);
  }
  EXPECT_EQ(graph->insertPoint(), graph->return_node());
}

TEST_F(Points, AreRefusedOutsideOfBlocks) {
  first->removeFromList();
  EXPECT_THROW(WithInsertPoint{first}, Error);
  EXPECT_EQ(graph->insertPoint(), graph->return_node());
  first->destroy();
}

}  // namespace
}  // namespace cresset::jit
