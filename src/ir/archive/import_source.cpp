// Texts of programs as packages of the importer of archives.
#include <cresset/ir/import_source.h>

#include "ir/archive/source_importer.h"

namespace cresset::jit {

struct TextImporter::Impl {
  std::shared_ptr<SourceImporter> importer;
};

TextImporter::TextImporter(std::shared_ptr<CompilationUnit> unit, const std::vector<IValue>* constants, SourceLoader loader,
                           std::size_t version)
    : unit_(std::move(unit)), impl_(std::make_unique<Impl>()) {
  impl_->importer = std::make_shared<SourceImporter>(
      *unit_, static_cast<int64_t>(version),
      [loader = std::move(loader)](const std::string& package) { return PackageText{loader(package), {}}; });
  if (constants) impl_->importer->set_constants(*constants);
}
TextImporter::~TextImporter() = default;

TypePtr TextImporter::loadType(const QualifiedName& name) const {
  const TypePtr type = impl_->importer->find_type(name.qualifiedName());
  CRESSET_CHECK(type, "loadType: no text defines '", name.qualifiedName(), "'.");
  impl_->importer->compile_all();
  return type;
}
Function* TextImporter::findFunction(const QualifiedName& name) const { return impl_->importer->find_function(name.qualifiedName()).get(); }

}  // namespace cresset::jit
