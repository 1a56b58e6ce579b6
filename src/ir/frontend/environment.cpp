// Frames of names, and what they mean behind branches and loops.
#include "ir/frontend/environment.h"

#include "ir/frontend/script_error.h"

namespace cresset::jit {

TypePtr unshaped(const TypePtr& t) { return t->kind == TypeKind::Tensor && t != inferred_tensor() ? TypePtr(TensorType::get()) : t; }

Node* insert_node(GraphFunction& m, Node* n, const SourceRange& range) {
  m.graph()->insertNode(n);
  return n->setSourceRange(range);
}

void Environment::push(Block* block) {
  auto frame = std::make_unique<BlockNames>();
  frame->block = block;
  frame->outer = frames_.empty() ? nullptr : frames_.back().get();
  frames_.push_back(std::move(frame));
}

std::unique_ptr<BlockNames> Environment::pop() {
  auto frame = std::move(frames_.back());
  frames_.pop_back();
  return frame;
}

const Variable* Environment::lookup(const std::string& name) const {
  for (const BlockNames* f = frames_.back().get(); f; f = f->outer) {
    if (const auto found = f->variables.find(name); found != f->variables.end()) return &found->second;
    if (f->errors.count(name)) return nullptr;
  }
  return nullptr;
}

SugaredValuePtr Environment::find(const std::string& name, const SourceRange& range) {
  for (const BlockNames* f = frames_.back().get(); f; f = f->outer) {
    if (const auto error = f->errors.find(name); error != f->errors.end()) {
      if (error->second.empty()) return nullptr;
      script_error(range, "\n" + error->second + "and was used here");
    }
    const auto found = f->variables.find(name);
    if (found == f->variables.end()) continue;
    const Variable& v = found->second;
    if (v.thing) return v.thing;
    if (!v.type) return nullptr;  // declared only
    return simple_value(load(range, v));
  }
  return nullptr;
}

TypePtr Environment::declared_type(const std::string& name) const {
  const Variable* v = lookup(name);
  return v ? v->declared : nullptr;
}

Value* Environment::load(const SourceRange& range, const Variable& v) {
  return insert_node(m_, m_.graph()->createLoad(v.slot, v.type), range)->output();
}

void Environment::store(const SourceRange& range, const std::string& slot, Value* v) {
  insert_node(m_, m_.graph()->createStore(slot, v), range);
}

void Environment::declare(const SourceRange& range, const std::string& name, TypePtr type) {
  const Variable* known = lookup(name);
  if (known && known->declared_in != &top())
    script_error(range,
                 "Attempting to declare and annotate the type of variable '" + name + "' but it is already defined in an outer block");
  top().errors.erase(name);
  top().variables[name] = Variable{nullptr, nullptr, std::move(type), &top(), known ? known->slot : name};
}

void Environment::assign(const SourceRange& range, const std::string& name, const SugaredValuePtr& value) {
  const Variable* known = lookup(name);
  const bool outer = known && known->declared_in != &top();
  Value* v = value->plainValue();
  if (outer && (!v || known->thing)) {
    const std::string what = v ? v->type()->annotation_str() : value->kind();
    script_error(range, "Cannot re-assign '" + name + "' to a value of type " + what + " because " + name +
                            " is not a first-class value.  Only reassignments to first-class values are allowed");
  }
  top().errors.erase(name);
  if (!v) {
    top().variables[name] = Variable{value, nullptr, nullptr, &top(), name};
    return;
  }
  const TypePtr type = unshaped(v->type());
  Variable now{nullptr, type, type, &top(), known ? known->slot : name};
  if (outer) {
    if (!type->is_subtype_of(*known->declared)) {
      std::string message = "Variable '" + name + "' previously had type " + known->declared->annotation_str() +
                            " but is now being assigned to a value of type " + type->annotation_str();
      if (known->declared->kind == TypeKind::List && v->node()->kind() == prim::ListConstruct && v->node()->inputs().empty())
        message +=
            "\nEmpty lists default to List[Tensor]. Add a variable annotation to the assignment to create an empty list of another type "
            "(torch.jit.annotate(List[T, []]) where T is the type of elements in the list for Python 2)";
      script_error(range, message + "\n");
    }
    now.declared = known->declared;
    now.declared_in = known->declared_in;
  } else if (known && !known->thing && !known->type && known->declared && type->is_subtype_of(*known->declared)) {
    now.declared = known->declared;  // by an annotation without value
  }
  if (!v->hasDebugName() && Value::isValidName(name)) v->setDebugName(name);
  store(range, now.slot, v);
  top().variables[name] = std::move(now);
}

void Environment::annotate(const std::string& name, const TypePtr& declared) {
  Variable& v = top().variables.at(name);
  v.declared = declared;
  v.annotated = true;
}

void Environment::remove(const SourceRange& range, const std::string& name) {
  if (!lookup(name)) script_error(range, "undefined value " + name);
  // Behind a branch that deletes it, it is gone on that path only; an error of this frame says so wherever it is looked up from here.
  top().variables.erase(name);
  top().errors[name] = "";
}

void Environment::hide(const std::string& name) {
  top().errors.erase(name);
  top().variables[name] = Variable{nullptr, nullptr, nullptr, &top(), name + "." + std::to_string(++hidden_)};
}

void Environment::refine(const SourceRange& range, const Refinements& refinements) {
  for (const auto& [name, type] : refinements) {
    const Variable* known = lookup(name);
    if (!known || !known->type) continue;
    Variable now = *known;
    now.annotated = false;
    if (*known->type == *type) {
      top().variables[name] = std::move(now);
      continue;
    }
    now.type = type;
    Node* cast = m_.graph()->create(prim::unchecked_cast, {load(range, *known)});
    cast->output()->setType(type);
    insert_node(m_, cast, range)->output()->setDebugName(name);
    store(range, now.slot, cast->output());
    top().variables[name] = std::move(now);
  }
}

void Environment::widen(const SourceRange& range, const std::set<std::string>& assigned) {
  Refinements wider;
  for (const std::string& name : assigned)
    if (const Variable* known = lookup(name); known && known->type && known->annotated) wider[name] = known->declared;
  refine(range, wider);
}

void Environment::hold(const std::set<std::string>& assigned) {
  for (const std::string& name : assigned)
    if (const Variable* known = lookup(name); known && known->type) {
      Variable now = *known;
      now.declared = now.type;
      top().variables[name] = std::move(now);
    }
}

void Environment::merge(const SourceRange& range, const std::string& name, const Variable* then_one, const Variable* else_one) {
  const Variable* before = lookup(name);
  // A thing of the compiler, a deleted name and a declaration are what they were; new ones stay in their arm.
  const auto is_value = [](const Variable* v) { return v && v->type; };
  if (before && is_value(before)) {
    const TypePtr a = is_value(then_one) ? then_one->type : before->type, b = is_value(else_one) ? else_one->type : before->type;
    Variable now = *before;
    now.type = unify_types(a, b);
    const bool refined = a->is_subtype_of(*before->type) && b->is_subtype_of(*before->type);  // and not assigned another type
    if (!now.type || !now.type->is_subtype_of(*now.declared)) now.type = refined ? before->type : now.declared;
    now.annotated = (is_value(then_one) ? then_one : before)->annotated || (is_value(else_one) ? else_one : before)->annotated;
    top().variables[name] = std::move(now);
    return;
  }
  if (before && !before->thing && before->declared) {  // declared in front of the If
    if (is_value(then_one) && is_value(else_one)) {
      Variable now = *before;
      now.type = unify_types(then_one->type, else_one->type);
      if (!now.type) now.type = now.declared;
      top().variables[name] = std::move(now);
    } else {
      top().errors[name] =
          name + " is not defined in the " + (is_value(then_one) ? "false" : "true") + " branch:\n" + source_excerpt(range);
      top().variables.erase(name);
    }
    return;
  }
  if (before) return;
  if (!then_one || !else_one) {
    top().errors[name] = name + " is not defined in the " + (then_one ? "false" : "true") + " branch:\n" + source_excerpt(range);
    return;
  }
  const bool values = is_value(then_one) && is_value(else_one);
  TypePtr type = values ? unify_types(then_one->type, else_one->type) : nullptr;
  // Declared in both arms: refinements of one do not bind the other.
  const TypePtr both = values ? unify_types(then_one->declared, else_one->declared) : nullptr;
  if (!type && both && then_one->type->is_subtype_of(*both) && else_one->type->is_subtype_of(*both)) type = both;
  if (!type) {
    const auto word = [&](const Variable* v) { return v->type ? v->type->annotation_str() : v->thing ? v->thing->kind() : "nothing"; };
    top().errors[name] = "Type mismatch: " + name + " is set to type " + word(then_one) + " in the true branch and type " + word(else_one) +
                         " in the false branch:\n" + source_excerpt(range);
    return;
  }
  TypePtr declared = unify_types(then_one->declared, else_one->declared);
  if (!declared || !type->is_subtype_of(*declared)) declared = type;
  top().variables[name] = Variable{nullptr, type, declared, &top(), then_one->slot, values && (then_one->annotated || else_one->annotated)};
}

void Environment::merge_arms(const SourceRange& range, BlockNames& then_arm, BlockNames& else_arm) {
  if (then_arm.exits != else_arm.exits) {
    BlockNames& goes_on = then_arm.exits ? else_arm : then_arm;
    for (auto& [name, v] : goes_on.variables) {
      if (v.declared_in == &goes_on) v.declared_in = &top();
      top().errors.erase(name);
      top().variables[name] = std::move(v);
    }
    for (auto& [name, error] : goes_on.errors) {
      top().variables.erase(name);
      top().errors[name] = std::move(error);
    }
    return;
  }
  std::set<std::string> names;
  for (const BlockNames* arm : {&then_arm, &else_arm})
    for (const auto& [name, v] : arm->variables) names.insert(name);
  const auto in = [](const BlockNames& arm, const std::string& name) -> const Variable* {
    const auto found = arm.variables.find(name);
    return found == arm.variables.end() ? nullptr : &found->second;
  };
  for (const std::string& name : names) merge(range, name, in(then_arm, name), in(else_arm, name));
  for (BlockNames* arm : {&then_arm, &else_arm})
    for (auto& [name, error] : arm->errors) {
      if (names.count(name) && in(arm == &then_arm ? else_arm : then_arm, name) == nullptr) continue;
      if (!lookup(name) || error.empty()) {
        top().variables.erase(name);
        top().errors.emplace(name, error);
      }
    }
  top().exits = then_arm.exits;
}

}  // namespace cresset::jit
