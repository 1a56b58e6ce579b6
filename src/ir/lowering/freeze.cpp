// Freezing: which attributes may change, constants for the others, and a new module that holds only what is still used.
#include <set>
#include <unordered_set>

#include <cresset/ir/alias_analysis.h>
#include <cresset/ir/lowering.h>

#include "ir/lowering/freeze.h"
#include "ir/module/deep_copier.h"
#include "ir/rewrite/module_reads.h"
#include "ir/rewrite/pass_tools.h"
#include "ir/rewrite/type_facts.h"

namespace cresset::jit {
namespace {

bool is_module_value(const IValue& v) { return v.isScriptObject(); }

const void* memory_of(const Tensor& t) {
  return t.has_storage() ? static_cast<const void*>(t.storage().getIntrusivePtr().get()) : t.unsafeGetTensorImpl();
}

// The memory that a value is made of: storages of tensors, containers. Bounded by the type's depth.
void collect_memory(const IValue& v, std::set<const void*>& out) {
  if (v.isTensor()) {
    if (v.toTensor().defined()) out.insert(memory_of(v.toTensor()));
  } else if (v.isList() || v.isTuple()) {
    if (v.isList()) out.insert(&v.toListImpl());
    for (const IValue& e : v.toListRef()) collect_memory(e, out);
  } else if (v.isGenericDict()) {
    out.insert(&v.toDictImpl());
    for (const auto& [key, e] : v.toDictImpl().items) collect_memory(e, out);
  }
}

bool needs_gradient(const IValue& v) {
  if (v.isTensor()) return v.toTensor().defined() && v.toTensor().requires_grad();
  if (v.isList() || v.isTuple()) return std::any_of(v.toListRef().begin(), v.toListRef().end(), needs_gradient);
  if (!v.isGenericDict()) return false;
  const auto& items = v.toDictImpl().items;
  return std::any_of(items.begin(), items.end(), [](const auto& item) { return needs_gradient(item.second); });
}
// The value as a constant may hold it: tensors do not ask for gradients, also in containers.
IValue detached(const IValue& v) {
  if (!needs_gradient(v)) return v;
  if (v.isTensor()) return v.toTensor().detach();
  if (v.isGenericDict()) {
    auto out = make_intrusive<ivalue::DictImpl>();
    out->key_type = v.toDictImpl().key_type;
    out->value_type = v.toDictImpl().value_type;
    for (const auto& [key, e] : v.toDictImpl().items) out->items.insert_or_assign(key, detached(e));
    return out;
  }
  std::vector<IValue> elements;
  for (const IValue& e : v.toListRef()) elements.push_back(detached(e));
  if (v.isTuple()) return make_intrusive<ivalue::TupleImpl>(std::move(elements), v.toTupleRef().type);
  return make_intrusive<ivalue::ListImpl>(std::move(elements), v.toListImpl().element_type);
}

// Copies of tensors: those that share memory share its copy.
class TensorCopies {
 public:
  /// A value whose tensors will be copied. All are announced first: memory with one name is copied without what lies around it.
  void announce(const IValue& v) {
    if (v.isTensor()) {
      if (v.toTensor().defined()) names_[memory_of(v.toTensor())].insert(v.toTensor().unsafeGetTensorImpl());
    } else if (v.isList() || v.isTuple()) {
      for (const IValue& e : v.toListRef()) announce(e);
    } else if (v.isGenericDict()) {
      for (const auto& [key, e] : v.toDictImpl().items) announce(e);
    }
  }

  Tensor copy(const Tensor& original) {
    const Tensor t = original.detach();
    const void* memory = memory_of(original);
    if (names_[memory].size() < 2) return DeepCopier::plain_copy(t);
    Tensor& whole = copies_[memory];
    const auto elements = static_cast<int64_t>(t.storage().nbytes() / static_cast<std::size_t>(t.element_size()));
    if (!whole.defined()) whole = t.as_strided({elements}, {1}, 0).clone();
    CRESSET_CHECK(whole.scalar_type() == t.scalar_type(), "freeze: attributes of two dtypes share memory, and one of them is written.");
    return whole.as_strided(t.sizes(), t.strides(), t.storage_offset());
  }

