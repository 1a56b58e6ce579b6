// On which device tensors are, from what the types of the inputs say: nothing runs, and dtypes and sizes are not needed.
//
// A result is on the device of the tensors that its operator takes, which are on one; a CPU tensor without dimensions may stand among them.
// Operators with an argument `device` follow that. Where two ways meet (an If, a Loop) the device is known when all of them agree. Of a
// list or tuple one device is known, that of all tensors in it, and of a list only while nobody can write to it.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include <cresset/ir/operator.h>
#include <cresset/ir/pass.h>

#include "ir/rewrite/pass_tools.h"

namespace cresset::jit {
namespace {

struct Place {
  Device device;
  bool hint = false;  // from the type of a tensor that was an example
};
using MaybePlace = std::optional<Place>;

MaybePlace meet(const MaybePlace& a, const MaybePlace& b) {
  if (!a || !b || a->device != b->device) return std::nullopt;
  return Place{a->device, a->hint || b->hint};
}

bool has_tensors(const Type& t) {
  if (t.kind == TypeKind::Tensor) return true;
  if (t.kind != TypeKind::List && t.kind != TypeKind::Optional && t.kind != TypeKind::Tuple) return false;
  return std::any_of(t.contained.begin(), t.contained.end(), [](const TypePtr& part) { return has_tensors(*part); });
}

// A list that only these read keeps the tensors it was made of.
bool only_read(const Value* v) {
  if (v->type()->kind != TypeKind::List) return true;
  static const Symbol getitem = Symbol::aten("__getitem__");
  for (const Use& use : v->uses()) {
    const Node* n = use.user;
    if (n->kind() == prim::ListUnpack || n->kind() == getitem) continue;
    const FunctionSchema* s = n->maybeSchema();
    if (!s || !n->kind().is_aten() || use.offset >= s->arguments().size() || s->arguments()[use.offset].alias) return false;
  }
  return true;
}

std::optional<std::size_t> argument_named(const FunctionSchema& s, std::string_view name) {
  for (std::size_t i = 0; i < s.arguments().size(); ++i)
    if (s.arguments()[i].name() == name) return i;
  return std::nullopt;
}

// The argument that the result is, or is a view of.
std::optional<std::size_t> aliased_argument(const FunctionSchema& s, std::size_t result) {
  const auto& alias = s.returns()[result].alias;
  if (!alias || alias->contained || alias->before.size() != 1 || alias->isWildcardBefore()) return std::nullopt;
  for (std::size_t i = 0; i < s.arguments().size(); ++i)
    if (const auto& a = s.arguments()[i].alias; a && !a->contained && a->before == alias->before) return i;
  return std::nullopt;
}

class DevicePropagation {
 public:
  bool run(const Graph& graph) {
    visit(graph.block());
    bool changed = false;
    for (const auto& [v, place] : places_) changed = state(v, place) || changed;
    return changed;
  }

 private:
  MaybePlace place(Value* v) const {
    if (const auto found = places_.find(v); found != places_.end() && (found->second || is_join(v))) return found->second;
    if (const auto constant = toIValue(v); constant && constant->isTensor() && constant->toTensor().defined())
      return Place{constant->toTensor().device()};
    const auto* t = dynamic_cast<const TensorType*>(v->type().get());
    return t && t->device() ? MaybePlace(Place{*t->device(), t->hint}) : std::nullopt;
  }
  // What it was before says nothing of where several ways meet.
  static bool is_join(const Value* v) {
    const Node* n = v->node();
    if (n->kind() == prim::Param) n = n->owningBlock()->owningNode();
    return n && (n->kind() == prim::If || n->kind() == prim::Loop);
  }

  void visit(const Block* block) {
    for (Node* n : block->nodes()) {
      switch (n->kind()) {
        case prim::Constant: break;
        case prim::If: visit_if(n); break;
        case prim::Loop: visit_loop(n); break;
        default:
          for (const Block* b : n->blocks()) visit(b);
          for (std::size_t i = 0; i < n->outputs().size(); ++i) {
            Value* v = n->output(i);
            if (has_tensors(*v->type())) places_[v] = only_read(v) ? of_result(n, i) : std::nullopt;
          }
      }
    }
  }
  void visit_if(Node* n) {
    for (const Block* b : n->blocks()) visit(b);
    for (std::size_t i = 0; i < n->outputs().size(); ++i) {
      Value *a = n->blocks()[0]->outputs()[i], *b = n->blocks()[1]->outputs()[i];
      Value* v = n->output(i);
      if (!has_tensors(*v->type())) continue;
      // An arm that does not come to its end gives no value.
      const bool no_a = a->node()->kind() == prim::Uninitialized, no_b = b->node()->kind() == prim::Uninitialized;
      places_[v] = !only_read(v) ? std::nullopt : no_a ? place(b) : no_b ? place(a) : meet(place(a), place(b));
    }
  }
  void visit_loop(Node* n) {
    const Block* body = n->blocks()[0];
    const std::size_t carried = n->outputs().size();
    std::vector<MaybePlace> known;
    for (std::size_t i = 0; i < carried; ++i) known.push_back(place(n->input(i + 2)));
    for (bool again = true; again;) {
      again = false;
      for (std::size_t i = 0; i < carried; ++i) places_[body->inputs()[i + 1]] = only_read(body->inputs()[i + 1]) ? known[i] : std::nullopt;
      visit(body);
      for (std::size_t i = 0; i < carried; ++i) {
        const MaybePlace both = meet(known[i], place(body->outputs()[i + 1]));
        again = again || both.has_value() != known[i].has_value() || (both && both->hint != known[i]->hint);
        known[i] = both;
      }
    }
    for (std::size_t i = 0; i < carried; ++i) places_[n->output(i)] = only_read(n->output(i)) ? known[i] : std::nullopt;
  }

