// The code of an archive, defined piece by piece: a class or function is read when its name is first met.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/archive/source_map.h"
#include "ir/frontend/frontend.h"
#include "ir/frontend/tree.h"

namespace cresset::jit {

/// A text of an archive, and where it comes from, where that is known.
struct PackageText {
  std::shared_ptr<const Source> source;  // null when there is none
  CodeRanges places;
};
/// The text of a package ("__torch__.torch.nn").
using PackageSource = std::function<PackageText(const std::string& package)>;

class SourceImporter : public Resolver, public std::enable_shared_from_this<SourceImporter> {
 public:
  /// `version`: that of the archive, which says what operators mean.
  SourceImporter(CompilationUnit& unit, int64_t version, PackageSource source);
  /// What `CONSTANTS.cN` means; before anything that uses them is compiled.
  void set_constants(std::vector<IValue> constants) { constants_ = std::move(constants); }
  /// Class, interface, enum, named tuple or registered C++ class by qualified name; null when there is none.
  TypePtr find_type(const std::string& qualified);
  intrusive_ptr<Function> find_function(const std::string& qualified);
  /// Compiles everything met so far, so that mistakes show while loading. Afterwards nodes say where they come from originally.
  void compile_all();
  /// The same for one function, which runs while the objects are read.
  void compile(GraphFunction& f);

  SugaredValuePtr resolveValue(const std::string& name, GraphFunction& m, const SourceRange& range) override;
  TypePtr resolveType(const std::string& name, const SourceRange& range) override;

 private:
  using Item = SourceFile::Item;
  const Item* find_item(const std::string& qualified);
  TypePtr define_type(const std::string& qualified, const ClassDefinition& c);
  TypePtr define_class(const std::string& qualified, const ClassDefinition& c, bool is_module);
  TypePtr define_interface(const std::string& qualified, const ClassDefinition& c, bool is_module);
  TypePtr define_enum(const std::string& qualified, const ClassDefinition& c);
  TypePtr define_named_tuple(const std::string& qualified, const ClassDefinition& c);
  Definition definition(const std::shared_ptr<const FunctionDefinition>& f);
  IValue constant(const ExprPtr& e, const TypePtr& type);
  void mark_by_comments(GraphFunction& f);
  void show_original_places(GraphFunction& f) const;
  std::optional<IValue> named_constant(const std::string& name);

  CompilationUnit& unit_;  // owns the functions, which hold this importer until they are compiled
  int64_t version_;
  PackageSource source_;
  ResolverPtr native_;
  std::vector<IValue> constants_;
  std::unordered_map<std::string, std::shared_ptr<const SourceFile>> packages_;
  std::unordered_map<const Source*, CodeRanges> places_;                                 // of the packages' texts
  std::unordered_map<const Source*, bool> has_marks_;                                    // of the fallback
  std::unordered_map<std::string, std::unordered_map<std::string, const Item*>> items_;  // by package and name
  std::vector<GraphFunction*> declared_;                                                 // of the unit
};

}  // namespace cresset::jit
