// Types of tensors from those of the inputs: every operator whose operands are known runs on the Meta device, where it computes nothing but
// dtype, sizes and strides.
//
// Sizes alone do: a tensor of a dtype that nobody knows has one that its operator takes, and what comes of it says sizes only. Operators
// whose sizes depend on dtypes stay without.
//
// A number that is not known counts as one: what comes of it says the dtype and nothing more. What the inputs say as a hint gives hints.
// Behind operators that change a tensor's sizes in place nothing is said of sizes.
//
// Where inputs have ranges of sizes the graph is walked with several choices of them at once: their ends, what lies beside these, some
// between them, and the usual sizes: all ranges alike; alike at the same place of a shape; each on its own; and one range alone beside
// others that are alike by place, so that sizes that cancel (an image's and a kernel's) are not taken for a number. A size on which all
// agree is known. A choice for which the graph raises where others do not says nothing of the sizes for which it runs, and is dropped;
// where that leaves fewer than three sizes of a range, or only choices that are all alike, nothing is said of sizes.
#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include <cresset/ir/interpreter.h>
#include <cresset/ir/operator.h>
#include <cresset/ir/pass.h>
#include <cresset/ops/functions_creation.h>

#include "ir/rewrite/pass_tools.h"
#include "ir/rewrite/type_facts.h"

namespace cresset::jit {
namespace {

const Device kMetaDevice(DeviceType::Meta);

struct Known {
  std::vector<IValue> values;  // one a choice of sizes; a single one where all are the same
  bool exact = true;           // sizes are right, not only dtypes
  bool hint = false;
  std::optional<Device> device = std::nullopt;  // of the tensors
  bool any_strides = false;                     // tensors have the usual strides, and may have others
  bool any_dtype = false;                       // tensors have a dtype that stands in for one that is not known
  bool anywhere = false;                        // a number as a constant tensor, which goes with any device

