// Alias analysis: one pass over the program builds a points-to graph; writes are kept by node; questions are set intersections.
#include <cresset/ir/alias_analysis.h>

#include <iostream>

#include <cresset/ir/class_type.h>
#include <cresset/ir/function.h>
#include <cresset/ir/operator.h>

#include "ir/analysis/memory_locations.h"
#include "ir/graph/fetch_ahead.h"
#include "ir/graph/kinds.h"
#include "ir/graph/pointer_map.h"
#include "ir/operators/alias_kinds.h"
#include "ir/operators/operand_results.h"

namespace cresset::jit {

bool AliasDb::isMutableType(const Type& t) {
  switch (t.kind) {
    case TypeKind::Tensor:
    case TypeKind::List:
    case TypeKind::Dict:
    case TypeKind::Object:
    case TypeKind::Interface:
    case TypeKind::Any:
    case TypeKind::AnyList:
    case TypeKind::AnyTuple:
    case TypeKind::AnyClass:
    case TypeKind::Future:
    case TypeKind::RRef:
    case TypeKind::Await:
    case TypeKind::Storage:
    case TypeKind::Generator:
    case TypeKind::Stream:
    case TypeKind::Capsule:
    case TypeKind::Var: return true;
    case TypeKind::Optional:
    case TypeKind::Tuple:
    case TypeKind::Union:
      for (const TypePtr& m : t.contained)
        if (isMutableType(*m)) return true;
      return false;
    default: return false;
  }
}

struct AliasDb::Impl {
  std::shared_ptr<const Graph> graph;
  Options options;
  MemoryGraph memory;
  // A value that a pass makes may lie where one was that is gone: its number tells them apart.
  struct Entry {
    uint32_t element = 0, number = 0;
  };
  PointerMap<Entry> elements;
  std::unordered_map<std::string, uint32_t> wildcards;
  std::vector<std::pair<TypePtr, uint32_t>> wildcard_types;
  uint32_t any_wildcard = UINT32_MAX;
  struct Write {
    const Value* value;
    bool contents;  // the elements of a list are written
  };
  std::unordered_map<const Node*, std::vector<Write>> writes;
  std::unordered_set<const Node*> writes_everything;  // wait, and operators that nobody knows
  // Built when the graph of memory is complete.
  Locations written, wildcard_locations;
  Locations last_answer;  // of reachableMemory

  // ---- elements

  // The element of a value with memory; nothing for others.
  std::optional<uint32_t> element(const Value* v) const {
    const Entry* found = elements.find(v);
    return found && found->number == static_cast<uint32_t>(v->unique()) ? std::optional(found->element) : std::nullopt;
  }
  void remember(const Value* v, uint32_t element) { *elements.insert(v).first = {element, static_cast<uint32_t>(v->unique())}; }
  std::optional<uint32_t> ensure(const Value* v) {
    if (const auto e = element(v)) return e;
    if (!isMutableType(*v->type()) || v->mustBeNone()) return std::nullopt;
    const uint32_t e = memory.add();
    remember(v, e);
    return e;
  }
  void fresh(const Value* v) { ensure(v); }
  void alias(const Value* v, const Value* of) {
    const auto to = ensure(of);
    const auto from = ensure(v);
    if (from && to) memory.point(*from, *to);
  }
  void contain(const Value* container, const Value* element_value) {
    const auto c = ensure(container), e = ensure(element_value);
    if (c && e) memory.contain(*c, *e);
  }

