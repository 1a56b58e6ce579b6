// Values: names, types, uses.
#include <algorithm>

#include <cresset/ir/ir.h>

namespace cresset::jit {

Value::Value(Node* node, std::size_t offset) : node_(node), offset_(offset), type_(TensorType::get()) {}

Graph* Value::owningGraph() const { return node_->owningGraph(); }
Block* Value::owningBlock() const { return node_->owningBlock(); }

Value* Value::setType(TypePtr type) {
  CRESSET_CHECK(type, "Value: a type was required for %", debugName(), "; null was given.");
  type_ = std::move(type);
  for (const Use& use : uses()) use.user->changed();
  return this;
}

bool Value::isCompleteTensor() const {
  const auto* t = dynamic_cast<const TensorType*>(type_.get());
  return t && t->is_complete();
}

bool Value::isValidName(std::string_view name) { return name.empty() || name.find_first_not_of("0123456789") != std::string_view::npos; }

namespace {
// Splits "x.12" into "x" and 12; a name without such an ending has no number.
std::pair<std::string, std::optional<std::size_t>> split_suffix(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot + 1 == name.size() || name.size() - dot > 18 ||
      name.find_first_not_of("0123456789", dot + 1) != std::string::npos)
    return {name, std::nullopt};
  return {name.substr(0, dot), std::stoull(name.substr(dot + 1))};
}
}  // namespace

std::string Value::debugNameBase() const { return split_suffix(debugName()).first; }

Value* Value::setDebugName(const std::string& name) {
  CRESSET_CHECK(isValidName(name), "Invalid name: '", name,
                "'. A name needs a character that is no digit: numbers stand for anonymous values.");
  Graph& g = *owningGraph();
  if (name_) {
    if (name_->first == name) return this;
    g.names_.erase(g.names_.find(name_->first));
    name_ = nullptr;
  }
  if (name.empty()) return this;
  const auto [place, fresh] = g.names_.try_emplace(name, this);
  name_ = &*place;
  if (!fresh) {
    auto [base, number] = split_suffix(name);
    std::size_t& next = g.name_suffixes_[base];
    next = std::max(next, number.value_or(1));
    std::string replacement;
    do replacement = base + "." + std::to_string(next++);
    while (g.names_.count(replacement));
    Value* owner = std::exchange(name_->second, this);
    owner->name_ = &*g.names_.emplace(std::move(replacement), owner).first;
  }
  return this;
}

void Value::replaceAllUsesWith(Value* other) {
  CRESSET_CHECK(other->owningGraph() == owningGraph(), "replaceAllUsesWith: values of one graph are required; %", debugName(), " and %",
                other->debugName(), " belong to two.");
  if (other == this) return;
  for (const Use& use : uses()) {
    use.user->inputs_[use.offset] = other;
    use.user->add_use(use.offset);
    use.user->changed();
  }
  uses_.clear();
  gaps_ = 0;
}

// Closing the gaps when they are more than the uses costs each removal a constant part of it.
void Value::remove_use(std::size_t place) {
  uses_[place].user = nullptr;
  ++gaps_;
  for (; !uses_.empty() && !uses_.back().user; uses_.pop_back()) --gaps_;
  if (2 * gaps_ <= uses_.size()) return;
  std::erase_if(uses_, [](const Use& use) { return !use.user; });
  gaps_ = 0;
  for (std::size_t i = 0; i < uses_.size(); ++i) uses_[i].user->use_places_[uses_[i].offset] = static_cast<uint32_t>(i);
}

namespace {
template <class F>
void replace_uses_where(const std::vector<Use>& uses, Value* other, F&& wanted) {
  for (const Use& use : uses)
    if (wanted(use.user)) use.user->replaceInput(use.offset, other);
}

// Is `user` behind `node` and in its block or nested below that block?
bool dominates(const Node* node, const Node* user) {
  while (user && user->owningBlock() != node->owningBlock()) user = user->owningBlock() ? user->owningBlock()->owningNode() : nullptr;
  return user && node->isBefore(user);
}
}  // namespace

void Value::replaceAllUsesAfterNodeWith(const Node* node, Value* other) {
  replace_uses_where(uses(), other, [&](const Node* user) { return user->inBlockList() && user->isAfter(node); });
}
void Value::replaceAllUsesDominatedByNodeWith(const Node* node, Value* other) {
  replace_uses_where(uses(), other, [&](const Node* user) { return dominates(node, user); });
}

Value* Value::copyMetadata(const Value* from) {
  setType(from->type());
  if (from->hasDebugName()) setDebugName(from->debugName());
  return this;
}

bool Value::mustBeNone() const { return type_->kind == TypeKind::None || node_->mustBeNone(); }
bool Value::mustNotBeNone() const {
  return type_->kind != TypeKind::None && type_->kind != TypeKind::Optional && type_->kind != TypeKind::Any &&
         type_->kind != TypeKind::Var && !(type_->kind == TypeKind::Union && basic_type(TypeKind::None)->is_subtype_of(*type_));
}

}  // namespace cresset::jit
