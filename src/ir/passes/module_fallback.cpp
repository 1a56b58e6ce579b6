// Which nodes stay in the fallback executor. A pair of passes.
//
// notate_module_for_fallback puts delimiters (prim::Enter and prim::Exit with an attribute compilation_edge) around calls of the modules
// that the option torch_executed_modules names by class or instance path, in all blocks; calls that lead to such a module are inlined on
// the way. It needs the calls, so it runs before inlining, on a copy of the method's graph.
//
// mark_nodes_for_fallback gives nodes the attribute to_compile = 0: those between delimiters, and those whose call stack leads through a
// named module. Call stacks stay with nodes wherever passes move them, so no delimiters are needed where there are call stacks. Constants
// are never marked. Runs after inlining; delimiters go unless the option says otherwise.
#include <unordered_set>

#include <cresset/ir/class_type.h>
#include <cresset/ir/lowering.h>
#include <cresset/ir/pass.h>

#include "ir/rewrite/pass_tools.h"
#include "ir/run/inlining.h"

namespace cresset::jit {
namespace {

// Names of classes and paths, and which of them occurred.
class ForcedModules {
 public:
  explicit ForcedModules(const std::vector<std::string>& names) : names_(names) {}
  bool empty() const { return names_.empty(); }

  // A path names the module and what is below it.
  bool contains(const std::string& path, const TypePtr& type) {
    bool found = false;
    for (const std::string& name : names_) {
      const bool by_class = type && !type->name.empty() && unmangled_name(type->name) == unmangled_name(name);
      const bool by_path = !path.empty() && (path == name || path.starts_with(name + "."));
      if (by_class || by_path) seen_.insert(name);
      found = found || by_class || by_path;
    }
    return found;
  }
  void warn_about_absent(const PassContext& context) const {
    for (const std::string& name : names_)
      if (!seen_.count(name))
        context.note(NoteLevel::warning, nullptr,
                     "no module of class or path '" + name + "' is called; nothing stays in the fallback for it");
  }

 private:
  const std::vector<std::string>& names_;
  std::unordered_set<std::string> seen_;
};

// ---- delimiters

bool is_edge(const Node* n, const char* edge) {
  return (n->kind() == prim::Enter || n->kind() == prim::Exit) && n->hasAttribute(attr::compilation_edge) &&
         n->s(attr::compilation_edge) == edge;
}

class Notation {
 public:
  explicit Notation(PassContext& context) : context_(context), forced_(context.options.torch_executed_modules) {}

  bool run() {
    if (forced_.empty()) return false;
    block(context_.graph->block());
    forced_.warn_about_absent(context_);
    return changed_;
  }

 private:
  void block(Block* top) {
    std::vector<Node*> stack{top->param_node()->next()};
    while (!stack.empty()) {
      Node* n = stack.back();
      if (n->kind() == prim::Return) {
        stack.pop_back();
        continue;
      }
      stack.back() = n->next();
      if (n->kind() == prim::CallMethod) {
        if (forced_.contains(module_path(n->input(0)), n->input(0)->type())) {
          delimit(n);
        } else if (leads_to_forced(n)) {
          // Its body stands here now: look at it from its first node.
          Node* before = n->prev();
          inline_call(*context_.graph, n);
          stack.back() = before->next();
          changed_ = true;
          continue;
        }
      }
      for (std::size_t i = n->blocks().size(); i-- > 0;) stack.push_back(n->blocks()[i]->param_node()->next());
    }
  }

  void delimit(Node* call) {
    if (is_edge(call->prev(), "start") && is_edge(call->next(), "end")) return;  // from an earlier run
    Graph& g = *context_.graph;
    Node* none = g.createNone()->insertBefore(call);
    none->output()->setDebugName("compilation_context_" + std::to_string(count_++));
    g.create(prim::Enter, {none->output()}, 0)->insertBefore(call)->copyMetadata(call)->s_(attr::compilation_edge, "start");
    g.create(prim::Exit, {none->output()}, 0)->insertAfter(call)->copyMetadata(call)->s_(attr::compilation_edge, "end");
    changed_ = true;
  }