  // The location that stands for all unknown memory of a type. Refinements of tensors do not matter.
  uint32_t wildcard(const Type& t) {
    const Type& type = t.kind == TypeKind::Optional ? *t.element() : t;
    std::string key;
    switch (type.kind) {
      case TypeKind::Tensor: key = "Tensor"; break;
      // What may be anything: one element that points to every other wildcard once all are known.
      case TypeKind::Any:
      case TypeKind::AnyList:
      case TypeKind::AnyTuple:
      case TypeKind::AnyClass:
      case TypeKind::Union:
      case TypeKind::Var:
      case TypeKind::Interface: key = "*"; break;
      default: key = plain(type);
    }
    if (const auto found = wildcards.find(key); found != wildcards.end()) return found->second;
    const uint32_t w = memory.add();
    wildcards.emplace(key, w);
    if (key == "*") {
      any_wildcard = w;
      return w;
    }
    wildcard_types.emplace_back(type.shared_from_this(), w);
    for (const TypePtr& m : type.contained)
      if (isMutableType(*m)) memory.contain(w, wildcard(*m));
    if (const auto* cls = dynamic_cast<const ClassType*>(&type))
      for (const ClassAttribute& a : cls->attributes())
        if (isMutableType(*a.type)) memory.contain(w, wildcard(*a.type));
    return w;
  }
  // A type's text without refinements.
  static std::string plain(const Type& t) {
    if (t.kind == TypeKind::Tensor) return "Tensor";
    if (t.contained.empty() || !t.name.empty()) return t.str();
    std::string out = std::to_string(static_cast<int>(t.kind())) + "(";
    for (const TypePtr& m : t.contained) out += plain(*m) + ",";
    return out + ")";
  }
  void set_wildcard(const Value* v) {
    const auto e = ensure(v);
    if (e) memory.point(*e, wildcard(*v->type()));
    // What is in it can be reached from outside as well.
    if (e)
      if (const Node* n = v->node();
          n->kind() == prim::ListConstruct || n->kind() == prim::TupleConstruct || n->kind() == prim::DictConstruct)
        for (const Value* i : n->inputs()) wildcard_once(i);
  }
  PointerSet already_wild;
  void wildcard_once(const Value* v) {
    if (!already_wild.insert(v).second) return;
    set_wildcard(v);
  }

  void write(const Node* n, const Value* v, bool contents = false) {
    if (ensure(v)) writes[n].push_back({v, contents});
  }

  // ---- the program

  // Delimiters of the fallback, and `with` of objects whose methods write nothing but numbers of their own (no_grad).
  static bool leaves_memory_alone(const Node* n) {
    if (n->kind() != prim::Enter && n->kind() != prim::Exit) return false;
    if (n->hasAttribute(attr::compilation_edge)) return true;
    const auto cls = n->input(0)->type()->cast<ClassType>();
    const Function* method = cls ? cls->findMethod(n->kind() == prim::Enter ? "__enter__" : "__exit__") : nullptr;
    const std::shared_ptr<Graph> body = method ? method->graph() : nullptr;
    if (!body) return false;
    bool alone = true;
    body->block()->visit([&](const Node* m) {
      const MemoryRole role = kind_row(m->kind()).memory;
      if (role == MemoryRole::sets_attribute)
        alone = alone && m->input(0) == body->inputs()[0] && !isMutableType(*m->input(1)->type());
      else if (role == MemoryRole::schema)
        alone = alone && (m->kind() == prim::If || m->kind() == prim::Loop || (m->maybeSchema() && !m->maybeSchema()->is_mutable()));
      else
        alone =
            alone && role != MemoryRole::calls && role != MemoryRole::forks && role != MemoryRole::waits && role != MemoryRole::normalizes;
    });
    return alone;
  }

  // Without the analysis, of one node without what is nested in it: certainly no write?
  bool may_write(const Node* n) const {
    switch (kind_row(n->kind()).memory) {
      case MemoryRole::normalizes: return writes_statistics(n);
      case MemoryRole::sets_attribute:
      case MemoryRole::forks:
      case MemoryRole::waits: return true;
      case MemoryRole::calls: return !leaves_memory_alone(n);
      case MemoryRole::schema: break;
      default: return false;
    }
    if (!n->blocks().empty()) return false;
    const Operator* op = n->maybeOperator();
    if (!op && n->hasAttribute(attr::Subgraph)) return true;
    if (!op) return is_structural(n->kind()) || !options.unknown_is_pure;
    const AliasAnalysisKind alias = op->facts().alias;
    return alias == AliasAnalysisKind::CONSERVATIVE || (alias != AliasAnalysisKind::PURE_FUNCTION && op->schema().is_mutable());
  }
  // Inference graphs mostly write nothing: a walk answers for much less than the analysis.
  std::optional<bool> writes_nothing_;
  bool writes_nothing() {
    if (!writes_nothing_) {
      bool found = false;
      graph->block()->visit([&](const Node* n) { found = found || may_write(n); });
      writes_nothing_ = !found;
    }
    return *writes_nothing_;
  }

