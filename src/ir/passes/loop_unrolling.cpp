// Unrolls `for` loops: the start condition and the one the body returns are the constant true. Short loops with a constant number of
// iterations are written out; others with a small body run eight copies an iteration, and the rest in a second loop. The constant variant
// only writes out loops with a constant number of iterations, whatever the body's size. Inner loops first; constants propagate afterwards.
// A second run unrolls what the first one left. Nothing need run before it.
#include <cresset/ir/pass.h>

#include "ir/rewrite/pass_tools.h"

namespace cresset::jit {
namespace {

constexpr int64_t kMostIterations = 64;  // a constant number below this is written out
constexpr std::size_t kLargestBody = 32;
constexpr int64_t kCopies = 8;
// A nest of constant loops must not make the graph larger than memory.
constexpr std::size_t kLargestResult = 1 << 20;

bool is_for_loop(const Node* loop) {
  return constant_as<bool>(loop->input(1)) == std::optional(true) &&
         constant_as<bool>(loop->blocks()[0]->outputs()[0]) == std::optional(true);
}

// Nodes without constants, nested ones included.
std::size_t body_size(const Block* body) {
  std::size_t size = 0;
  body->visit([&](const Node* n) { size += n->kind() != prim::Constant; });
  return size;
}

// A copy of the body in front of a node. Gives what the body carries on.
std::vector<Value*> copy_body(const Block* body, Node* before, Value* counter, const std::vector<Value*>& carried) {
  std::unordered_map<Value*, Value*> map{{body->inputs()[0], counter}};
  for (std::size_t i = 0; i < carried.size(); ++i) map[body->inputs()[i + 1]] = carried[i];
  const auto mapped = [&](Value* v) {
    const auto found = map.find(v);
    return found == map.end() ? v : found->second;
  };
  Graph& g = *before->owningGraph();
  for (const Node* n : body->nodes()) {
    Node* copy = g.createClone(n, mapped)->insertBefore(before);
    for (std::size_t i = 0; i < n->outputs().size(); ++i) map[n->outputs()[i]] = copy->outputs()[i];
  }
  std::vector<Value*> out;
  for (std::size_t i = 1; i < body->outputs().size(); ++i) out.push_back(mapped(body->outputs()[i]));
  return out;
}

std::vector<Value*> carried_in(const Node* loop) { return {loop->inputs().begin() + 2, loop->inputs().end()}; }

void write_out(Node* loop, int64_t iterations) {
  std::vector<Value*> carried = carried_in(loop);
  const Block* body = loop->blocks()[0];
  for (int64_t i = 0; i < iterations; ++i) carried = copy_body(body, loop, constant_before(loop, i), carried);
  for (std::size_t i = 0; i < carried.size(); ++i) loop->output(i)->replaceAllUsesWith(carried[i]);
  loop->destroy();
}

// for i in range(n): body   →   two loops that carry the counter on: n // 8 times eight bodies, and the rest.
void split(Node* loop) {
  Graph& g = *loop->owningGraph();
  const Block* body = loop->blocks()[0];
  const WithInsertPoint guard(loop);
  const SourceRange range = loop->sourceRange();
  Value *zero = g.insertConstant(int64_t{0}, range), *eight = g.insertConstant(kCopies, range), *one = g.insertConstant(int64_t{1}, range),
        *yes = loop->input(1);
  // A negative number of iterations is none.
  Value* trips = g.insert(prim::max, {loop->input(0), zero}, {}, range);
  Value* main_trips = g.insert(Symbol::aten("floordiv"), {trips, eight}, {}, range);
  Value* rest = g.insert(Symbol::aten("sub"), {trips, g.insert(Symbol::aten("mul"), {main_trips, eight}, {}, range)}, {}, range);

  const auto make_loop = [&](Value* count, const std::vector<Value*>& initial, int64_t copies) {
    Node* made = g.create(prim::Loop, {count, yes}, 0);
    made->copyMetadata(loop);
    for (Value* v : initial) made->addInput(v);
    Block* block = made->addBlock();
    block->addInput()->setType(basic_type(TypeKind::Int));  // the new loop's own counter: unused
    std::vector<Value*> carried;
    for (const Value* v : initial) carried.push_back(block->addInput()->setType(v->type()));
    // A carried value has the type that the original loop gives it, wider than its first value perhaps.
    for (std::size_t i = 1; i < carried.size(); ++i) carried[i]->setType(body->inputs()[i]->type());
    g.insertNode(made);
    const WithInsertPoint inside(block);
    Value* counter = carried[0];
    std::vector<Value*> values(carried.begin() + 1, carried.end());
    for (int64_t i = 0; i < copies; ++i) {
      values = copy_body(body, block->return_node(), counter, values);
      counter = g.insert(Symbol::aten("add"), {counter, one}, {}, range);
    }
    block->registerOutput(yes);
    block->registerOutput(counter);
    for (Value* v : values) block->registerOutput(v);
    for (Value* v : carried) made->addOutput()->setType(v->type());
    return made;
  };
  std::vector<Value*> initial{zero};
  for (Value* v : carried_in(loop)) initial.push_back(v);
  Node* main = make_loop(main_trips, initial, kCopies);
  Node* epilogue = make_loop(rest, main->outputs(), 1);
  for (std::size_t i = 0; i < loop->outputs().size(); ++i) loop->output(i)->replaceAllUsesWith(epilogue->output(i + 1));
  loop->destroy();
}

bool unroll_one(Node* loop, bool constant_only) {
  if (is_marked(loop) || !is_for_loop(loop)) return false;
  const std::size_t size = body_size(loop->blocks()[0]);
  const auto trips = constant_as<int64_t>(loop->input(0));
  const int64_t count = trips ? std::max(*trips, int64_t{0}) : 0;
  if (trips && count < kMostIterations && (constant_only || size <= kLargestBody) &&
      loop->owningGraph()->node_count() + size * static_cast<std::size_t>(count) < kLargestResult) {
    write_out(loop, count);
    return true;
  }
  if (constant_only || size > kLargestBody) return false;
  split(loop);
  return true;
}

bool unroll(const std::shared_ptr<Graph>& graph, bool constant_only) {
  bool changed = false;
  for (Node* n : innermost_first(*graph, [](const Node* m) { return m->kind() == prim::Loop; }))
    changed = unroll_one(n, constant_only) || changed;
  changed = in_subgraphs(*graph, [&](const std::shared_ptr<Graph>& g) { return unroll(g, constant_only); }) || changed;
  if (changed) propagate_constants(graph);
  return changed;
}

const RegisterPass loop_unrolling_all_pass({
    .name = "loop_unrolling",
    .phase = "simplify",
    .summary = "writes out short loops, runs eight iterations at once in others",
    .needs = {},
    .keeps = {"marks", "aliasing"},
    .run = unroll_loops,
    .title = "unroll-loops",
});
const RegisterPass loop_unrolling_constant_pass({
    .name = "constant_loop_unrolling",
    .phase = "simplify",
    .summary = "writes out loops with a constant number of iterations",
    .needs = {},
    .keeps = {"marks", "aliasing"},
    .run = unroll_constant_loops,
    .title = "unroll-constant-loops",
});

}  // namespace

bool unroll_loops(const std::shared_ptr<Graph>& graph) { return unroll(graph, false); }
bool unroll_constant_loops(const std::shared_ptr<Graph>& graph) { return unroll(graph, true); }

}  // namespace cresset::jit