  bool may_be_elsewhere() const { return !device && !anywhere && values[0].isTensor() && values[0].toTensor().defined(); }
  const IValue& at(std::size_t choice) const { return values.size() == 1 ? values[0] : values[choice]; }
};

IValue on_meta(const IValue& v) {
  if (v.isTensor()) {
    const Tensor& t = v.toTensor();
    return t.defined() ? IValue(empty_strided(t.sizes(), t.strides(), TensorOptions(t.scalar_type()).device(kMetaDevice))) : v;
  }
  if (v.isGenericDict()) {
    const ivalue::DictImpl& from = v.toDictImpl();
    auto to = make_intrusive<ivalue::DictImpl>();
    to->key_type = from.key_type;
    to->value_type = from.value_type;
    for (const auto& [key, part] : from.items) to->items.insert_or_assign(on_meta(key), on_meta(part));
    return to;
  }
  if (!v.isList() && !v.isTuple()) return v;
  std::vector<IValue> parts;
  for (const IValue& part : v.toListRef()) parts.push_back(on_meta(part));
  if (v.isTuple()) return make_intrusive<ivalue::TupleImpl>(std::move(parts), v.toTupleRef().type);
  return make_intrusive<ivalue::ListImpl>(std::move(parts), v.type()->element());
}
// What operators may write to has no stand-in: objects, generators, storages.
bool has_stand_in(const IValue& v) {
  if (v.isList() || v.isTuple()) return std::all_of(v.toListRef().begin(), v.toListRef().end(), has_stand_in);
  if (v.isGenericDict()) {
    const auto& items = v.toDictImpl().items;
    return std::all_of(items.begin(), items.end(), [](const auto& item) { return has_stand_in(item.second); });
  }
  return v.isTensor() || v.isNone() || v.isString() || v.isDevice() || v.isScalar();
}

// Sizes that stand for a range. Those within are far from each other, on a scale of powers: a graph that raises for small sizes, or for
// those beyond a table, must not be left with two that a stride makes one.
constexpr std::size_t kCandidates = 11;  // prime: 1 to 10 times a number are orders in which all differ
std::array<int64_t, kCandidates> candidates_of(int64_t least, int64_t most, int64_t usual, int64_t large) {
  if (most == InputSpec::kUnbounded) most = least + large;
  const int64_t length = most - least;
  return {usual,
          least,
          most,
          std::min(least + 1, most),
          std::max(most - 1, least),
          least + length / 10'000,
          least + length / 1300,
          least + length / 150,
          least + length / 17,
          least + length / 3,
          most - length / 3};
}

// A dimension of an input: `place` in its shape, and which of the ranges it is.
struct Range {
  std::size_t place, number;
};
using PickCandidate = std::function<std::size_t(const Range&)>;

// What choices say of each range, those that are all alike first.
std::vector<PickCandidate> picks(std::size_t ranges) {
  constexpr std::size_t kMostAlone = 24;  // ranges that are changed alone: each costs walks of the graph
  const auto stride = [](std::size_t i) { return 1 + i % (kCandidates - 1); };
  std::vector<PickCandidate> out;
  for (std::size_t c = 0; c < kCandidates; ++c) out.emplace_back([=](const Range&) { return c; });
  for (std::size_t c = 0; c < kCandidates; ++c) out.emplace_back([=](const Range& r) { return c * stride(r.number) + r.number + 1; });
  if (ranges < 2) return out;
  const auto by_place = [=](std::size_t c, const Range& r) { return c * stride(r.place) + r.place; };
  for (std::size_t c = 0; c < kCandidates; c += 3) out.emplace_back([=](const Range& r) { return by_place(c, r); });
  for (std::size_t alone = 0; alone < std::min(ranges, kMostAlone); ++alone)
    out.emplace_back([=](const Range& r) { return by_place(kCandidates / 2, r) + (r.number == alone ? 1 : 0); });
  return out;
}

// A size without limit: longer than kernels are, and five such sizes are no overflow. Recurrent layers go step by step here as well.
int64_t large_size(const Graph& graph) {
  bool is_recurrent = false;
  graph.block()->visit([&](const Node* n) {
    for (const char* layer : {"aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu"})
      is_recurrent = is_recurrent || n->kind() == Symbol::fromQualString(layer);
  });
  return is_recurrent ? 1 << 9 : 1 << 14;
}

// Sizes of the inputs in place of ranges, a list of shapes for each choice.
std::vector<std::vector<std::vector<int64_t>>> choices_of(const InputSpecs& specs, int64_t large) {
  std::size_t ranges = 0;
  for (const auto& spec : specs)
    for (std::size_t i = 0; spec && i < spec->min.size(); ++i) ranges += spec->min[i] != spec->max[i];
  std::vector<std::vector<std::vector<int64_t>>> out;
  if (ranges == 0) return out;
  for (const PickCandidate& pick : picks(ranges)) {
    std::vector<std::vector<int64_t>>& sizes = out.emplace_back();
    std::size_t number = 0;
    for (const auto& spec : specs) {
      std::vector<int64_t>& one = sizes.emplace_back();
      for (std::size_t i = 0; spec && i < spec->min.size(); ++i) {
        const bool varies = spec->min[i] != spec->max[i];
        one.push_back(varies ? candidates_of(spec->min[i], spec->max[i], spec->opt[i], large)[pick({i, number}) % kCandidates]
                             : spec->min[i]);
        number += varies;
      }
    }
  }
  return out;
}

class TypeInference {
 public:
  TypeInference(const Graph& graph, const InputSpecs& specs) {
    graph.block()->visit([this](const Node* n) { reshapes_ = reshapes_ || may_reshape(n); });
    const auto choices = choices_of(specs, large_size(graph));
    runs_.assign(std::max<std::size_t>(1, choices.size()), true);
    for (std::size_t i = 0; i < specs.size() && !choices.empty(); ++i) {
      if (!specs[i] || !specs[i]->has_ranges()) continue;
      for (std::size_t d = 0; d < specs[i]->min.size(); ++d) {
        if (specs[i]->min[d] == specs[i]->max[d]) continue;
        std::vector<int64_t>& range = ranges_.emplace_back();
        for (const auto& sizes : choices) range.push_back(sizes[i][d]);
      }
      Known known{{}, true, false, specs[i]->device};
      for (const auto& sizes : choices) known.values.emplace_back(empty(sizes[i], TensorOptions(specs[i]->dtype).device(kMetaDevice)));
      known_.emplace(graph.inputs().at(i), std::move(known));
    }
  }
  bool run(const Block* block) {
    for (Node* n : block->nodes()) visit(n, block->owningNode() == nullptr);
    return changed_;
  }

