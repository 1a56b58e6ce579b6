// Loops that count and stop early at once have no statement in the language; they become `while` loops that count themselves.
#include <limits>

#include <cresset/dispatch/boxing.h>
#include <cresset/ir/ir.h>

#include "ir/archive/code_printer.h"

namespace cresset::jit {
namespace {

bool is_true(const Value* v) { return constant_as<bool>(v).value_or(false); }

void count_in_the_body(Graph& g, Node* loop) {
  Block* body = loop->blocks()[0];
  Value *trip = loop->input(0), *start = loop->input(1), *go_on = body->outputs()[0];
  const bool endless = constant_as<int64_t>(trip) == std::numeric_limits<int64_t>::max();
  const bool counts = body->inputs()[0]->hasUses();
  const bool is_for = is_true(start) && is_true(go_on), is_while = endless && !counts;
  if (is_for || is_while) return;

  const WithInsertPoint outside(loop);
  const SourceRange& range = loop->sourceRange();
  Value* zero = g.insertConstant(IValue(int64_t{0}));
  if (!endless) {
    Value* some = g.insert(Symbol::aten("gt"), {trip, zero}, {}, range);
    loop->replaceInput(1, is_true(start) ? some : g.insert(Symbol::aten("__and__"), {some, start}, {}, range));
  }
  loop->addInput(zero);
  loop->addOutput()->setType(basic_type(TypeKind::Int));
  Value* counter = body->addInput();
  counter->setType(basic_type(TypeKind::Int));
  body->inputs()[0]->replaceAllUsesWith(counter);
  const WithInsertPoint inside(body);
  Value* next = g.insert(Symbol::aten("add"), {counter, g.insertConstant(IValue(int64_t{1}))}, {}, range);
  if (!endless) {
    Value* more = g.insert(Symbol::aten("lt"), {next, trip}, {}, range);
    body->replaceOutput(0, g.insert(Symbol::aten("__and__"), {more, go_on}, {}, range));
  }
  body->registerOutput(next);
  const WithInsertPoint again(loop);
  loop->replaceInput(0, g.insertConstant(IValue(std::numeric_limits<int64_t>::max())));
}

}  // namespace

void make_loops_expressible(Graph& g) {
  std::vector<Node*> loops;
  g.block()->visit([&](Node* n) {
    if (n->kind() == prim::Loop) loops.push_back(n);
  });
  for (Node* loop : loops) count_in_the_body(g, loop);
}

}  // namespace cresset::jit