  // The first question makes the analysis, of the graph as it is then: many passes find nothing to ask about.
  bool done = false;
  void prepare() {
    if (done) return;
    done = true;
    run();
  }

  void run() {
    elements.reserve(graph->node_count());
    memory.reserve(graph->node_count());
    for (const Value* v : graph->inputs()) {
      if (options.independent_inputs)
        fresh(v);
      else
        set_wildcard(v);
    }
    analyze(graph->block());
    if (any_wildcard != UINT32_MAX)
      for (const auto& [type, w] : wildcard_types) memory.point(any_wildcard, w);
    for (const auto& [key, w] : wildcards) unite(wildcard_locations, memory.locations(w));
    for (const auto& [n, all] : writes)
      for (const Write& w : all) {
        const LocationView l = locations_of(w);
        written.insert(written.end(), l.begin(), l.end());
      }
    std::sort(written.begin(), written.end());
    written.erase(std::unique(written.begin(), written.end()), written.end());
    if (!writes_everything.empty()) unite(written, wildcard_locations);
  }

  LocationView locations_of(const Write& w) {
    const auto e = element(w.value);
    if (!e) return {};
    return w.contents ? memory.reachable(*e) : memory.locations(*e);
  }

  void analyze(const Block* top) {
    struct Frame {
      const Block* block;
      const Node* next;
      const Node* owner;  // whose last block this is: finished when the block is
    };
    std::vector<Frame> stack{{top, top->param_node()->next(), nullptr}};
    while (!stack.empty()) {
      Frame& f = stack.back();
      if (f.next->kind() == prim::Return) {
        const Node* owner = f.owner;
        stack.pop_back();
        if (owner) finish(owner);
        continue;
      }
      const Node* n = f.next;
      f.next = n->next();
      fetch_later_node(n);
      if (n->kind() == prim::If || n->kind() == prim::Loop || n->kind() == prim::GradOf) {
        if (n->kind() == prim::Loop)
          for (std::size_t i = 0; i + 2 < n->inputs().size(); ++i) alias(n->blocks().at(0)->inputs().at(i + 1), n->input(i + 2));
        for (std::size_t i = n->blocks().size(); i-- > 0;)
          stack.push_back({n->blocks()[i], n->blocks()[i]->param_node()->next(), i + 1 == n->blocks().size() ? n : nullptr});
      } else if (n->hasAttribute(attr::Subgraph) && n->kindOf(attr::Subgraph) == AttributeKind::g && n->kind() != prim::fork &&
                 n->kind() != prim::awaitable && n->kind() != prim::BailoutTemplate) {
        const Block* body = n->g(attr::Subgraph)->block();
        for (std::size_t i = 0; i < std::min(n->inputs().size(), body->inputs().size()); ++i) alias(body->inputs()[i], n->input(i));
        stack.push_back({body, body->param_node()->next(), n});
      } else {
        node(n);
      }
    }
  }

  // Behind the last block of a node: its outputs are what the blocks return.
  void finish(const Node* n) {
    const auto join = [&](const Block* b, std::size_t skip) {
      for (std::size_t i = 0; i + skip < b->outputs().size() && i < n->outputs().size(); ++i) alias(n->output(i), b->outputs()[i + skip]);
    };
    if (n->kind() == prim::Loop) {
      const Block* body = n->blocks()[0];
      for (std::size_t i = 1; i < body->outputs().size(); ++i) alias(body->inputs().at(i), body->outputs()[i]);
      join(body, 1);
      // Zero iterations give the initial values.
      for (std::size_t i = 0; i < n->outputs().size(); ++i) alias(n->output(i), n->input(i + 2));
      return;
    }
    if (!n->blocks().empty()) {
      for (const Block* b : n->blocks()) join(b, 0);
      return;
    }
    join(n->g(attr::Subgraph)->block(), 0);
  }

