// Removes dropout of every kind: dropout, alpha_dropout, feature_dropout, feature_alpha_dropout, in place too, and native_dropout, whose
// mask becomes all true.
//
// Out of training, and with p = 0, the operators give their input itself, so the input stands for the result without further questions.
// A flag that says training, or is only known at run time, needs the option assume_inference (on by default); a note says so: a warning
// where the flag is certain.
#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {
using rewrite::Emitter;

const std::vector<std::string> kKinds = {
    "aten::dropout",         "aten::dropout_",         "aten::alpha_dropout",         "aten::alpha_dropout_",
    "aten::feature_dropout", "aten::feature_dropout_", "aten::feature_alpha_dropout", "aten::feature_alpha_dropout_",
    "aten::native_dropout",
};

bool removable(const Node* n, const PassContext& context) {
  if (n->inputs().size() != 3) return false;
  if (rewrite::is_number(n->input(1), 0)) return true;
  // No flag (None) means training.
  const std::optional<bool> train = n->input(2)->mustBeNone() ? true : rewrite::flag_of(n->input(2));
  if (train && !*train) return true;
  if (!context.options.assume_inference) return false;
  if (train)
    context.note(NoteLevel::warning, n, std::string("removed ") + n->kind().toQualString() + " although it is set to train");
  else
    context.note(NoteLevel::info, n, std::string("removed ") + n->kind().toQualString() + ", assuming that it does not train");
  return true;
}

bool remove_dropout(PassContext& context) {
  rewrite::Aliases aliases(context.graph);
  bool changed = false;
  for (Node* n : rewrite::nodes_of(*context.graph, kKinds)) {
    if (!removable(n, context)) continue;
    if (n->outputs().size() == 2 && n->output(1)->hasUses()) {
      const Emitter emit(n);
      Value* none = emit.none();
      Value* mask = emit("aten::ones_like", {n->input(0), emit.integer(static_cast<int64_t>(ScalarType::Bool)), none, none, none, none});
      rewrite::replace_value(n->output(1), mask);
    }
    n->output(0)->replaceAllUsesWith(n->input(0));
    aliases.bury(n);
    changed = true;
  }
  return changed;
}

const RegisterPass remove_dropout_pass({
    .name = "remove_dropout",
    .phase = "lower",
    .summary = "removes dropout",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = remove_dropout,
});

}  // namespace
}  // namespace cresset::jit