 private:
  std::map<const void*, std::set<const void*>> names_;  // of each memory
  std::map<const void*, Tensor> copies_;
};

struct FrozenMethod {
  std::string name;
  std::shared_ptr<Graph> graph;
};

class Freezing {
 public:
  Freezing(const Module& module, const std::vector<std::string>& preserved, const LoweringOptions& options) : module_(module) {
    types_.trust_types = options.trust_types;
    types_.trust_examples = options.trust_examples;
    if (module.find_method("forward")) methods_.push_back(copy_of("forward"));
    for (const std::string& name : preserved) preserve(name);
  }

  Module run(const AfterInlining& after_inlining) {
    for (FrozenMethod& m : methods_) {
      reads_.emplace_back(module_);
      reads_.back().inline_into(m.graph);
      check_results(m, reads_.back());
      if (after_inlining) after_inlining(m.graph);
      reads_.back().bind_subgraphs(*m.graph);
      collect_slots(m, reads_.back());
    }
    keep_training_state();
    // Numbers and flags first: whether statistics are written depends on them.
    for (std::size_t i = 0; i < methods_.size(); ++i) {
      fold(methods_[i], reads_[i], Which::Immutable);
      propagate_constants(methods_[i].graph);
      reads_[i].bind_subgraphs(*methods_[i].graph);
    }
    for (std::size_t i = 0; i < methods_.size(); ++i) find_written(methods_[i], reads_[i]);
    spread_over_shared_memory();
    for (std::size_t i = 0; i < methods_.size(); ++i) fold(methods_[i], reads_[i], Which::All);
    for (FrozenMethod& m : methods_) simplify(m.graph);
    return rebuild();
  }

 private:
  FrozenMethod copy_of(const std::string& name) {
    const std::shared_ptr<Graph> graph = module_.get_method(name).graph();
    CRESSET_CHECK(graph, "freeze: the method '", name, "' has no graph.");
    return {name, graph->copy()};
  }

  void preserve(const std::string& name) {
    if (module_.find_method(name)) {
      if (name != "forward") methods_.push_back(copy_of(name));
      return;
    }
    Object at = module_;
    std::string rest = name;
    for (std::size_t dot = rest.find('.'); dot != std::string::npos; dot = rest.find('.')) {
      const std::string part = rest.substr(0, dot);
      CRESSET_CHECK(at.hasattr(part) && at.attr(part).isScriptObject(), "freeze: there is no attribute or method '", name,
                    "' to preserve.");
      at = Object(at.attr(part).toObject());
      rest = rest.substr(dot + 1);
    }
    // Whoever calls a submodule's method needs the submodule as it is.
    if (const std::size_t dot = name.rfind('.'); dot != std::string::npos && !at.type()->hasAttribute(rest) && at.type()->findMethod(rest))
      return preserve(name.substr(0, dot));
    if (at.type()->hasConstant(rest)) {
      asked_constants_.push_back({at._ivalue(), rest});
      return;
    }
    CRESSET_CHECK(at.type()->hasAttribute(rest), "freeze: there is no attribute or method '", name, "' to preserve.");
    AttributeSlot slot{at._ivalue(), rest};
    kept_.insert(slot);
    if (is_module_value(slot.value())) keep_whole(slot.value().toObject());
    asked_.insert(std::move(slot));
  }

  // All of a module and of what is below it stays.
  void keep_whole(const ObjectPtr& object) {
    if (!whole_.insert(object.get()).second) return;
    for (const ClassAttribute& a : Object(object).type()->attributes()) {
      AttributeSlot slot{object, a.name};
      const IValue v = slot.value();
      kept_.insert(std::move(slot));
      if (is_module_value(v)) keep_whole(v.toObject());
    }
  }

  void check_results(const FrozenMethod& m, const ModuleReads& reads) {
    for (const Value* v : m.graph->outputs())
      CRESSET_CHECK(reads.object(v).get() != module_._ivalue().get(), "attempted to freeze a module that return itself (method '", m.name,
                    "')");
  }

