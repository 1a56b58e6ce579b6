// Replaces calls of functions and methods by their graphs. Nodes remember the calls: their call stack gains the call site, with the
// instance path of the module for methods.
#include <algorithm>
#include <unordered_map>

#include <cresset/ir/class_type.h>
#include <cresset/ir/function.h>
#include <cresset/ir/pass.h>
#include <cresset/ir/pass_functions.h>

#include "ir/run/inlining.h"

namespace cresset::jit {

std::string module_path(const Value* module) {
  std::string path;
  for (const Node* n = module->node(); n->kind() == prim::GetAttr; n = n->input(0)->node())
    path = path.empty() ? n->s(attr::name) : n->s(attr::name) + "." + path;
  return path;
}

Function* callee_of(const Node* n) {
  if (n->kind() == prim::CallFunction) {
    const auto f = n->input(0)->type()->cast<FunctionType>();
    return f ? f->function() : nullptr;
  }
  if (n->kind() == prim::CallMethod) {
    const auto cls = n->input(0)->type()->cast<ClassType>();
    return cls ? cls->findMethod(n->s(attr::name)) : nullptr;
  }
  return nullptr;
}

namespace {

bool inlinable(const Node* n) {
  Function* f = callee_of(n);
  return f && f->graph();
}

// The stack of a node inside of the callee below the one call that is inlined.
InlinedCallStackPtr below(const Node* call, const InlinedCallStack& top, const InlinedCallStackPtr& inner) {
  auto frame = std::make_shared<InlinedCallStack>(top);
  frame->callee = inner;
  InlinedCallStackPtr out = frame;
  // Calls that led to the call itself stand above.
  std::vector<const InlinedCallStack*> outer;
  for (const InlinedCallStack* c = call->callstack().get(); c; c = c->callee.get()) outer.push_back(c);
  for (auto c = outer.rbegin(); c != outer.rend(); ++c) {
    auto copy = std::make_shared<InlinedCallStack>(**c);
    copy->callee = out;
    out = copy;
  }
  return out;
}

// Puts the body of the function that a node calls into the node's place; gives what takes the place of its outputs.
std::vector<Value*> inline_body(Node* call, const Function& f, Graph& body);

}  // namespace

void inline_call(Graph& /*graph*/, Node* call) {
  Function* f = callee_of(call);
  inline_body(call, *f, *f->graph());
}

std::vector<Value*> inlineCallTo(Node* to_replace, GraphFunction* callee, bool use_graph) {
  return inline_body(to_replace, *callee, use_graph ? *callee->graph() : *callee->optimized_graph());
}
std::vector<Value*> inlineCallTo(Node* to_replace, GraphFunction* callee, Graph* body) { return inline_body(to_replace, *callee, *body); }

namespace {
// Int(NumToTensor(size)) is the size: PyTorch simplifies a body before it is inlined, and converters look for what is left then.
void drop_sizes_as_tensors(const std::vector<Node*>& conversions, std::vector<Value*>& results) {
  for (Node* n : conversions) {
    Node* tensor = n->input(0)->node();
    std::replace(results.begin(), results.end(), n->output(), tensor->input(0));
    n->output()->replaceAllUsesWith(tensor->input(0));
    n->destroy();
    if (!tensor->hasUses()) tensor->destroy();
  }
}
bool is_size_as_tensor(const Node* n) {
  return n->kind() == aten::Int && n->input(0)->node()->kind() == prim::NumToTensor &&
         n->input(0)->node()->input(0)->type()->kind == TypeKind::Int;
}

std::vector<Value*> inline_body(Node* call, const Function& f, Graph& body) {
  Graph& graph = *call->owningGraph();
  const bool method = call->kind() == prim::CallMethod;
  InlinedCallStack top;
  top.function_name = f.name();
  top.call_site = call->sourceRange();
  if (method) {
    top.module_path = module_path(call->input(0));
    top.module_type = call->input(0)->type();
  }
  std::vector<Value*> inputs(call->inputs().begin() + (call->kind() == prim::CallFunction ? 1 : 0), call->inputs().end());
  Node* before = call->prev();
  const WithInsertPoint guard(call);
  std::vector<Value*> results = graph.insertGraph(body, inputs);
  CRESSET_CHECK(results.size() == call->outputs().size(), "inline: ", f.qualname(), " gives ", results.size(), " values; ", call->str(),
                " takes ", call->outputs().size(), ".");
  // One stack object for all nodes with the same inner one.
  std::unordered_map<const InlinedCallStack*, InlinedCallStackPtr> stacks;
  std::vector<Node*> conversions;
  const auto mark = [&](Node* n) {
    if (is_size_as_tensor(n)) conversions.push_back(n);
    InlinedCallStackPtr& stack = stacks[n->callstack().get()];
    if (!stack) stack = below(call, top, n->callstack());
    n->setCallStack(stack);
    if (call->hasAttribute(attr::to_compile) && n->kind() != prim::Constant) n->i_(attr::to_compile, call->i(attr::to_compile));
  };
  for (Node* n = before->next(); n != call; n = n->next()) {
    mark(n);
    for (Block* b : n->blocks()) b->visit(mark);
  }
  for (std::size_t i = 0; i < results.size(); ++i) call->output(i)->replaceAllUsesWith(results[i]);
  call->destroy();
  drop_sizes_as_tensors(conversions, results);
  return results;
}

constexpr std::size_t kSmall = 60;        // nodes of a body
constexpr std::size_t kMostAdded = 2000;  // nodes of all bodies together

std::size_t size_of(const Graph& g) {
  std::size_t n = 0;
  g.block()->visit([&](Node*) { ++n; });
  return n;
}

constexpr std::size_t kMostCalls = 100000;

const RegisterPass inlining_pass({
    .name = "inline",
    .phase = "simplify",
    .summary = "replaces calls of scripted functions and methods by their bodies",
    .needs = {},
    .keeps = {"marks", "aliasing"},
    .run = [](const std::shared_ptr<Graph>& g) { return inline_calls(g); },
});

}  // namespace

bool inline_small_calls(Graph& graph, const Function& caller) {
  std::size_t added = 0;
  std::vector<Node*> calls;
  const auto collect = [&](Node* n) {
    if (n->kind() == prim::CallFunction || n->kind() == prim::CallMethod) calls.push_back(n);
  };
  graph.block()->visit(collect);
  while (!calls.empty()) {
    Node* call = calls.back();
    calls.pop_back();
    Function* f = callee_of(call);
    const std::shared_ptr<Graph> body = f && f != &caller ? f->graph() : nullptr;
    if (!body) continue;
    const std::size_t size = size_of(*body);
    if (size > kSmall || added + size > kMostAdded) continue;
    added += size;
    Node *before = call->prev(), *after = call->next();
    inline_call(graph, call);
    for (Node* n = before->next(); n != after; n = n->next()) {
      collect(n);
      for (Block* b : n->blocks()) b->visit(collect);
    }
  }
  return added > 0;
}

namespace {
// Constants that stand for the functions that were called.
void drop_unused_functions(Graph& graph) {
  std::vector<Node*> unused;
  graph.block()->visit([&](Node* n) {
    if (n->kind() == prim::Constant && !n->hasUses() && n->output()->type()->cast<FunctionType>()) unused.push_back(n);
  });
  for (Node* n : unused) n->destroy();
}
}  // namespace

bool inline_calls(const std::shared_ptr<Graph>& graph) {
  std::size_t done = 0;
  // Bodies bring calls of their own: look again from the front of what was inserted.
  struct Frame {
    Node* next;
  };
  std::vector<Frame> stack{{graph->block()->param_node()->next()}};
  while (!stack.empty()) {
    Node* n = stack.back().next;
    if (n->kind() == prim::Return) {
      stack.pop_back();
      continue;
    }
    if (inlinable(n)) {
      CRESSET_CHECK(++done < kMostCalls, "inline: more than ", kMostCalls, " calls; is the function '", callee_of(n)->qualname(),
                    "' recursive?");
      Node* before = n->prev();
      inline_call(*graph, n);
      stack.back().next = before->next();
      continue;
    }
    stack.back().next = n->next();
    for (std::size_t i = n->blocks().size(); i-- > 0;) stack.push_back({n->blocks()[i]->param_node()->next()});
  }
  bool changed = done > 0;
  if (changed) drop_unused_functions(*graph);
  graph->block()->visit([&](Node* n) {
    if (n->hasAttribute(attr::Subgraph) && n->kindOf(attr::Subgraph) == AttributeKind::g)
      changed = inline_calls(n->g(attr::Subgraph)) || changed;
  });
  return changed;
}

}  // namespace cresset::jit
