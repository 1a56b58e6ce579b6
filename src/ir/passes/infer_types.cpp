// Types of tensors from those of the inputs: every operator whose operands are known runs on the Meta device, where it computes nothing but
// dtype, sizes and strides.
//
// A number that is not known counts as one: what comes of it says the dtype and nothing more. What the inputs say as a hint gives hints.
// Behind operators that change a tensor's sizes in place nothing is said of sizes.
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
  IValue value;
  bool exact = true;  // sizes are right, not only dtypes
  bool hint = false;
  std::optional<Device> device;  // of the tensors
};

IValue on_meta(const IValue& v) {
  if (v.isTensor()) {
    const Tensor& t = v.toTensor();
    return t.defined() ? IValue(empty_strided(t.sizes(), t.strides(), TensorOptions(t.scalar_type()).device(kMetaDevice))) : v;
  }
  if (!v.isList() && !v.isTuple()) return v;
  std::vector<IValue> parts;
  for (const IValue& part : v.toListRef()) parts.push_back(on_meta(part));
  if (v.isTuple()) return make_intrusive<ivalue::TupleImpl>(std::move(parts), v.toTupleRef().type);
  return make_intrusive<ivalue::ListImpl>(std::move(parts), v.type()->element());
}

class TypeInference {
 public:
  explicit TypeInference(const Graph& graph) {
    graph.block()->visit([this](const Node* n) { reshapes_ = reshapes_ || may_reshape(n); });
  }
  bool run(const Block* block) {
    for (Node* n : block->nodes()) visit(n);
    return changed_;
  }

 private:
  std::optional<Known> known(const Value* v) const {
    if (const auto found = known_.find(v); found != known_.end()) return found->second;
    if (const auto constant = toIValue(v)) return Known{on_meta(*constant), true, false, std::nullopt};
    switch (v->type()->kind) {
      case TypeKind::None: return Known{};
      case TypeKind::Int: return Known{IValue(int64_t{1}), false, false, std::nullopt};
      case TypeKind::Float: return Known{IValue(1.0), false, false, std::nullopt};
      case TypeKind::Tensor: return of_type(static_cast<const TensorType&>(*v->type()));
      default: return std::nullopt;
    }
  }
  static std::optional<Known> of_type(const TensorType& t) {
    if (!t.dtype || !t.sizes) return std::nullopt;
    std::vector<int64_t> sizes;
    for (const auto& size : *t.sizes) sizes.push_back(size.value_or(1));
    const TensorOptions options = TensorOptions(*t.dtype).device(kMetaDevice);
    const auto strides = t.concrete_strides();
    const bool exact = t.concrete_sizes().has_value();
    return Known{IValue(exact && strides ? empty_strided(sizes, *strides, options) : empty(sizes, options)), exact, t.hint, t.device};
  }

  void visit(Node* n) {
    if (n->kind() == prim::Constant) return;
    for (const Block* b : n->blocks()) run(b);
    if (n->kind() == prim::If) return join(n);
    std::vector<IValue> stack;
    Known all;
    for (const Value* v : n->inputs()) {
      const auto one = known(v);
      if (!one) return;
      stack.push_back(one->value);
      all.exact = all.exact && one->exact;
      all.hint = all.hint || one->hint;
      if (!all.device) all.device = one->device;
    }
    if (!evaluate(n, stack, all) || stack.size() != n->outputs().size()) return;
    for (std::size_t i = 0; i < stack.size(); ++i) {
      if (n->output(i)->type()->kind == TypeKind::Tensor && !stack[i].isTensor()) continue;
      Known result{on_meta(stack[i]), all.exact, all.hint, all.device};
      state(n->output(i), result);
      known_.insert_or_assign(n->output(i), std::move(result));
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
        if (stack[i].isDevice()) all.device = stack[i].toDevice();
        stack[i] = IValue(kMetaDevice);
      }
      if (op->schema().is_vararg() && op->function()) stack.emplace_back(static_cast<int64_t>(stack.size()));
      const NoGradGuard no_grad;
      op->call(stack);
      return true;
    } catch (const std::exception&) {
      return false;  // values decide, or it will raise when the graph runs
    }
  }

  void state(Value* v, const Known& result) {
    if (!result.value.isTensor() || v->type()->kind != TypeKind::Tensor || !result.value.toTensor().defined()) return;
    const Tensor& t = result.value.toTensor();
    std::optional<TensorType::Dims> sizes, strides;
    if (result.exact && !reshapes_) {
      sizes.emplace(t.sizes().begin(), t.sizes().end());
      strides.emplace(t.strides().begin(), t.strides().end());
    }
    const auto type = TensorType::create(t.scalar_type(), std::move(sizes), std::move(strides), std::nullopt, result.device);
    type->hint = result.hint;
    set(v, type);
  }
  // A type that says less than the value's own does not take its place.
  void set(Value* v, const std::shared_ptr<TensorType>& type) {
    const auto& old = static_cast<const TensorType&>(*v->type());
    if (!type->is_refined() || (old.is_complete() && !old.hint) || (old == *type && old.hint == type->hint)) return;
    if (old.is_complete() && !type->is_complete()) return;
    if (!type->requires_grad) type->requires_grad = old.requires_grad;
    v->setType(type);
    changed_ = true;
  }

  bool reshapes_ = false, changed_ = false;
  std::unordered_map<const Value*, Known> known_;
};

const RegisterPass infer_types_pass({
    .name = "infer_types",
    .phase = "simplify",
    .summary = "types of tensors from those of the inputs",
    .needs = {},
    .keeps = {"marks", "names", "aliasing"},
    .run = [](const std::shared_ptr<Graph>& g) { return TypeInference(*g).run(g->block()); },
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
