// remove-to removes casts that provably do nothing; remove-nops removes detach.
//
// `to` goes when the dtypes and devices it asks for are those of its operand as the types say, copy is false and no memory format is asked
// for: then it gives its operand itself. With the option casts_are_managed the backend moves tensors between devices, and moves that keep
// the dtype go too, where nobody writes the copy; with remove_casts all of them go, which is the documented form. Run it late: other passes
// look at casts. clone is never removed.
//
// `detach` goes when its result is not written and the graph compares no objects by identity. In training it would matter: a tensor not
// known to carry no gradient needs the option assume_inference, and a note says so.
#include <cresset/core/layout.h>

#include "ir/passes/rewrite.h"
#include "ir/rewrite/type_facts.h"

namespace cresset::jit {
namespace {
using rewrite::Site;

// The operand in the place of a schema's argument; null when the overload has no such argument.
const Value* argument(const Node* n, std::string_view name) {
  const auto i = n->schema().argument_index(name);
  return i ? n->input(*i) : nullptr;
}

bool absent_or_false(const Value* v) {
  if (!v || v->mustBeNone()) return true;
  const auto flag = rewrite::flag_of(v);
  return flag && !*flag;
}

// Is what is asked for nothing, or what is there?
template <class T>
bool keeps(const Value* asked, const std::optional<T>& have, std::optional<T> (*read)(const IValue&)) {
  if (!asked || asked->mustBeNone()) return true;
  const auto constant = toIValue(asked);
  if (!constant || !have) return false;
  const auto wanted = read(*constant);
  return wanted && *wanted == *have;
}

std::optional<ScalarType> read_dtype(const IValue& v) {
  return v.isInt() ? std::optional(static_cast<ScalarType>(v.toInt())) : std::nullopt;
}
std::optional<Device> read_device(const IValue& v) { return v.isDevice() ? std::optional(v.toDevice()) : std::nullopt; }
std::optional<int64_t> read_int(const IValue& v) { return v.isInt() ? std::optional(v.toInt()) : std::nullopt; }

Value* remove_to(const Site& site) {
  const Node* n = site.node;
  const FunctionSchema* schema = n->maybeSchema();
  if (!schema || schema->is_mutable() || !rewrite::is_tensor(n->input(0))) return nullptr;
  Value* x = n->input(0);
  if (site.context.options.remove_casts) {
    if (!rewrite::may_forward(x, n->output(), site.context, *site.aliases)) return nullptr;
    site.context.note(NoteLevel::info, n, "removed a cast, which the backend makes itself");
    return x;
  }
  if (!absent_or_false(argument(n, "copy")) || !absent_or_false(argument(n, "pin_memory"))) return nullptr;
  if (!keeps<int64_t>(argument(n, "memory_format"), static_cast<int64_t>(MemoryFormat::Preserve), read_int)) return nullptr;
  if (!keeps<int64_t>(argument(n, "layout"), static_cast<int64_t>(Layout::Strided), read_int)) return nullptr;

  const LoweringOptions& options = site.context.options;
  const auto dtype = rewrite::dtype_of(x, options);
  const auto device = rewrite::device_of(x, options);
  bool same_dtype, same_device;
  if (const Value* other = argument(n, "other")) {
    same_dtype = dtype && rewrite::dtype_of(other, options) == dtype;
    same_device = device && rewrite::device_of(other, options) == device;
  } else {
    same_dtype = keeps<ScalarType>(argument(n, "dtype"), dtype, read_dtype);
    same_device = keeps<Device>(argument(n, "device"), device, read_device);
  }
  if (!same_dtype) return nullptr;
  if (same_device) return x;
  if (!site.context.options.casts_are_managed || !rewrite::may_forward(x, n->output(), site.context, *site.aliases)) return nullptr;
  site.context.note(NoteLevel::info, n, "removed a move to another device, which the backend makes itself");
  return x;
}

bool compares_identity(const Graph& g) {
  bool found = false;
  g.block()->visit([&](Node* n) {
    if (n->kind() != aten::__is__ && n->kind() != aten::__isnot__) return;
    for (const Value* v : n->inputs())
      if (v->mustBeNone()) return;  // asks whether something is there
    found = true;
  });
  return found;
}

Value* remove_detach(const Site& site) {
  const Node* n = site.node;
  if (!rewrite::calls(n, "aten::detach") || site.aliases->hasWriters(n->output())) return nullptr;
  const TensorType* type = tensor_facts(n->input(0), site.context.options);
  const bool no_gradient = toIValue(n->input(0)) || (type && type->requires_grad && !*type->requires_grad);
  if (!no_gradient) {
    if (!site.context.options.assume_inference) return nullptr;
    site.context.note(NoteLevel::info, n, "removed detach, assuming inference");
  }
  return n->input(0);
}

bool remove_nops(PassContext& context) {
  if (compares_identity(*context.graph)) return false;
  return rewrite::rewrite_nodes(context, {"aten::detach"}, remove_detach);
}

const RegisterPass remove_to_to_pass({
    .name = "remove_to",
    .phase = "lower",
    .summary = "removes casts that do nothing",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = [](PassContext& c) { return rewrite::rewrite_nodes(c, {"aten::to"}, remove_to); },
});
const RegisterPass remove_to_nops_pass({
    .name = "remove_nops",
    .phase = "lower",
    .summary = "removes detach",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = remove_nops,
});

}  // namespace
}  // namespace cresset::jit