  // All slots that are read or written, and modules that are used for more than that.
  void collect_slots(const FrozenMethod& m, const ModuleReads& reads) {
    for (const auto& g : with_subgraphs(m.graph)) {
      const auto escapes = [&](const Value* v) {
        if (v->type()->kind != TypeKind::Object) return;
        const ObjectPtr o = reads.object(v);
        if (o && o.get() != module_._ivalue().get()) keep_whole(o);
      };
      g->block()->visit([&](Node* n) {
        if (n->kind() == prim::GetAttr || n->kind() == prim::SetAttr) {
          if (const auto slot = reads.slot(n)) used_.insert(*slot);
          if (n->kind() == prim::SetAttr) {
            CRESSET_CHECK(n->input(1)->type()->kind != TypeKind::Interface, "Freezing does not support SetAttr on an interface type.\nin ",
                          n->str(), "\n", n->sourceRange().highlight());
            const auto slot = reads.slot(n);
            CRESSET_CHECK(slot || n->input(0)->type()->kind != TypeKind::Object || made_here(n->input(0)),
                          "freeze: it is not known whose attribute is set.\nin ", n->str(), "\n", n->sourceRange().highlight());
            if (slot) {
              CRESSET_CHECK(slot->type()->kind != TypeKind::Interface,
                            "Freezing does not support SetAttr on an interface type: the attribute '", slot->name, "' is set.\nin ",
                            n->str(), "\n", n->sourceRange().highlight());
              kept_.insert(*slot);
            }
            escapes(n->input(1));
          }
          return;
        }
        // The operand of a fork is looked at inside of its graph.
        if (!subgraph_of(n))
          for (const Value* v : n->inputs()) escapes(v);
        for (const Block* b : n->blocks())
          for (const Value* v : b->outputs()) escapes(v);
      });
      for (const Value* v : g->outputs()) escapes(v);
    }
  }
  static bool made_here(const Value* v) { return v->node()->kind() == prim::CreateObject; }

  // While a module trains, its parameters, buffers and the flag change.
  void keep_training_state() {
    for (const AttributeSlot& slot : used_) {
      const Object owner(slot.object);
      const ClassTypePtr type = owner.type();
      if (!owner.attr("training", IValue(false)).toBool()) continue;
      const ClassAttribute& a = type->attributes()[type->getAttributeSlot(slot.name)];
      if (a.is_parameter || a.is_buffer || slot.name == "training") kept_.insert(slot);
    }
  }

  // Attributes as inputs of their own: then the analysis tells them apart from each other and from the arguments.
  void find_written(const FrozenMethod& m, const ModuleReads& reads) {
    for (const auto& original : with_subgraphs(m.graph)) {
      std::unordered_map<Value*, Value*> map;
      const std::shared_ptr<Graph> g = original->copy(map);
      std::map<AttributeSlot, Value*> inputs;
      for (Node* n : nodes_where(*original, [](const Node* x) { return x->kind() == prim::GetAttr; })) {
        const auto slot = reads.slot(n);
        if (!slot || n->output()->type()->kind == TypeKind::Object || !AliasDb::isMutableType(*n->output()->type())) continue;
        Value*& in = inputs[*slot];
        if (!in) in = g->addInput()->setType(n->output()->type());
        map.at(n->output())->replaceAllUsesWith(in);
      }
      AliasDb::Options options;
      options.independent_inputs = true;
      const AliasDb aliases(g, options);
      bool writes_elements = false;
      g->block()->visit([&](const Node* n) {
        if (n->blocks().empty() && n->kind() != prim::SetAttr && aliases.isMutable(n))
          writes_elements = writes_elements || aliases.writesToWildcard(n);
      });
      for (const auto& [slot, in] : inputs)
        if (aliases.hasWriters(in) || (writes_elements && holds_memory(*in->type()))) kept_.insert(slot);
    }
  }
  static bool holds_memory(const Type& t) {
    for (const TypePtr& m : t.contained)
      if (AliasDb::isMutableType(*m)) return true;
    return false;
  }

  // What shares memory with something that may change may change.
  void spread_over_shared_memory() {
    std::map<AttributeSlot, std::set<const void*>> memory;
    for (const auto* slots : {&used_, &kept_})
      for (const AttributeSlot& s : *slots)
        if (!is_module_value(s.value()) && !memory.count(s)) collect_memory(s.value(), memory[s]);
    for (bool again = true; again;) {
      again = false;
      std::set<const void*> changing;
      for (const auto& [slot, parts] : memory)
        if (kept_.count(slot) && !asked_.count(slot)) changing.insert(parts.begin(), parts.end());
      for (const auto& [slot, parts] : memory)
        if (std::any_of(parts.begin(), parts.end(), [&](const void* p) { return changing.count(p); }))
          again = kept_.insert(slot).second || again;
    }
  }

  std::string constant_name(const ModuleReads& reads, const Node* n) const {
    const std::string owner = reads.path(n->input(0));
    return (owner.empty() ? "self." : "self." + owner + ".") + n->s(attr::name);
  }

