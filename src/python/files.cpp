// Private functions behind cresset.save: a ReplacedFile as a capsule.
#include "base/replaced_file.h"

#include "python/bind.h"
#include "python/types.h"

namespace cresset::python {
namespace {

constexpr const char* kName = "cresset.ReplacedFile";
ReplacedFile& file_of(PyObject* o) {
  auto* f = static_cast<ReplacedFile*>(PyCapsule_GetPointer(o, kName));
  if (!f) throw ErrorAlreadySet();
  return *f;
}

}  // namespace

void init_files(PyObject* module) {
  def(module, "_replaced_file", [](std::string who, std::string path) {
    auto* file = new ReplacedFile(std::move(who), std::move(path));
    return Object(PyCapsule_New(file, kName, [](PyObject* c) { delete static_cast<ReplacedFile*>(PyCapsule_GetPointer(c, kName)); }));
  });
  def(module, "_replaced_file_temporary", [](PyObject* o) { return file_of(o).temporary(); });
  def(module, "_replaced_file_commit", [](PyObject* o) {
    ReplacedFile& file = file_of(o);
    const GilRelease release;
    file.commit();
  });
}

}  // namespace cresset::python
