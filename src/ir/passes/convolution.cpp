// conv1d, conv2d, conv3d and their transposed forms become _convolution, one operator for all of them. A pass for each.
//
// Padding given as a word ("same") is another overload and stays. _convolution has no form without batch dimension: an input known (or seen
// by a trace) to have none stays, and one of unknown rank needs the option assume_batched (on by default; a note says so). The last four
// operands are hints: false for convolutions, true for transposed ones.
#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {
using rewrite::Emitter, rewrite::Site;

bool legal(const Site& site, std::size_t dims, std::initializer_list<std::size_t> lists) {
  const Node* n = site.node;
  if (!n->maybeSchema()) return false;
  for (const std::size_t i : lists)
    if (!rewrite::is_list_of(n->input(i), TypeKind::Int)) return false;
  if (const auto rank = rewrite::rank_of(n->input(0), site.context.options)) return *rank == dims + 2;
  if (const auto rank = rewrite::rumoured_rank(n->input(0)); rank && *rank != dims + 2) return false;
  if (!site.context.options.assume_batched) return false;
  site.context.note(NoteLevel::info, n, "assumes that the input of " + std::string(n->kind().toQualString()) + " has a batch dimension");
  return true;
}

Value* convolution(const Site& site, std::size_t dims) {
  Node* n = site.node;
  if (n->inputs().size() != 7 || !legal(site, dims, {3, 4, 5})) return nullptr;
  const Emitter emit(n);
  const auto& in = n->inputs();
  Value* off = emit.flag(false);
  Value* no_output_padding = emit.integers(std::vector<int64_t>(dims, 0));
  return emit("aten::_convolution", {in[0], in[1], in[2], in[3], in[4], in[5], off, no_output_padding, in[6], off, off, off, off});
}

// Operands: input, weight, bias, stride, padding, output_padding, groups, dilation.
Value* transposed(const Site& site, std::size_t dims) {
  Node* n = site.node;
  if (n->inputs().size() != 8 || !legal(site, dims, {3, 4, 5, 7})) return nullptr;
  const Emitter emit(n);
  const auto& in = n->inputs();
  Value* on = emit.flag(true);
  return emit("aten::_convolution", {in[0], in[1], in[2], in[3], in[4], in[7], on, in[5], in[6], on, on, on, on});
}

Pass pass_of(std::size_t dims, bool is_transposed) {
  const std::string size = std::to_string(dims) + "d";
  const std::string kind = (is_transposed ? "aten::conv_transpose" : "aten::conv") + size;
  return {
      .name = (is_transposed ? "conv_transpose" : "conv") + size + "_to_convolution",
      .phase = "lower",
      .summary = kind + " to _convolution",
      .needs = {},
      .keeps = {"marks", "names"},
      .run_in =
          [=](PassContext& c) {
            return rewrite::rewrite_nodes(
                c, {kind}, [=](const Site& site) { return is_transposed ? transposed(site, dims) : convolution(site, dims); });
          },
  };
}

const RegisterPass conv1d(pass_of(1, false)), conv2d(pass_of(2, false)), conv3d(pass_of(3, false));
const RegisterPass conv_transpose1d(pass_of(1, true)), conv_transpose2d(pass_of(2, true)), conv_transpose3d(pass_of(3, true));

}  // namespace
}  // namespace cresset::jit