  // Does the call reach a forced module? Paths are known only once calls are inlined, so any path is a reason to look inside of modules.
  bool leads_to_forced(const Node* call) {
    std::unordered_set<const Function*> seen;
    std::vector<std::pair<Function*, std::string>> pending{{callee_of(call), module_path(call->input(0))}};
    while (!pending.empty()) {
      const auto [f, path] = pending.back();
      pending.pop_back();
      if (!f || !f->graph() || !seen.insert(f).second) continue;
      bool found = false;
      f->graph()->block()->visit([&, path = path](const Node* n) {
        if (n->kind() != prim::CallMethod) return;
        const std::string inner = module_path(n->input(0));
        const std::string full = path.empty() || inner.empty() ? path + inner : path + "." + inner;
        found = found || forced_.contains(full, n->input(0)->type());
        pending.emplace_back(callee_of(n), full);
      });
      if (found) return true;
    }
    return false;
  }

  PassContext& context_;
  ForcedModules forced_;
  std::size_t count_ = 0;
  bool changed_ = false;
};

// ---- marks

class Marking {
 public:
  explicit Marking(PassContext& context) : context_(context), forced_(context.options.torch_executed_modules) {}

  bool run() {
    context_.graph->block()->visit([&](Node* n) {
      for (Block* b : n->blocks()) regions(b);
    });
    regions(context_.graph->block());
    if (!forced_.empty()) {
      by_call_stack(*context_.graph);
      forced_.warn_about_absent(context_);
    }
    return changed_;
  }

 private:
  void mark(Node* n) {
    if (n->kind() == prim::Constant || is_marked(n)) return;
    n->i_(attr::to_compile, 0);
    changed_ = true;
  }

  void regions(Block* b) {
    std::vector<Node*> open, done;
    for (Node* n : b->nodes()) {
      if (is_edge(n, "start")) {
        open.push_back(n);
      } else if (is_edge(n, "end")) {
        CRESSET_CHECK(!open.empty(), "mark_nodes_for_fallback: an end of a region without its start.\nin ", n->str(), "\n",
                      n->sourceRange().highlight());
        done.push_back(open.back());
        done.push_back(n);
        open.pop_back();
      } else if (!open.empty()) {
        mark(n);
        for (const Block* inner : n->blocks())
          inner->visit([&](Node* m) {
            if (!is_edge(m, "start") && !is_edge(m, "end")) mark(m);
          });
      }
    }
    CRESSET_CHECK(open.empty(), "mark_nodes_for_fallback: a region starts and does not end in its block.\nin ", open.back()->str(), "\n",
                  open.back()->sourceRange().highlight());
    if (!context_.options.delete_delimiters) return;
    for (Node* n : done) {
      Node* context = n->input(0)->node();
      n->destroy();
      changed_ = true;
      if (context->kind() == prim::Constant && !context->hasUses()) context->destroy();
    }
  }

  void by_call_stack(const Graph& g) {
    std::unordered_map<const InlinedCallStack*, bool> known;
    g.block()->visit([&](Node* n) {
      const InlinedCallStack* stack = n->callstack().get();
      if (!stack) return;
      const auto [at, fresh] = known.emplace(stack, false);
      if (fresh)
        for (const InlinedCallStack* call = stack; call; call = call->callee.get())
          at->second = forced_.contains(call->module_path, call->module_type) || at->second;
      if (at->second) mark(n);
      if (const auto body = subgraph_of(n)) by_call_stack(*body);
    });
  }

  PassContext& context_;
  ForcedModules forced_;
  bool changed_ = false;
};

const RegisterPass module_fallback_notate_pass({
    .name = "notate_module_for_fallback",
    .phase = "fallback",
    .summary = "puts delimiters around calls of modules that stay in the fallback executor",
    .needs = {},
    .keeps = {"names", "aliasing"},
    .run_in = [](PassContext& c) { return Notation(c).run(); },
});
const RegisterPass module_fallback_mark_pass({
    .name = "mark_nodes_for_fallback",
    .phase = "fallback",
    .summary = "marks nodes between delimiters and of modules that stay in the fallback executor",
    .needs = {},
    .keeps = {"names", "aliasing"},
    .run_in = mark_for_fallback,
});

}  // namespace

bool mark_for_fallback(PassContext& context) { return Marking(context).run(); }

}  // namespace cresset::jit