 private:
  std::optional<Known> known(const Value* v) const {
    if (const auto found = known_.find(v); found != known_.end()) return found->second;
    if (const auto constant = toIValue(v)) {
      if (!has_stand_in(*constant)) return std::nullopt;
      Known known{{on_meta(*constant)}};
      if (constant->isTensor() && constant->toTensor().defined()) {
        known.anywhere = constant->toTensor().dim() == 0 && constant->toTensor().is_cpu();
        if (!known.anywhere) known.device = constant->toTensor().device();
      }
      return known;
    }
    switch (v->type()->kind) {
      case TypeKind::None: return Known{{IValue()}};
      case TypeKind::Int: return Known{{IValue(int64_t{1})}, false};
      case TypeKind::Float: return Known{{IValue(1.0)}, false};
      case TypeKind::Device: return Known{{IValue(kMetaDevice)}};
      case TypeKind::Tensor: return of_type(static_cast<const TensorType&>(*v->type()));
      default: return std::nullopt;
    }
  }
  static std::optional<Known> of_type(const TensorType& t) {
    const bool exact = t.concrete_sizes().has_value();
    if (!t.sizes || (!t.dtype && !exact)) return std::nullopt;
    std::vector<int64_t> sizes;
    for (const auto& size : *t.sizes) sizes.push_back(size.value_or(1));
    const TensorOptions options = TensorOptions(t.dtype.value_or(ScalarType::Float)).device(kMetaDevice);
    const auto strides = t.concrete_strides();
    return Known{{IValue(exact && strides ? empty_strided(sizes, *strides, options) : empty(sizes, options))},
                 exact,
                 t.hint,
                 t.device,
                 !strides,
                 !t.dtype};
  }

  void visit(Node* n, bool runs_always) {
    if (n->kind() == prim::Constant) return;
    for (const Block* b : n->blocks()) run(b);
    if (n->kind() == prim::If) return join(n);
    std::vector<Known> operands;
    Known all;
    bool mixed = false;
    for (const Value* v : n->inputs()) {
      auto one = known(v);
      if (!one && is_bias(*n, operands.size())) one = Known{{IValue()}};
      if (!one) return hand_on_written(n);
      all.exact = all.exact && one->exact;
      all.hint = all.hint || one->hint;
      // One of them may yield to the other, and of one that is not known nobody knows that.
      const bool elsewhere = one->device && all.device && one->device != all.device;
      mixed = mixed || elsewhere || one->may_be_elsewhere();
      if (!all.device) all.device = one->device;
      all.any_dtype = all.any_dtype || one->any_dtype;
      all.any_strides = all.any_strides || one->any_strides;
      operands.push_back(std::move(*one));
    }
    if (mixed) all.device.reset();
    const bool same = std::all_of(operands.begin(), operands.end(), [](const Known& k) { return k.values.size() == 1; });
    if (all.any_dtype && !sizes_without_dtypes(*n)) return;
    std::vector<std::optional<std::vector<IValue>>> results(same ? 1 : runs_.size());
    bool any = false;
    for (std::size_t choice = 0; choice < results.size(); ++choice) {
      if (!same && !runs_[choice]) continue;
      std::vector<IValue> stack;
      for (const Known& k : operands) stack.push_back(k.at(choice));
      if (evaluate_with_dtypes(n, stack, operands, all) && stack.size() == n->outputs().size()) results[choice] = std::move(stack);
      any = any || results[choice];
    }
    if (!any) return;
    for (std::size_t choice = 0; !same && choice < results.size(); ++choice) {
      if (results[choice] || !runs_[choice]) continue;
      if (!runs_always) return;
      runs_[choice] = false;
    }
    for (std::size_t i = 0; i < n->outputs().size(); ++i) {
      Known result{{}, all.exact, all.hint, all.device, all.any_strides, all.any_dtype && gives_tensors(*n->output(i)->type())};
      bool fits = true;
      for (const auto& stack : results) {
        // The stand-in's device is the place of one that is not known.
        const bool is_place = stack && (*stack)[i].isDevice() && all.device;
        result.values.push_back(is_place ? IValue(*all.device) : stack ? on_meta((*stack)[i]) : IValue());
        fits = fits && (!stack || n->output(i)->type()->kind != TypeKind::Tensor || (*stack)[i].isTensor());
      }
      if (!fits) continue;
      state(n->output(i), result);
      known_.insert_or_assign(n->output(i), std::move(result));
    }
  }

