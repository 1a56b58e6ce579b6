// Operators in the forms that fusers of pointwise operators look for:
//
//   x + c, x - c, x * c, x / c, where c is a constant tensor without dimensions -> the same with a number
//   the members of chunk(x, n, d), where n and d are constants                  -> prim::ConstantChunk[chunks=n, dim=d](x)
//
// A number takes part in promotion as a tensor of the default dtype does, so that only constants of such a dtype (and bools and integers of
// 64 bits) become numbers, or those that the known dtype of x outranks. Beside an x without dimensions a constant counts in full and a
// number does not: such an x stays where it is known, or was seen, to be one; else it is taken to have dimensions, as PyTorch takes it.
#include <cresset/core/scalar_type.h>
#include <cresset/ir/pass_functions.h>

#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {
using rewrite::Emitter;

// bools, integers, floating point numbers, complex ones
int category(ScalarType t) { return isComplexType(t) ? 3 : isFloatingType(t) ? 2 : t == ScalarType::Bool ? 0 : 1; }

bool promotes_like_number(const Tensor& c, const Value* x, const LoweringOptions& options) {
  if (rewrite::rumoured_rank(x) == std::size_t{0}) return rewrite::dtype_of(x, options) == c.scalar_type();
  const ScalarType t = c.scalar_type();
  if (t == ScalarType::Bool || t == ScalarType::Long || t == get_default_dtype()) return true;
  const auto known = rewrite::dtype_of(x, options);
  return known && category(*known) >= category(t);
}

bool number_for_constant(Node* n, rewrite::Aliases& aliases, const LoweringOptions& options) {
  const std::string op = n->kind().toQualString();
  if (!rewrite::calls(n, op + ".Tensor") || n->inputs().size() > 3) return false;
  const auto constant = constant_as<Tensor>(n->input(1));
  if (!constant || constant->dim() != 0 || !constant->is_cpu() || !promotes_like_number(*constant, n->input(0), options)) return false;
  if (aliases->hasWriters(n->input(1))) return false;
  const Emitter emit(n);
  std::vector<Value*> arguments(n->inputs().begin(), n->inputs().end());
  arguments[1] = emit.constant(IValue(constant->item()));
  Value* fresh = emit(op.c_str(), arguments);
  rewrite::replace_value(n->output(), fresh, &aliases);
  aliases.bury(n);
  return true;
}

bool members_for_list(Node* n) {
  if (!rewrite::calls(n, "aten::chunk")) return false;
  const auto chunks = constant_as<int64_t>(n->input(1)), dim = constant_as<int64_t>(n->input(2));
  if (!chunks || !dim || n->output()->use_count() != 1) return false;
  Node* unpack = n->output()->uses()[0].user;
  if (unpack->kind() != prim::ListUnpack || static_cast<int64_t>(unpack->outputs().size()) != *chunks) return false;
  Node* fresh = n->owningGraph()->create(prim::ConstantChunk, {n->input(0)}, unpack->outputs().size());
  fresh->insertBefore(n)->copyMetadata(n);
  fresh->i_(attr::chunks, *chunks)->i_(attr::dim, *dim);
  for (std::size_t i = 0; i < unpack->outputs().size(); ++i) {
    fresh->output(i)->setType(unpack->output(i)->type());
    rewrite::replace_value(unpack->output(i), fresh->output(i));
  }
  unpack->destroy();
  n->destroy();
  return true;
}

const RegisterPass canonicalize_ops_pass({
    .name = "canonicalize_graph_fuser_ops",
    .phase = "simplify",
    .summary = "numbers for constant tensors without dimensions, members for lists of chunks",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in =
        [](PassContext& c) {
          bool changed = false;
          {
            rewrite::Aliases aliases(c.graph);
            for (Node* n : rewrite::nodes_of(*c.graph, {"aten::add", "aten::sub", "aten::mul", "aten::div"}))
              changed = number_for_constant(n, aliases, c.options) || changed;
          }
          for (Node* n : rewrite::nodes_of(*c.graph, {"aten::chunk"})) changed = members_for_list(n) || changed;
          return changed;
        },
});

}  // namespace

void CanonicalizeOps(const std::shared_ptr<Graph>& graph) { find_pass("canonicalize_graph_fuser_ops")->run(graph); }

}  // namespace cresset::jit