  void conservative(const Node* n) {
    for (const Value* v : n->inputs()) {
      write(n, v, true);
      wildcard_once(v);
    }
    for (const Value* v : n->outputs()) set_wildcard(v);
    writes_everything.insert(n);
  }

  void node(const Node* n) {
    switch (kind_row(n->kind()).memory) {
      case MemoryRole::constructs: construct(n); return;
      case MemoryRole::fresh:
        for (const Value* v : n->outputs()) fresh(v);
        return;
      case MemoryRole::from_tuple: extract_from_tuple(n); return;
      case MemoryRole::from_outside:
        for (const Value* v : n->outputs()) set_wildcard(v);
        return;
      case MemoryRole::sets_attribute:
        write(n, n->input(0));
        set_wildcard(n->input(1));
        return;
      case MemoryRole::hands_on:
        for (std::size_t i = 0; i < n->outputs().size(); ++i)
          for (std::size_t k = 0; k < n->inputs().size(); ++k)
            if (n->outputs().size() <= 1 || i == k || n->kind() == prim::ConstantChunk) alias(n->output(i), n->input(k));
        return;
      case MemoryRole::forks:
        for (const Value* v : n->inputs()) wildcard_once(v);
        for (const Value* v : n->outputs()) fresh(v);
        // What the forked graph writes happens at any time until somebody waits.
        writes_everything.insert(n);
        return;
      case MemoryRole::waits:
        for (const Value* v : n->outputs()) set_wildcard(v);
        writes_everything.insert(n);
        return;
      case MemoryRole::calls:
        if (!leaves_memory_alone(n)) return conservative(n);
        for (const Value* v : n->outputs()) set_wildcard(v);
        return;
      case MemoryRole::normalizes: normalization(n); return;
      case MemoryRole::schema: break;
    }
    const Operator* op = n->maybeOperator();
    if (!op) {
      if (options.strict && !is_structural(n->kind())) raise_no_operator(*n);
      if (options.unknown_is_pure && !is_structural(n->kind())) {
        for (const Value* v : n->outputs()) fresh(v);
        return;
      }
      conservative(n);
      return;
    }
    switch (checked_kind(*op)) {
      case AliasAnalysisKind::PURE_FUNCTION:
        for (const Value* v : n->outputs()) fresh(v);
        break;
      case AliasAnalysisKind::CONSERVATIVE: conservative(n); return;
      default: from_schema(n, op->schema());
    }
    if (may_give_operand(n))
      for (const Value* v : n->outputs()) alias(v, n->input(0));
  }

  static AliasAnalysisKind checked_kind(const Operator& op) {
    const AliasAnalysisKind kind = op.facts().alias;
    if (some_alias_kinds_contradict())
      CRESSET_CHECK(!contradict(kind, op.schema()), "Tried to register operator ", op.schema().str(),
                    " with aliasing information in the schema but without AliasAnalysisKind::FROM_SCHEMA.");
    return kind;
  }

  // Running statistics are written unless the training flag is the constant false.
  static bool writes_statistics(const Node* n) {
    const FunctionSchema* s = n->maybeSchema();
    const auto training = s ? s->argument_index(n->kind() == aten::batch_norm ? "training" : "use_input_stats") : std::nullopt;
    return !training || constant_as<bool>(n->input(*training)) != std::optional(false);
  }
  void normalization(const Node* n) {
    const FunctionSchema* s = n->maybeSchema();
    for (const Value* v : n->outputs()) fresh(v);
    if (!s) return conservative(n);
    if (!writes_statistics(n)) return;
    for (const char* name : {"running_mean", "running_var"})
      if (const auto i = s->argument_index(name)) write(n, n->input(*i));
  }