  // A bias has the dtype of what it is added to, and says nothing of sizes.
  static bool is_bias(const Node& n, std::size_t operand) {
    const FunctionSchema* s = n.maybeSchema();
    return s && n.kind().is_aten() && operand < s->arguments().size() && s->arguments()[operand].name() == "bias" &&
           s->arguments()[operand].type->kind == TypeKind::Optional && n.input(operand)->type()->is_subtype_of(*OptionalType::ofTensor());
  }
  static bool gives_tensors(const Type& t) {
    return t.kind == TypeKind::Tensor ||
           std::any_of(t.contained.begin(), t.contained.end(), [](const TypePtr& part) { return gives_tensors(*part); });
  }
  // Does the node give the same sizes whatever the dtypes are, and nothing that depends on them?
  static bool sizes_without_dtypes(const Node& n) {
    static const std::set<std::string, std::less<>> by_dtype{"aten::index", "aten::stft", "aten::istft", "aten::view.dtype",
                                                             "aten::_unsafe_index"};
    static const std::set<std::string, std::less<>> numbers{"aten::size", "aten::dim", "aten::numel", "aten::len", "prim::ndim"};
    const FunctionSchema* s = n.maybeSchema();
    const std::string name = n.kind().toQualString();
    if (by_dtype.contains(name) || (s && by_dtype.contains(name + "." + s->overload_name()))) return false;
    return numbers.contains(name) ||
           std::all_of(n.outputs().begin(), n.outputs().end(), [](const Value* v) { return gives_tensors(*v->type()); });
  }
  // Operands whose dtypes are not known are floating, or integers where the operator takes no others.
  static bool evaluate_with_dtypes(const Node* n, std::vector<IValue>& stack, const std::vector<Known>& operands, Known& all) {
    if (!all.any_dtype) return evaluate(n, stack, all);
    constexpr std::size_t kMostFree = 4;
    std::vector<std::size_t> free;
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i].any_dtype && stack[i].isTensor()) free.push_back(i);
    const std::vector<IValue> given = stack;
    const Known before = all;
    for (std::size_t choice = 0; choice < (std::size_t{1} << std::min(free.size(), kMostFree)); ++choice) {
      stack = given;
      all = before;
      for (std::size_t k = 0; k < std::min(free.size(), kMostFree); ++k) {
        const Tensor& t = given[free[k]].toTensor();
        const ScalarType dtype = (choice >> k & 1) != 0 ? ScalarType::Long : ScalarType::Float;
        if (t.scalar_type() != dtype)
          stack[free[k]] = IValue(empty_strided(t.sizes(), t.strides(), TensorOptions(dtype).device(kMetaDevice)));
      }
      if (evaluate(n, stack, all)) return true;
    }
    return false;
  }
  // What writes its first operand and gives it back gives what that is, whatever the others are.
  void hand_on_written(Node* n) {
    const FunctionSchema* s = n->maybeSchema();
    if (!s || !n->kind().is_aten() || reshapes_ || n->outputs().size() != 1 || n->inputs().empty() || s->arguments().empty()) return;
    const auto &written = s->arguments()[0].alias, &given = s->returns()[0].alias;
    if (!written || !given || !written->is_write || written->contained || written->before != given->before) return;
    if (const auto self = known(n->input(0)); self && n->output()->type()->kind == TypeKind::Tensor) {
      state(n->output(), *self);
      known_.insert_or_assign(n->output(), *self);
    }
  }

