// Folds changes of a list into its construction: append, insert, item assignment, extend and their like, as long as nothing else has used
// the list in between and all stands in one block. Nothing need run before it.
#include <cresset/ir/alias_analysis.h>
#include <cresset/ir/operator.h>
#include <cresset/ir/pass.h>

#include "ir/rewrite/pass_tools.h"

namespace cresset::jit {
namespace {

using Members = std::vector<Value*>;
// What the members are after a change; nothing when it cannot be said here.
using Fold = std::optional<Members> (*)(const Node* change, Members members, const AliasDb& aliases);

std::optional<Members> append(const Node* n, Members m, const AliasDb&) {
  m.push_back(n->input(1));
  return m;
}

std::optional<Members> insert(const Node* n, Members m, const AliasDb&) {
  const auto index = constant_as<int64_t>(n->input(1));
  if (!index) return std::nullopt;
  const auto size = static_cast<int64_t>(m.size());
  m.insert(m.begin() + std::clamp(*index < 0 ? *index + size : *index, int64_t{0}, size), n->input(2));
  return m;
}

std::optional<Members> set_item(const Node* n, Members m, const AliasDb&) {
  const auto index = constant_as<int64_t>(n->input(1));
  if (!index) return std::nullopt;
  const auto size = static_cast<int64_t>(m.size());
  const int64_t at = *index < 0 ? *index + size : *index;
  if (at < 0 || at >= size) return std::nullopt;  // raises when it runs
  m[static_cast<std::size_t>(at)] = n->input(2);
  return m;
}

std::optional<Members> extend(const Node* n, Members m, const AliasDb& aliases) {
  const Value* more = n->input(1);
  if (more->node()->kind() != prim::ListConstruct || aliases.hasWriters(more)) return std::nullopt;
  m.insert(m.end(), more->node()->inputs().begin(), more->node()->inputs().end());
  return m;
}

std::optional<Members> clear(const Node*, Members, const AliasDb&) { return Members(); }

std::optional<Members> reverse(const Node*, Members m, const AliasDb&) {
  std::reverse(m.begin(), m.end());
  return m;
}

const std::unordered_map<std::string, Fold>& folds() {
  static const std::unordered_map<std::string, Fold> table{
      {"aten::append.t", append}, {"aten::insert.t", insert}, {"aten::_set_item.t", set_item}, {"aten::extend.t", extend},
      {"aten::add_.t", extend},   {"aten::clear.t", clear},   {"aten::reverse.t", reverse},
  };
  return table;
}

// Users of a list in the order of the program, as nodes of the list's own block; a user inside of a nested block counts as the owner.
std::vector<Node*> users_in_order(const Value* list) {
  std::vector<Node*> users;
  for (const Use& u : list->uses()) users.push_back(in_block(u.user, list->owningBlock()));
  std::sort(users.begin(), users.end(), [](const Node* a, const Node* b) { return a->isBefore(b); });
  users.erase(std::unique(users.begin(), users.end()), users.end());
  return users;
}

bool fold_changes(Node* list, const AliasDb& aliases) {
  Members members = list->inputs();
  std::vector<Node*> done;
  for (Node* user : users_in_order(list->output())) {
    const Operator* op = user->maybeOperator();
    if (!op || is_marked(user) || user->inputs().empty() || user->input(0) != list->output()) break;
    const auto fold = folds().find(op->schema().operator_name().str());
    if (fold == folds().end()) break;
    // A list that goes into itself, or an element that is made from the list, cannot stand in front.
    if (std::count(user->inputs().begin(), user->inputs().end(), list->output()) > 1) break;
    auto changed = fold->second(user, members, aliases);
    if (!changed) break;
    members = std::move(*changed);
    done.push_back(user);
    if (user->hasUses()) break;  // another name of the list: its users count from the next round on
  }
  if (done.empty()) return false;
  // New members are defined at the last change at the latest; nobody has looked at the list until there.
  list->moveBefore(done.back());
  list->removeAllInputs();
  for (Value* v : members) list->addInput(v);
  for (Node* n : done) {
    for (Value* v : n->outputs()) v->replaceAllUsesWith(list->output());
    n->destroy();
  }
  return true;
}

}  // namespace

bool remove_list_mutation(const std::shared_ptr<Graph>& graph) {
  bool changed = false;
  for (bool again = true; again;) {
    again = false;
    const std::vector<Node*> lists = nodes_where(*graph, [](const Node* n) { return n->kind() == prim::ListConstruct && !is_marked(n); });
    if (lists.empty()) break;
    const AliasDb aliases(graph);
    for (Node* n : lists) again = fold_changes(n, aliases) || again;
    changed = changed || again;
  }
  return in_subgraphs(*graph, remove_list_mutation) || changed;
}

namespace {
const RegisterPass remove_list_mutation_pass({
    .name = "remove_list_mutation",
    .phase = "simplify",
    .summary = "folds changes of a new list into its construction",
    .needs = {},
    .keeps = {"marks", "aliasing"},
    .run = remove_list_mutation,
});
}  // namespace

}  // namespace cresset::jit