  void construct(const Node* n) {
    if (n->outputs().empty()) return;
    fresh(n->output());
    // A list that only a reader like cat takes, or that only the graph's caller sees, keeps its elements to itself.
    const bool local = n->kind() == prim::ListConstruct && n->output()->use_count() == 1 &&
                       (only_reads_elements(n->output()->uses()[0].user) || returns_from_graph(n->output()->uses()[0].user));
    const bool tuple = n->kind() == prim::TupleConstruct && taken_apart_only(n->output());
    for (const Value* v : n->inputs()) {
      contain(n->output(), v);
      if (!local && !tuple) wildcard_once(v);
    }
  }
  static bool only_reads_elements(const Node* n) {
    static const std::unordered_set<std::string> readers{"aten::cat", "aten::stack", "aten::vstack", "aten::hstack", "aten::dstack"};
    if (!readers.count(n->kind().toQualString())) return false;
    const FunctionSchema* s = n->maybeSchema();
    return s && !s->is_mutable();
  }
  static bool returns_from_graph(const Node* n) { return n->kind() == prim::Return && !n->owningBlock()->owningNode(); }
  // Is the tuple only unpacked, indexed by constants, or returned from the graph?
  static bool taken_apart_only(const Value* tuple) {
    for (const Use& u : tuple->uses()) {
      switch (u.user->kind()) {
        case prim::TupleUnpack: break;
        case prim::TupleIndex:
          if (!constant_as<int64_t>(u.user->input(1))) return false;
          break;
        case prim::Return:
          if (!returns_from_graph(u.user)) return false;
          break;
        default: return false;
      }
    }
    return true;
  }
  void extract_from_tuple(const Node* n) {
    const Node* made = n->input(0)->node();
    if (made->kind() == prim::TupleConstruct && taken_apart_only(n->input(0))) {
      if (n->kind() == prim::TupleUnpack && n->outputs().size() == made->inputs().size()) {
        for (std::size_t i = 0; i < n->outputs().size(); ++i) alias(n->output(i), made->input(i));
        return;
      }
      if (n->kind() == prim::TupleIndex) {
        const auto size = static_cast<int64_t>(made->inputs().size());
        const int64_t i = *constant_as<int64_t>(n->input(1)), at = i < 0 ? i + size : i;
        if (at >= 0 && at < size) {
          alias(n->output(), made->input(static_cast<std::size_t>(at)));
          return;
        }
      }
    }
    for (const Value* v : n->outputs()) set_wildcard(v);
  }

  static bool mentions_memory(const std::vector<Argument>& arguments) {
    return std::any_of(arguments.begin(), arguments.end(), [](const Argument& a) { return a.alias.has_value(); });
  }
  void from_schema(const Node* n, const FunctionSchema& s) {
    if (!mentions_memory(s.arguments()) && !mentions_memory(s.returns())) {
      for (const Value* v : n->outputs()) fresh(v);
      return;
    }
    std::unordered_map<std::string, std::vector<const Value*>> bound;
    for (std::size_t i = 0; i < s.arguments().size(); ++i) {
      const Argument& a = s.arguments()[i];
      const Value* v = n->input(i);
      if (!a.alias) continue;
      const AliasInfo* inner = a.alias->contained.get();
      if (a.alias->is_write) write(n, v);
      if (inner && inner->is_write) write(n, v, true);
      for (const AliasInfo* info : {&*a.alias, inner}) {
        if (!info) continue;
        for (const std::string& set : info->before) {
          if (set == "*")
            wildcard_once(v);
          else
            bound[set].push_back(v);
        }
        for (const std::string& set : info->after) {
          if (set != "*") continue;
          wildcard_once(v);
          // It went into something: into the containers that are written here.
          for (std::size_t k = 0; k < s.arguments().size(); ++k)
            if (k != i && s.arguments()[k].is_mutable()) contain(n->input(k), v);
        }
      }
    }
    // Arguments behind the dots are taken as read only, as those of print and format are.
    for (std::size_t i = 0; i < n->outputs().size(); ++i) {
      const Value* v = n->output(i);
      fresh(v);
      if (i >= s.returns().size() || !s.returns()[i].alias) continue;
      const AliasInfo& a = *s.returns()[i].alias;
      for (const std::string& set : a.before) {
        if (set == "*") {
          set_wildcard(v);
          continue;
        }
        for (const Value* of : bound[set]) {
          if (of->type()->kind == TypeKind::List && v->type()->kind != TypeKind::List) {
            set_wildcard(v);  // an element of a list
            wildcard_once(of);
          } else {
            alias(v, of);
          }
        }
      }
      if (a.contained)  // a list of views
        for (const std::string& set : a.contained->before) {
          if (set == "*") {
            set_wildcard(v);
            continue;
          }
          for (const Value* of : bound[set]) {
            wildcard_once(of);
            contain(v, of);
          }
        }
    }
  }