  // What both arms of an If say.
  void join(Node* n) {
    for (std::size_t i = 0; i < n->outputs().size(); ++i) {
      const auto *a = dynamic_cast<const TensorType*>(n->blocks()[0]->outputs()[i]->type().get()),
                 *b = dynamic_cast<const TensorType*>(n->blocks()[1]->outputs()[i]->type().get());
      if (!a || !b || n->output(i)->type()->kind != TypeKind::Tensor) continue;
      const auto type = a->merge(*b);
      type->hint = a->hint || b->hint;
      set(n->output(i), type);
    }
  }

  static bool results_are_tensors(const Node& n) {
    return std::all_of(n.outputs().begin(), n.outputs().end(), [](const Value* v) { return v->type()->kind == TypeKind::Tensor; });
  }
  static bool evaluate(const Node* n, std::vector<IValue>& stack, Known& all) {
    try {
      switch (n->kind()) {
        case prim::ListConstruct:
          stack = {IValue(make_intrusive<ivalue::ListImpl>(std::vector<IValue>(stack), n->output()->type()->element()))};
          return true;
        case prim::TupleConstruct: stack = {IValue(make_intrusive<ivalue::TupleImpl>(std::vector<IValue>(stack)))}; return true;
        case prim::TupleUnpack:
        case prim::ListUnpack: {
          const IValue parts = stack[0];
          stack.assign(parts.toListRef().begin(), parts.toListRef().end());
          return true;
        }
        case prim::unchecked_cast:
        case prim::unchecked_unwrap_optional: return true;
        default: break;
      }
      const Operator* op = n->maybeOperator();
      // Writes are into the stand-ins; no other effect may take place.
      if (!op || (n->hasSideEffects() && !op->schema().is_mutable())) return false;
      const auto& formals = op->schema().arguments();
      for (std::size_t i = 0; i < formals.size() && i < stack.size(); ++i) {
        const Type& t = formals[i].type->kind == TypeKind::Optional ? *formals[i].type->element() : *formals[i].type;
        if (t.kind != TypeKind::Device) continue;
        // The Meta device stands in for one that is not known, unless the graph names it.
        const bool is_named = n->input(i)->node()->kind() == prim::Constant;
        if (stack[i].isDevice())
          all.device = is_named || stack[i].toDevice() != kMetaDevice ? std::optional(stack[i].toDevice()) : std::nullopt;
        stack[i] = IValue(kMetaDevice);
        if (!results_are_tensors(*n)) return false;
      }
      // Whether a tensor is on a device, or asks for gradients, the stand-in does not know.
      if (n->kind().is_prim() && n->outputs().size() == 1 && n->output()->type()->kind == TypeKind::Bool) return false;
      if (op->schema().is_vararg() && op->function()) stack.emplace_back(static_cast<int64_t>(stack.size()));
      const NoGradGuard no_grad;
      op->call(stack);
      return true;
    } catch (const std::exception&) {
      return false;  // values decide, or it will raise when the graph runs
    }
  }

