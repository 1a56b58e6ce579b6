// Constants in IR text: literals as values, and the section "with constants:" behind a graph, to which literals refer by name.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <cresset/dispatch/script_values.h>
#include <cresset/ir/ir_parser.h>

#include "ir/text/literal_reader.h"

namespace cresset::jit {

class ConstantReader {
 public:
  ConstantReader(Cursor& c, const ParseOptions& options) : c_(c), options_(options) {}

  /// A literal as a value of a type; Any takes what is evident. References to constants become placeholders until fill_placeholders();
  /// the generic attributes of `holder` are looked through then.
  IValue value_of(const Literal& l, const Type& wanted, Node* holder = nullptr);
  /// The lines of a section: name, type and contents.
  void read_section();
  /// The constant with a name; raises at a place of the text when there is none.
  const IValue& constant(const std::string& name, std::size_t at) const;
  /// Puts constants where placeholders stand, once all sections are read.
  void fill_placeholders();

 private:
  IValue dict_of(const Literal& l, const Type& type, Node* holder);
  IValue enumerator_of(const Literal& l, const Type& type);
  IValue placeholder_of(const Literal& l, Node* holder);
  void fill(IValue& v) const;

  Cursor& c_;
  const ParseOptions& options_;
  std::unordered_map<std::string, IValue> constants_;
  std::unordered_map<const char*, Literal> placeholders_;
  std::vector<Node*> holders_;
  std::vector<intrusive_ptr<ivalue::Object>> objects_;
};

}  // namespace cresset::jit