  // ---- questions

  LocationView locations(const Value* v) {
    const auto e = element(v);
    return e ? memory.locations(*e) : LocationView();
  }
  LocationView reachable(const Value* v) {
    const auto e = element(v);
    return e ? memory.reachable(*e) : LocationView();
  }
  bool is_wild(const Value* v) { return intersects(locations(v), wildcard_locations); }
  bool has_writers(const Value* v) { return intersects(locations(v), written); }

  // A node with all nodes nested in it and in its subgraphs.
  template <class F>
  static void with_nested(const Node* n, F&& f) {
    f(n);
    std::vector<const Block*> pending(n->blocks().begin(), n->blocks().end());
    const auto add = [&](const Node* m) {
      if (m->hasAttribute(attr::Subgraph) && m->kindOf(attr::Subgraph) == AttributeKind::g && m->kind() != prim::fork &&
          m->kind() != prim::awaitable)
        pending.push_back(m->g(attr::Subgraph)->block());
    };
    add(n);
    while (!pending.empty()) {
      const Block* b = pending.back();
      pending.pop_back();
      for (const Node* m : b->nodes()) {
        f(m);
        pending.insert(pending.end(), m->blocks().begin(), m->blocks().end());
        add(m);
      }
      f(b->return_node());
    }
  }
  Locations writes_of(const Node* n) {
    Locations out;
    with_nested(n, [&](const Node* m) {
      if (const auto found = writes.find(m); found != writes.end())
        for (const Write& w : found->second) unite(out, locations_of(w));
      if (writes_everything.count(m)) unite(out, wildcard_locations);
    });
    return out;
  }
  // What it looks at: its operands and, as calls may look inside, what they contain.
  Locations reads_of(const Node* n) {
    Locations out;
    with_nested(n, [&](const Node* m) {
      for (const Value* v : m->inputs()) unite(out, reachable(v));
      if (writes_everything.count(m)) unite(out, wildcard_locations);
    });
    return out;
  }
  Locations outputs_of(const Node* n) {
    Locations out;
    for (const Value* v : n->outputs()) unite(out, locations(v));
    return out;
  }
};

AliasDb::AliasDb(std::shared_ptr<const Graph> graph, Options options) : impl_(std::make_unique<Impl>()) {
  impl_->graph = std::move(graph);
  impl_->options = options;
  if (options.strict || some_alias_kinds_contradict()) impl_->prepare();
}
AliasDb::~AliasDb() = default;

namespace {
template <class Impl>
Impl& ready(const std::unique_ptr<Impl>& impl) {
  impl->prepare();
  return *impl;
}
}  // namespace

bool AliasDb::hasWriters(const Value* v) const { return !impl_->writes_nothing() && ready(impl_).has_writers(v); }
bool AliasDb::hasInputWriters(const Node* n) const {
  if (impl_->writes_nothing()) return false;
  bool found = false;
  Impl::with_nested(n, [&](const Node* m) {
    for (const Value* v : m->inputs()) found = found || ready(impl_).has_writers(v);
  });
  return found;
}
bool AliasDb::hasOutputWriters(const Node* n) const {
  if (impl_->writes_nothing()) return false;
  for (const Value* v : n->outputs())
    if (ready(impl_).has_writers(v)) return true;
  return false;
}
bool AliasDb::isMutable(const Node* n) const {
  if (impl_->writes_nothing()) return false;
  bool found = false;
  Impl::with_nested(n, [&](const Node* m) { found = found || ready(impl_).writes.count(m) || ready(impl_).writes_everything.count(m); });
  return found;
}
bool AliasDb::writesToAlias(const Node* n, const ValueSet& values) const {
  if (impl_->writes_nothing()) return false;
  const Locations written = ready(impl_).writes_of(n);
  if (written.empty()) return false;
  for (const Value* v : values)
    if (intersects(written, ready(impl_).reachable(v))) return true;
  return false;
}
bool AliasDb::writesToWildcard(const Node* n) const { return intersects(ready(impl_).writes_of(n), ready(impl_).wildcard_locations); }

std::vector<uint32_t> AliasDb::writtenMemory(const Node* n) const { return ready(impl_).writes_of(n); }
const std::vector<uint32_t>& AliasDb::reachableMemory(const Value* v) const {
  const LocationView found = ready(impl_).reachable(v);
  ready(impl_).last_answer.assign(found.begin(), found.end());
  return ready(impl_).last_answer;
}

bool AliasDb::mayAlias(const Value* a, const Value* b) const { return intersects(ready(impl_).locations(a), ready(impl_).locations(b)); }
bool AliasDb::mayAlias(const ValueSet& a, const ValueSet& b) const {
  Locations x, y;
  for (const Value* v : a) unite(x, ready(impl_).locations(v));
  for (const Value* v : b) unite(y, ready(impl_).locations(v));
  return intersects(x, y);
}
bool AliasDb::mayContainAlias(const Value* a, const Value* b) const {
  return intersects(ready(impl_).reachable(a), ready(impl_).reachable(b));
}
bool AliasDb::mayContainAlias(const ValueSet& a, const ValueSet& b) const {
  Locations x, y;
  for (const Value* v : a) unite(x, ready(impl_).reachable(v));
  for (const Value* v : b) unite(y, ready(impl_).reachable(v));
  return intersects(x, y);
}
bool AliasDb::mayAliasWildcard(const Value* v) const { return ready(impl_).is_wild(v); }

bool AliasDb::escapesScope(const ValueSet& values) const {
  Locations seen = ready(impl_).wildcard_locations;
  for (const Value* v : ready(impl_).graph->inputs()) unite(seen, ready(impl_).reachable(v));
  for (const Value* v : ready(impl_).graph->outputs()) unite(seen, ready(impl_).reachable(v));
  for (const Value* v : values)
    if (intersects(ready(impl_).reachable(v), seen)) return true;
  return false;
}

bool AliasDb::safeToChangeAliasingRelationship(const ValueSet& a, const ValueSet& b) const {
  for (const ValueSet* set : {&a, &b})
    for (const Value* v : *set)
      if (ready(impl_).has_writers(v)) return false;
  return !(escapesScope(a) && escapesScope(b));
}

// As long as nothing was asked, the analysis will see new values for itself.
void AliasDb::createValue(const Value* v) {
  if (impl_->done && isMutableType(v) && !v->mustBeNone()) impl_->remember(v, impl_->memory.add_alone());
}
void AliasDb::copyValue(const Value* from, const Value* to) {
  if (!impl_->done) return;
  if (const auto e = impl_->element(from)) impl_->remember(to, *e);
}

void AliasDb::dump() const { std::cout << toString(); }

std::string AliasDb::toString() const {
  std::string out = "alias analysis:\n";
  std::vector<std::pair<uint32_t, const Value*>> all;
  ready(impl_).elements.each([&](const void* v, const Impl::Entry& e) { all.emplace_back(e.element, static_cast<const Value*>(v)); });
  std::sort(all.begin(), all.end());
  for (const auto& [e, v] : all) {
    out += "  %" + v->debugName() + " : " + v->type()->str();
    if (ready(impl_).is_wild(v)) out += " WILDCARD";
    if (ready(impl_).has_writers(v)) out += " written";
    for (const auto& [f, w] : all)
      if (f != e && intersects(ready(impl_).memory.locations(e), ready(impl_).memory.locations(f))) out += " ~%" + w->debugName();
    out += "\n";
  }
  return out;
}

// ---- moves

namespace {
enum class Side { Before, After };
}

// The nodes that must move together, in the order they were met, and what they touch.
struct WorkingSet {
  explicit WorkingSet(AliasDb::Impl* impl) : impl_(impl) {}