  // Does each range still have sizes enough, of those for which the graph runs, to say what does not follow it?
  bool ranges_vary() const {
    if (std::count(runs_.begin(), runs_.end(), false) == 0) return true;
    if (ranges_.size() > 1 && std::find(runs_.begin() + kCandidates, runs_.end(), true) == runs_.end()) return false;  // all are alike
    constexpr std::size_t kEnough = 3;
    return std::all_of(ranges_.begin(), ranges_.end(), [&](const std::vector<int64_t>& range) {
      std::set<int64_t> left;
      for (std::size_t choice = 0; choice < range.size(); ++choice)
        if (runs_[choice]) left.insert(range[choice]);
      return left.size() >= std::min(kEnough, std::set(range.begin(), range.end()).size());
    });
  }

  void state(Value* v, const Known& result) {
    if (v->type()->kind != TypeKind::Tensor) return;
    std::shared_ptr<TensorType> type;
    const bool sizes_are_known = result.exact && !reshapes_ && (result.values.size() == 1 || ranges_vary());
    for (std::size_t choice = 0; choice < result.values.size(); ++choice) {
      if (result.values.size() > 1 && !runs_[choice]) continue;
      const IValue& value = result.values[choice];
      if (!value.isTensor() || !value.toTensor().defined()) return;
      const Tensor& t = value.toTensor();
      std::optional<TensorType::Dims> sizes, strides;
      if (sizes_are_known) {
        sizes.emplace(t.sizes().begin(), t.sizes().end());
        // Strides go with sizes; those of a range are said by none.
        if (result.values.size() == 1 && !result.any_strides) strides.emplace(t.strides().begin(), t.strides().end());
      }
      const auto dtype = result.any_dtype ? std::nullopt : std::optional(t.scalar_type());
      const auto one = TensorType::create(dtype, std::move(sizes), std::move(strides), std::nullopt, result.device);
      type = type ? type->merge(*one) : one;
    }
    if (!type) return;
    type->hint = result.hint;
    set(v, type);
  }
  // A type that says less than the value's own does not take its place; what is certain takes the place of a hint.
  void set(Value* v, const std::shared_ptr<TensorType>& type) {
    const auto& old = static_cast<const TensorType&>(*v->type());
    const bool surer = old.hint && !type->hint;
    if (!type->is_refined() || (old.is_complete() && !old.hint) || (old == *type && old.hint == type->hint)) return;
    if (old.is_complete() && !type->is_complete() && !surer) return;
    if (!type->requires_grad && !surer) type->requires_grad = old.requires_grad;
    v->setType(type);
    changed_ = true;
  }

  bool reshapes_ = false, changed_ = false;
  std::vector<bool> runs_;                    // of each choice: does the graph run up to here?
  std::vector<std::vector<int64_t>> ranges_;  // sizes of each, by choice
  std::unordered_map<const Value*, Known> known_;
};

const RegisterPass infer_types_pass({
    .name = "infer_types",
    .phase = "simplify",
    .summary = "types of tensors from those of the inputs",
    .needs = {},
    .keeps = {"marks", "names", "aliasing"},
    .run_in = [](PassContext& c) { return TypeInference(*c.graph, c.inputs).run(c.graph->block()); },
});

bool erase(const std::vector<Value*>& values) {
  bool changed = false;
  for (Value* v : values)
    if (TypePtr plain = without_facts(v->type()); plain != v->type() && plain->str() != v->type()->str()) {
      v->setType(std::move(plain));
      changed = true;
    }
  return changed;
}

const RegisterPass erase_types_pass({
    .name = "erase_types",
    .phase = "simplify",
    .summary = "forgets what types say of tensors",
    .needs = {},
    .keeps = {"marks", "names", "aliasing"},
    .run =
        [](const std::shared_ptr<Graph>& g) {
          bool changed = erase(g->inputs());
          g->block()->visit([&](Node* n) {
            for (const Block* b : n->blocks()) changed = erase(b->inputs()) || changed;
            changed = erase(n->outputs()) || changed;
          });
          return changed;
        },
});

}  // namespace
}  // namespace cresset::jit