  enum class Which : uint8_t { Immutable, All };
  void fold(const FrozenMethod& m, const ModuleReads& reads, Which which) {
    for (const auto& g : with_subgraphs(m.graph)) {
      std::map<AttributeSlot, Value*> constants;
      Node* front = g->block()->param_node()->next();
      for (Node* n : nodes_where(*g, [](const Node* x) { return x->kind() == prim::GetAttr; })) {
        const auto slot = reads.slot(n);
        if (!slot || kept_.count(*slot) || is_module_value(slot->value())) continue;
        if (which == Which::Immutable && AliasDb::isMutableType(*n->output()->type())) continue;
        const auto known = constants.find(*slot);
        Value* constant = known != constants.end() ? known->second : nullptr;
        if (!constant) {
          IValue v = slot->value();
          v = detached(v);
          const WithInsertPoint guard(front);
          const auto made = tryInsertConstant(*g, v, v.isTensor() ? nullptr : slot->type());
          if (!made) {
            kept_.insert(*slot);  // no constant can hold it
            continue;
          }
          constant = *made;
          constant->node()->setSourceRange(n->sourceRange());
          constant->setDebugName(constant_name(reads, n));
          constants.emplace(*slot, constant);
        }
        n->output()->replaceAllUsesWith(constant);
        if (n == front) front = n->next();
        n->destroy();
      }
    }
  }

  static bool asks_identity(const Graph& g) {
    bool found = false;
    g.block()->visit([&](const Node* n) {
      found = found || ((n->kind() == aten::__is__ || n->kind() == aten::__isnot__) && n->input(0)->type()->kind == TypeKind::Tensor &&
                        n->input(1)->type()->kind == TypeKind::Tensor);
    });
    return found;
  }

  void simplify(const std::shared_ptr<Graph>& g) const {
    constexpr int kRounds = 8;
    for (int i = 0; i < kRounds; ++i) {
      bool changed = propagate_constants(g);
      changed = eliminate_common_subexpressions(g) || changed;
      changed = eliminate_dead_code(g) || changed;
      changed = peephole(g, types_) || changed;
      changed = unroll_constant_loops(g) || changed;
      changed = remove_list_mutation(g) || changed;
      changed = pool_constants(g) || changed;
      if (!changed) break;
    }
    lower_simple_tuples(g);
    eliminate_dead_code(g);
    remove_detach(g);
  }
  // Of memory that nobody writes: there is no gradient to cut.
  static void remove_detach(const std::shared_ptr<Graph>& g) {
    if (asks_identity(*g)) return;
    static const Symbol detach = Symbol::aten("detach");
    const AliasDb aliases(g);
    for (Node* n : nodes_where(*g, [](const Node* m) { return m->kind() == detach && !is_marked(m); })) {
      if (aliases.hasWriters(n) || aliases.escapesScope({n->output()})) continue;
      n->output()->replaceAllUsesWith(n->input(0));
      n->destroy();
    }
  }

  // ---- the new module

  Module rebuild() {
    // Slots that a graph still touches, and those on the way to them.
    for (std::size_t i = 0; i < methods_.size(); ++i) {
      reads_[i].bind_subgraphs(*methods_[i].graph);
      for (const auto& g : with_subgraphs(methods_[i].graph))
        g->block()->visit([&](const Node* n) {
          if (n->kind() == prim::GetAttr || n->kind() == prim::SetAttr)
            if (const auto slot = reads_[i].slot(n)) remaining_.insert(*slot);
        });
    }
    for (const AttributeSlot& s : asked_) keep_path_to(s);
    for (const AttributeSlot& s : asked_constants_) keep_path_to(s);
    for (const AttributeSlot& s : kept_)
      if (!is_module_value(s.value())) tensor_copies_.announce(s.value());
    const ObjectPtr root = rebuilt(module_._ivalue());
    const ClassTypePtr type = Object(root).type();
    for (FrozenMethod& m : methods_) {
      for (const auto& g : with_subgraphs(m.graph)) retype(*g);
      auto f = make_intrusive<GraphFunction>(type->name + "." + m.name, m.graph);
      const FunctionSchema schema = module_.get_method(m.name).getSchema();
      std::vector<Argument> arguments = schema.arguments();
      if (!arguments.empty()) arguments[0].type = type;
      f->setSchema(FunctionSchema(OperatorName{schema.name(), ""}, std::move(arguments), schema.returns()));
      type->addMethod(std::move(f));
    }
    return Module(root);
  }