  MaybePlace of_result(const Node* n, std::size_t result) const {
    switch (n->kind()) {
      case prim::ListConstruct:
      case prim::TupleConstruct:
      case prim::ListUnpack:
      case prim::TupleUnpack:
      case prim::TupleIndex:
      case prim::ConstantChunk:
      case prim::unchecked_cast:
      case prim::unchecked_unwrap_optional: return common(n);
      case prim::NumToTensor: return Place{Device("cpu")};
      default: break;
    }
    const FunctionSchema* s = n->maybeSchema();
    if (!s || !n->kind().is_aten() || s->returns().size() != n->outputs().size() || s->arguments().size() != n->inputs().size())
      return std::nullopt;
    static const std::unordered_map<Symbol, Device> fixed{
        {Symbol::aten("cpu"), Device("cpu")}, {Symbol::aten("cuda"), Device("cuda")}, {Symbol::aten("_shape_as_tensor"), Device("cpu")}};
    if (const auto found = fixed.find(n->kind()); found != fixed.end()) return Place{found->second};
    // What else these take may be anywhere.
    static const std::unordered_set<Symbol> first{Symbol::aten("index"),      Symbol::aten("index_put"),   Symbol::aten("copy"),
                                                  Symbol::aten("pin_memory"), Symbol::aten("_pin_memory"), Symbol::aten("__getitem__")};
    if (first.contains(n->kind())) return place(n->input(0));
    static const Symbol to = Symbol::aten("to"), type_as = Symbol::aten("type_as");
    if (n->kind() == to || n->kind() == type_as) {
      if (const auto other = argument_named(*s, "other")) return place(n->input(*other));
    } else if (const auto argument = aliased_argument(*s, result)) {
      return place(n->input(*argument));
    }
    if (const auto device = argument_named(*s, "device")) {
      Value* asked = n->input(*device);
      if (const auto constant = toIValue(asked)) {
        if (constant->isDevice()) return Place{constant->toDevice()};
        return constant->isNone() ? common(n) : std::nullopt;
      }
      return asked->node()->kind() == Symbol::prim("device") ? place(asked->node()->input(0)) : std::nullopt;
    }
    return common(n);
  }

  // That of all tensors that the node takes.
  MaybePlace common(const Node* n) const {
    struct Operand {
      Place place;
      std::optional<std::size_t> rank;
      bool yields() const { return rank == 0 && place.device.is_cpu(); }
    };
    std::vector<Operand> operands;
    bool hint = false;
    for (Value* v : n->inputs()) {
      if (!has_tensors(*v->type()) || v->mustBeNone()) continue;
      const MaybePlace one = place(v);
      if (!one) return std::nullopt;
      const auto* t = dynamic_cast<const TensorType*>(v->type().get());
      operands.push_back({*one, t ? t->dim() : std::nullopt});
      hint = hint || one->hint || (t && t->hint);
    }
    if (operands.empty()) return std::nullopt;
    const auto same = [](const Operand& a, const Operand& b) { return a.place.device == b.place.device; };
    const auto all_are_like = [&](const Operand& x, const auto& unless) {
      return std::all_of(operands.begin(), operands.end(), [&](const Operand& o) { return same(o, x) || unless(o); });
    };
    if (all_are_like(operands[0], [](const Operand&) { return false; })) return Place{operands[0].place.device, hint};
    if (!n->kind().is_aten()) return std::nullopt;
    const auto leads = std::find_if(operands.begin(), operands.end(), [](const Operand& o) { return !o.yields(); });
    if (leads == operands.end() || !all_are_like(*leads, [](const Operand& o) { return o.yields(); })) return std::nullopt;
    return Place{leads->place.device, hint};
  }

  static bool state(Value* v, const MaybePlace& place) {
    const auto* old = dynamic_cast<const TensorType*>(v->type().get());
    if (!old || v->type()->kind != TypeKind::Tensor || (!place && !is_join(v))) return false;
    const std::optional<Device> device = place ? std::optional(place->device) : std::nullopt;
    if (old->device() == device || (place && place->hint && old->is_refined() && !old->hint)) return false;
    const bool hint = old->hint || (place && place->hint);
    const auto type = old->withDevice(device);
    type->hint = hint;
    v->setType(type);
    return true;
  }

  std::unordered_map<Value*, MaybePlace> places_;
};

const RegisterPass propagate_device_pass({
    .name = "propagate_device",
    .phase = "simplify",
    .summary = "devices of tensors from those of the inputs",
    .needs = {},
    .keeps = {"marks", "names", "aliasing"},
    .run = [](const std::shared_ptr<Graph>& g) { return DevicePropagation().run(*g); },
});

}  // namespace
}  // namespace cresset::jit
