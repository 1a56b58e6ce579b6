// The code of an archive, defined piece by piece: a class or function is read when its name is first met.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/frontend/frontend.h"
#include "ir/frontend/tree.h"

namespace cresset::jit {

/// The text of a package ("__torch__.torch.nn"), or null.
using PackageSource = std::function<std::shared_ptr<const Source>(const std::string& package)>;

class SourceImporter : public Resolver, public std::enable_shared_from_this<SourceImporter> {
 public:
  SourceImporter(std::shared_ptr<CompilationUnit> unit, PackageSource source);
  /// What `CONSTANTS.cN` means; before anything that uses them is compiled.
  void set_constants(std::vector<IValue> constants) { constants_ = std::move(constants); }
  /// Class, interface, enum, named tuple or registered C++ class by qualified name; null when there is none.
  TypePtr find_type(const std::string& qualified);
  intrusive_ptr<Function> find_function(const std::string& qualified);
  /// Compiles everything met so far, so that mistakes show while loading.
  void compile_all();
  /// All functions and methods met so far.
  void visit_functions(const std::function<void(const Function&)>& f) const {
    for (const auto& declared : declared_) f(*declared);
  }

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
  std::optional<IValue> named_constant(const std::string& name);

  std::shared_ptr<CompilationUnit> unit_;
  PackageSource source_;
  ResolverPtr native_;
  std::vector<IValue> constants_;
  std::unordered_map<std::string, std::shared_ptr<const SourceFile>> packages_;
  std::unordered_map<std::string, std::unordered_map<std::string, const Item*>> items_;  // by package and name
  std::vector<intrusive_ptr<GraphFunction>> declared_;
};

}  // namespace cresset::jit