  void keep_path_to(const AttributeSlot& wanted) {
    remaining_.insert(wanted);
    // Whoever holds the owner stays too.
    std::vector<std::pair<ObjectPtr, std::vector<AttributeSlot>>> stack{{module_._ivalue(), {}}};
    std::unordered_set<const void*> seen;
    while (!stack.empty()) {
      const auto [object, path] = std::move(stack.back());
      stack.pop_back();
      if (object.get() == wanted.object.get()) {
        remaining_.insert(path.begin(), path.end());
        return;
      }
      if (!seen.insert(object.get()).second) continue;
      for (const ClassAttribute& a : Object(object).type()->attributes()) {
        AttributeSlot s{object, a.name};
        const IValue v = s.value();
        if (!is_module_value(v)) continue;
        std::vector<AttributeSlot> longer = path;
        longer.push_back(s);
        stack.emplace_back(v.toObject(), std::move(longer));
      }
    }
  }

  // A new object of a new class for each module of which only some attributes remain; those that remain whole are copied with their class.
  // Values are copies, because the given module must not see what is written; what they share they share in the copies.
  ObjectPtr rebuilt(const ObjectPtr& from) {
    if (const auto found = objects_.find(from.get()); found != objects_.end()) return found->second;
    if (whole_.count(from.get())) return objects_[from.get()] = copier_.copy(IValue(from)).toObject();
    const ClassTypePtr old = Object(from).type();
    const auto taken = [&](const std::string& name) { return name == old->name || !class_names_.insert(name).second; };
    const ClassTypePtr type = ClassType::create(mangle_name(old->name, taken), true);
    unit_->register_type(type);
    auto to = new_object(type, 0);
    objects_[from.get()] = to;
    for (const ClassAttribute& a : old->attributes()) {
      const AttributeSlot slot{from, a.name};
      if (!remaining_.count(slot)) continue;
      const IValue v = slot.value();
      TypePtr attribute_type = a.type;
      if (is_module_value(v)) attribute_type = rebuilt(v.toObject())->type;
      const std::size_t at = type->addAttribute(a.name, attribute_type, a.is_parameter, a.is_buffer);
      to->set_slot(at, is_module_value(v) ? IValue(rebuilt(v.toObject())) : copier_.copy(v));
    }
    for (const AttributeSlot& s : asked_constants_)
      if (s.object.get() == from.get() && !type->hasConstant(s.name)) type->addConstant(s.name, old->getConstant(s.name));
    return to;
  }

  // Values of rebuilt modules have the new classes.
  void retype(Graph& g) {
    const auto change = [&](Value* v) {
      if (v->type()->kind != TypeKind::Object) return;
      for (ModuleReads& reads : reads_)
        if (const ObjectPtr o = reads.object(v))
          if (const auto found = objects_.find(o.get()); found != objects_.end()) {
            retyped_.emplace_back(v, found->second->type);
            return;
          }
    };
    for (Value* v : g.inputs()) change(v);
    g.block()->visit([&](Node* n) {
      for (Value* v : n->outputs()) change(v);
    });
    for (const auto& [v, type] : retyped_) v->setType(type);
    retyped_.clear();
  }

  const Module module_;
  LoweringOptions types_;                                                              // which of them are to be trusted
  const std::shared_ptr<CompilationUnit> unit_ = std::make_shared<CompilationUnit>();  // of the rebuilt classes
  std::vector<FrozenMethod> methods_;
  std::vector<ModuleReads> reads_;  // one a method
  std::set<AttributeSlot> used_, kept_, asked_, remaining_;
  std::vector<AttributeSlot> asked_constants_;
  std::unordered_set<const void*> whole_;
  std::unordered_map<const void*, ObjectPtr> objects_;
  std::unordered_set<std::string> class_names_;
  TensorCopies tensor_copies_;
  DeepCopier copier_{nullptr, [this](const Tensor& t) { return tensor_copies_.copy(t); }};
  std::vector<std::pair<Value*, TypePtr>> retyped_;
};

}  // namespace

Module freeze_with_hints(const Module& module, const std::vector<std::string>& preserved, const AfterInlining& after_inlining,
                         const LoweringOptions& options) {
  return Freezing(module, preserved, options).run(after_inlining);
}

Module freeze_module(const Module& module, const std::vector<std::string>& preserved, const AfterInlining& after_inlining,
                     const LoweringOptions& options) {
  Module frozen = freeze_with_hints(module, preserved, after_inlining, options);
  if (!options.trust_examples)
    for (const auto& method : frozen.get_methods()) erase_hints(method.graph());
  return frozen;
}

}  // namespace cresset::jit