  void add(Node* n) {
    nodes.push_back(n);
    refresh_one(n);
  }
  void erase_mover() {
    nodes.erase(nodes.begin());
    values_in_.clear();
    values_out_.clear();
    reads_.clear();
    writes_.clear();
    effects_ = false;
    for (const Node* n : nodes) refresh_one(n);
  }

  bool depends_on(const Node* n) const {
    if (nodes.empty()) return false;
    // Data: the set uses what n gives, or n (with all that is nested in it) uses what the set gives.
    for (const Value* v : n->outputs())
      if (values_in_.count(v)) return true;
    bool data = false;
    AliasDb::Impl::with_nested(n, [&](const Node* m) {
      for (const Value* v : m->inputs()) data = data || values_out_.count(v);
    });
    if (data) return true;
    if (effects_ && n->hasSideEffects()) return true;
    const Locations n_writes = impl_->writes_of(n);
    if (!n_writes.empty() && (intersects(n_writes, reads_) || intersects(n_writes, writes_))) return true;
    if (writes_.empty()) return false;
    Locations n_touched = impl_->reads_of(n);
    unite(n_touched, impl_->outputs_of(n));
    return intersects(writes_, n_touched);
  }

  std::vector<Node*> nodes;

 private:
  void refresh_one(const Node* n) {
    AliasDb::Impl::with_nested(n, [&](const Node* m) {
      for (const Value* v : m->inputs()) values_in_.insert(v);
    });
    for (const Value* v : n->outputs()) values_out_.insert(v);
    unite(reads_, impl_->reads_of(n));
    unite(reads_, impl_->outputs_of(n));
    unite(writes_, impl_->writes_of(n));
    effects_ = effects_ || n->hasSideEffects();
  }
  AliasDb::Impl* impl_;
  ValueSet values_in_, values_out_;
  Locations reads_, writes_;
  bool effects_ = false;
};

namespace {

void place(Node* n, Node* target, Side side) {
  if (side == Side::Before)
    n->moveBefore(target);
  else
    n->moveAfter(target);
}

// Walks from n to the target and collects what depends on n. Moving towards the target, the dependants must end up behind it (or in
// front of it, backwards) while n stays on the near side; moving past it all go together.
bool try_move(AliasDb::Impl* impl, Node* n, Node* target, Side side, bool dry_run) {
  if (n == target) return true;
  if (!n->inBlockList() || n->owningBlock() != target->owningBlock()) return false;
  if (n->kind() == prim::Param || n->kind() == prim::Return || (target->kind() == prim::Return && side == Side::After) ||
      (target->kind() == prim::Param && side == Side::Before))
    return false;
  // What is done to the world outside stays where it is.
  if ((side == Side::After ? target->next() : target->prev()) == n) return true;
  if (n->hasSideEffects()) return false;
  const bool forward = n->isBefore(target);
  WorkingSet set(impl);
  set.add(n);
  for (Node* at = forward ? n->next() : n->prev(); at != target; at = forward ? at->next() : at->prev())
    if (set.depends_on(at)) set.add(at);

  const bool split = (side == Side::Before) == forward;
  if (split) set.erase_mover();
  if (target->kind() != prim::Return && target->kind() != prim::Param) {
    if (set.depends_on(target)) return false;
  } else if (!split || !set.nodes.empty()) {
    // Nothing can pass a sentinel; only n alone may go beside it.
    if (set.nodes.size() > (split ? 0u : 1u)) return false;
  }
  if (dry_run) return true;
  Node* at = target;
  if (split) {
    place(n, target, side);
    const Side other = side == Side::Before ? Side::After : Side::Before;
    for (Node* m : set.nodes) {
      place(m, at, other);
      at = m;
    }
  } else {
    for (Node* m : set.nodes) {
      place(m, at, side);
      at = m;
    }
  }
  return true;
}

}  // namespace

bool AliasDb::moveAfterTopologicallyValid(Node* n, Node* target) { return try_move(&ready(impl_), n, target, Side::After, false); }
bool AliasDb::moveBeforeTopologicallyValid(Node* n, Node* target) { return try_move(&ready(impl_), n, target, Side::Before, false); }
bool AliasDb::couldMoveAfterTopologically(Node* n, Node* target) { return try_move(&ready(impl_), n, target, Side::After, true); }
bool AliasDb::couldMoveBeforeTopologically(Node* n, Node* target) { return try_move(&ready(impl_), n, target, Side::Before, true); }

}  // namespace cresset::jit
