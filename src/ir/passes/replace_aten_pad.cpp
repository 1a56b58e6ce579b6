// pad(x, amounts, mode, value) becomes the operator of its mode: constant_pad_nd, reflection_pad1d, …, replication_pad3d.
//
// The mode and the number of amounts must be known, and for constant padding whether there is a value; otherwise the node stays. Reflection
// in three dimensions and circular padding stay too, with a note.
#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {
using rewrite::Emitter, rewrite::Site;

Value* constant_pad(const Site& site) {
  Node* n = site.node;
  Value* value = n->input(3);
  if (!value->mustBeNone() && !value->mustNotBeNone()) return nullptr;
  const Emitter emit(n);
  return emit("aten::constant_pad_nd", {n->input(0), n->input(1), value->mustBeNone() ? emit.integer(0) : value});
}

Value* mirrored_pad(const Site& site, const std::string& mode) {
  Node* n = site.node;
  // These modes take no value other than 0.
  if (!n->input(3)->mustBeNone() && !rewrite::is_number(n->input(3), 0)) return nullptr;
  const auto length = rewrite::length_of(n->input(1), site.aliases);
  if (!length) return nullptr;
  const bool reflects = mode == "reflect";
  const bool known = reflects ? *length == 2 || *length == 4 : mode == "replicate" && (*length == 2 || *length == 4 || *length == 6);
  if (!known) {
    site.context.note(NoteLevel::error, n,
                      "pad with mode '" + mode + "' and " + std::to_string(*length) + " amounts has no operator of its own and stays");
    return nullptr;
  }
  const std::string op = std::string(reflects ? "aten::reflection_pad" : "aten::replication_pad") + std::to_string(*length / 2) + "d";
  return Emitter(n)(op.c_str(), {n->input(0), n->input(1)});
}

Value* replace(const Site& site) {
  Node* n = site.node;
  if (!rewrite::calls(n, "aten::pad")) return nullptr;
  const auto mode = rewrite::string_of(n->input(2));
  if (!mode) return nullptr;
  return *mode == "constant" ? constant_pad(site) : mirrored_pad(site, *mode);
}

const RegisterPass replace_aten_pad_pass({
    .name = "replace_aten_pad",
    .phase = "lower",
    .summary = "pad to the operator of its mode",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = [](PassContext& c) { return rewrite::rewrite_nodes(c, {"aten::pad"}, replace); },
});

}  // namespace
}  // namespace cresset::jit
