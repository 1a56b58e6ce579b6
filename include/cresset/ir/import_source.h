// Classes from source text that somebody else finds: what an archive's code is read with, for programs that keep such texts themselves.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <cresset/ir/function.h>

namespace cresset::jit {

/// The text that defines the names behind a prefix ("__torch__.nn"); null where there is none.
using SourceLoader = std::function<std::shared_ptr<Source>(const std::string& prefix)>;

/// Defines classes, interfaces, enums, named tuples and functions of such texts in a unit when they are asked for, with all that they
/// mention. `CONSTANTS.cN` of a text is member N of the table, which must outlive the importer. `version` says which meaning operators
/// have.
class CRESSET_API TextImporter {
 public:
  TextImporter(std::shared_ptr<CompilationUnit> unit, const std::vector<IValue>* constants, SourceLoader loader, std::size_t version);
  ~TextImporter();
  /// Raises when no text defines it.
  TypePtr loadType(const QualifiedName& name) const;
  /// Null when no text defines it.
  Function* findFunction(const QualifiedName& name) const;

 private:
  std::shared_ptr<CompilationUnit> unit_;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cresset::jit
