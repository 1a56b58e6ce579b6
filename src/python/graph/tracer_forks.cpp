// jit.fork in a trace: the call is recorded where it stands, between two marks. When the trace ends, what stands between them becomes the
// graph of a prim::fork, unless something behind the fork uses it other than by waiting, or a module with a method of its own was called
// there: then it stays where it is.
#include <unordered_set>

#include "python/convert.h"
#include "python/graph/ir.h"
#include "python/graph/script_convert.h"
#include "python/graph/tracer.h"

namespace cresset::python {
namespace {

namespace tracer = jit::tracer;

struct TracedFork {
  jit::Node* begin;
  jit::Node* end = nullptr;  // its input is what the call gave, its output the future
  intrusive_ptr<ivalue::Future> future;
  IValue result;
};
// Of the trace of this thread; those that have ended, inner ones first, and those that have not.
thread_local std::vector<TracedFork> ended, open;

jit::Node* mark(const std::vector<jit::Value*>& inputs, std::size_t outputs) {
  jit::Graph& graph = *tracer::current()->graph;
  return graph.insertNode(graph.create(jit::prim::TracedFork, inputs, outputs));
}

// The node of the block in which this one stands, or null.
jit::Node* in_block(jit::Node* n, const jit::Block* block) {
  while (n && n->owningBlock() != block) n = n->owningBlock()->owningNode();
  return n;
}

// What stands between the marks, when nothing else needs it.
std::optional<std::vector<jit::Node*>> nodes_of(const TracedFork& fork) {
  const jit::Block* block = fork.begin->owningBlock();
  if (fork.end->owningBlock() != block) return std::nullopt;
  std::vector<jit::Node*> nodes;
  for (jit::Node* n = fork.begin->next(); n != fork.end; n = n->next()) {
    if (n->kind() == jit::prim::Return || n->kind() == jit::prim::TracedModuleForward || n->kind() == jit::prim::TracedFork)
      return std::nullopt;
    nodes.push_back(n);
  }
  const std::unordered_set<const jit::Node*> inside(nodes.begin(), nodes.end());
  for (const jit::Node* n : nodes)
    for (const jit::Value* v : n->outputs())
      for (const jit::Use& use : v->uses())
        if (use.user != fork.end && !inside.contains(in_block(use.user, block))) return std::nullopt;
  return nodes;
}

void outline(const TracedFork& traced, const std::vector<jit::Node*>& nodes) {
  jit::Graph& graph = *traced.begin->owningGraph();
  jit::Node* fork = graph.create(jit::prim::fork)->setSourceRange(traced.end->sourceRange())->insertBefore(traced.end);
  jit::Block* block = fork->addBlock();
  for (jit::Node* n : nodes) n->moveBefore(block->return_node());
  block->registerOutput(traced.end->input());
  auto body = std::make_shared<jit::Graph>();
  std::unordered_map<jit::Value*, jit::Value*> lifted;
  body->block()->cloneFrom(block, [&](jit::Value* v) {
    jit::Value*& inner = lifted[v];
    if (!inner) {
      inner = body->addInput()->setType(v->type());
      fork->addInput(v);
    }
    return inner;
  });
  fork->output()->copyMetadata(traced.end->output());
  traced.end->output()->replaceAllUsesWith(fork->output());
  traced.end->destroy();
  fork->eraseBlock(0);
  fork->g_(jit::attr::Subgraph, body);
}

void leave_inline(const TracedFork& traced) {
  const auto uses = traced.end->output()->uses();
  for (const jit::Use& use : uses) {
    use.user->output()->replaceAllUsesWith(traced.end->input());
    use.user->destroy();
  }
  traced.end->destroy();
}

}  // namespace

void forget_traced_forks() {
  ended.clear();
  open.clear();
}

void finish_traced_forks() {
  for (const TracedFork& fork : open) fork.begin->destroy();  // what was called raised, and somebody caught that
  for (const TracedFork& fork : ended) {
    if (const auto nodes = nodes_of(fork))
      outline(fork, *nodes);
    else
      leave_inline(fork);
    fork.begin->destroy();
  }
  forget_traced_forks();
}

void note_traced_wait(const intrusive_ptr<ivalue::Future>& future) {
  if (!tracer::is_tracing()) return;
  for (const TracedFork& fork : ended) {
    if (fork.future != future) continue;
    jit::Value* value = tracer::current()->create(jit::aten::wait, {fork.end->output()})->output();
    tracer::current()->bind(fork.result, value->setType(tracer::without_shapes(fork.end->input()->type())));
  }
}

void init_tracer_forks(PyObject* module) {
  def(module, "_trace_fork_begin", [] { open.push_back({mark({}, 0), nullptr, {}, {}}); }, "What follows is called by jit.fork.");
  def(
      module, "_trace_fork_end",
      [](PyObject* future, PyObject* result) {
        CRESSET_CHECK(!open.empty(), "trace: a fork ended that had not begun.");
        TracedFork fork = std::move(open.back());
        open.pop_back();
        fork.future = future_of_object(future);
        try {
          fork.result = traced_result(result);
        } catch (const Error&) {  // no result of a graph: what was called is recorded where it stands
          fork.begin->destroy();
          return;
        }
        fork.end = mark({tracer::current()->value_of(fork.result)}, 1);
        fork.end->output()->setType(future_of(tracer::without_shapes(fork.end->input()->type())));
        ended.push_back(std::move(fork));
      },
      "The innermost fork has ended, with this future and this result.");
  def(module, "_trace_fork_failed", [] {
    if (open.empty()) return;
    open.back().begin->destroy();
    open.pop_back();
  });
}

}  // namespace cresset::python
