// Graphs and classes as the source text that archives hold: Python-like, and compiled again to the same graphs.
//
// A value that is used once, by the next statement, stands inside that statement (as long as the line stays short); everything else gets a
// name of its own. The order of evaluation is the graph's.
//
// Nodes with a fallback mark, or between delimiters, are statements of their own with a comment behind them, which the importer turns into
// marks again; for others it is a comment.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <cresset/ir/class_type.h>
#include <cresset/ir/function.h>

#include "ir/archive/source_map.h"

namespace cresset::jit {

/// The names under which types and functions stand in a text; asking for one makes it a dependency.
struct CodeNames {
  std::function<std::string(const TypePtr&)> type;
  std::function<std::string(const Function&)> function;
};
/// A type in annotations, named types by their names in the text.
std::string annotation_text(const TypePtr& type, const CodeNames& names);

/// Values that a text cannot say, `CONSTANTS.cN` in it. One table for all texts of an archive.
class ConstantTable {
 public:
  std::size_t index_of(const IValue& v);
  const std::vector<IValue>& values() const { return values_; }

 private:
  std::vector<IValue> values_;
};

/// One file of an archive.
class CodePrinter {
 public:
  CodePrinter(CodeNames names, ConstantTable& constants) : names_(std::move(names)), constants_(constants) {}
  /// A class, module, interface, enum or named tuple.
  void type(const TypePtr& type);
  /// `self_type`: the first parameter is written with its type.
  void function(const Function& function, bool self_type = true);
  const std::string& text() const { return text_; }
  /// Where the statements come from.
  const CodeRanges& ranges() const { return ranges_; }

 private:
  void class_type(const ClassType& type);
  std::string constant(const IValue& v) const;

  CodeNames names_;
  ConstantTable& constants_;
  std::string text_;
  CodeRanges ranges_;
  std::unordered_map<std::string, std::size_t> next_suffix_;
};

// ---- pieces (code_expressions.cpp) -------------------------------------------------------------------------------------

/// Behind a statement whose node carries a fallback mark.
inline constexpr const char* kFallbackComment = "  # to_compile=0";

bool is_identifier(std::string_view name);
/// A value of a constant as text; tensors, objects and what else has no text go to the table.
std::string constant_text(const IValue& v, const TypePtr& type, const CodeNames& names, ConstantTable& constants);
/// The text of a node with one or no expression, from the texts of its inputs.
std::string expression_text(const Node& n, const std::vector<std::string>& inputs, const CodeNames& names);

/// Loops as `for` or `while` (loop_forms.cpp): a loop with both a count and a condition gets a counter of its own.
void make_loops_expressible(Graph& g);

}  // namespace cresset::jit
