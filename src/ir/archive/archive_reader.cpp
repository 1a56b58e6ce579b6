// load: zip file → constants, code, objects.
#include <cresset/base/interrupt.h>
#include <cresset/ir/archive.h>
#include <cresset/ir/record_file.h>
#include <cresset/ops/from_blob.h>
#include <cresset/ops/functions_creation.h>

#include <charconv>
#include <iterator>
#include <limits>

#include <cresset/dispatch/custom_class.h>
#include <cresset/ir/interpreter.h>

#include "ir/archive/source_importer.h"
#include "ir/archive/unpickler.h"
#include "ir/archive/zip_archive.h"

namespace cresset::jit {
namespace {

constexpr int64_t kNewestVersion = 10;

class ArchiveReader {
 public:
  ArchiveReader(std::shared_ptr<const ZipReader> zip, std::optional<Device> device) : zip_(std::move(zip)), device_(device) {
    CRESSET_CHECK(!zip_->entries().empty(), "archive: the zip file is empty.");
    const std::string& first = zip_->entries()[0].name;
    top_ = first.substr(0, first.find('/') + 1);
  }

  Module module() {
    check_has("data.pkl");
    CRESSET_CHECK(zip_->find(top_ + "constants.pkl"),
                  "archive: the file has tensors but no code: it was written by torch.save, not by torch.jit.save. Use cresset.load.");
    check_version();
    unit_ = std::make_shared<CompilationUnit>();
    importer_ = std::make_shared<SourceImporter>(*unit_, version_, [this](const std::string& package) { return package_source(package); });
    const IValue constants = unpickle_file("constants");
    CRESSET_CHECK(constants.isTuple(), "archive: constants.pkl is no tuple.");
    importer_->set_constants(constants.toTupleElements());
    const IValue root = unpickle_file("data");
    CRESSET_CHECK(root.isScriptObject(), "archive: data.pkl has no module but a value of type '", root.type()->str(), "'.");
    importer_->compile_all();
    return Module(root.toObject());
  }

  IValue value() {
    check_has("data.pkl");
    check_version();
    unit_ = std::make_shared<CompilationUnit>();
    importer_ = std::make_shared<SourceImporter>(*unit_, version_, [](const std::string&) { return PackageText(); });
    return unpickle_file("data");
  }

  void extra_files(ExtraFilesMap& files) const {
    for (auto& [name, content] : files)
      if (const ZipEntry* e = zip_->find(top_ + "extra/" + name)) content = zip_->read(*e);
  }
  std::vector<std::string> extra_names() const {
    const std::string prefix = top_ + "extra/";
    std::vector<std::string> out;
    for (const ZipEntry& e : zip_->entries())
      if (e.name.rfind(prefix, 0) == 0) out.push_back(e.name.substr(prefix.size()));
    return out;
  }

 private:
  std::string text(const std::string& name) const {
    check_has(name);
    return zip_->read(*zip_->find(top_ + name));
  }

  void check_has(const std::string& name) const {
    CRESSET_CHECK(zip_->find(top_ + name), "archive: the file has no '", name, "', so it is no archive of a script.");
  }
  void check_version() {
    const std::string version = text(zip_->find(top_ + "version") ? "version" : ".data/version");
    const auto parsed = std::from_chars(version.data(), version.data() + version.size(), version_);
    CRESSET_CHECK(parsed.ec == std::errc() && version_ > 0, "archive: the version '", version.substr(0, 20), "' is no number.");
    CRESSET_CHECK(version_ <= kNewestVersion, "archive: the file has version ", version_, "; the newest that is known is ", kNewestVersion,
                  ".");
    if (zip_->find(top_ + "byteorder")) {
      const std::string order = text("byteorder");
      CRESSET_CHECK_NOT_IMPLEMENTED(order == "little", "archive: a file with little-endian data was required; this one has '",
                                    order.substr(0, 20), "'.");
    }
  }

  PackageText package_source(const std::string& package) const {
    std::string path = package;
    std::replace(path.begin(), path.end(), '.', '/');
    const std::string name = "code/" + path + ".py";
    const ZipEntry* e = zip_->find(top_ + name);
    if (!e) return {};
    return {std::make_shared<const Source>(zip_->read(*e), name), source_map(name + ".debug_pkl")};
  }
  // Nothing but the places that errors show depends on it.
  CodeRanges source_map(const std::string& name) const {
    const ZipEntry* e = zip_->find(top_ + name);
    if (!e) return {};
    const std::string bytes = zip_->read(*e);
    try {
      return unpickle_source_map(bytes, name);
    } catch (const Error& error) {
      warn(error.msg() + " It is ignored: errors show the code of the archive.");
      return {};
    }
  }

  IValue unpickle_file(const std::string& name) {
    std::unordered_map<std::string, Tensor> storages;
    UnpicklerHooks hooks;
    hooks.budget = load_budget(zip_->size());
    hooks.type = [this](const std::string& type) { return importer_->find_type(type); };
    // Constants stand in graphs, which their unit owns: they must not own it.
    const bool own_unit = name != "constants";
    hooks.object = [this, own_unit](const TypePtr& type, IValue state) { return object(type, std::move(state), own_unit); };
    hooks.storage = [&, this](const std::string& key, ScalarType dtype, const std::string& saved, int64_t elements) {
      const auto [found, added] = storages.try_emplace(key);
      if (added) found->second = storage(name + "/" + key, dtype, saved, elements);
      CRESSET_CHECK(found->second.scalar_type() == dtype, "archive: the storage '", key, "' is used with two types.");
      return found->second;
    };
    return unpickle(text(name + ".pkl"), name + ".pkl", hooks);
  }

  Tensor storage(const std::string& name, ScalarType dtype, const std::string& saved, int64_t elements) const {
    const ZipEntry* e = zip_->find(top_ + name);
    CRESSET_CHECK(e, "archive: the data of the tensor storage '", name, "' is missing.");
    // What was on the Meta device has no contents that another device could hold.
    const bool countable = elements > 0 && elements <= std::numeric_limits<int64_t>::max() / static_cast<int64_t>(element_size(dtype));
    if (saved == "meta" && e->size == 0 && countable) return cresset::empty({elements}, TensorOptions(dtype).device(DeviceType::Meta));
    const uint64_t bytes = static_cast<uint64_t>(elements) * element_size(dtype);
    CRESSET_CHECK(bytes / element_size(dtype) == static_cast<uint64_t>(elements) && bytes <= e->size, "archive: the storage '", name,
                  "' should have ", elements, " elements; its data has ", e->size, " bytes.");
    const auto whole = static_cast<int64_t>(e->size / element_size(dtype));
    CRESSET_CHECK(e->size % element_size(dtype) == 0, "archive: the data of the storage '", name, "' ends within an element.");
    check_memory_limit(static_cast<int64_t>(e->size));
    Tensor t = cresset::empty({whole}, TensorOptions(dtype));
    zip_->read_to(*e, t.mutable_data_ptr());
    const Device device = device_ ? *device_ : Device(saved);  // an absent device does not matter with a map_location
    return device.is_cpu() ? t : t.to(TensorOptions().device(device));
  }

  // An object of a class from its attributes by name, or through its own __setstate__.
  IValue object(const TypePtr& type, IValue state, bool own_unit) {
    if (const CustomClassInfo* info = find_custom_class(type->name)) {
      const auto set_state = info->methods.find("__setstate__");
      CRESSET_CHECK(set_state != info->methods.end(), "archive: the C++ class '", type->name, "' has no def_pickle.");
      Stack stack{std::move(state)};
      set_state->second.run(stack);
      return stack.at(0);
    }
    const auto cls = type->cast<ClassType>();
    CRESSET_CHECK(cls, "archive: an object of '", type->str(), "', which is no class.");
    auto made = own_unit ? new_object(cls) : make_intrusive<ivalue::Object>(type, cls->numAttributes());
    if (Function* set_state = cls->findMethod("__setstate__")) {
      const auto& arguments = set_state->getSchema().arguments();
      CRESSET_CHECK(arguments.size() == 2 && restore_type(state, arguments[1].type), "archive: the state of an object of '", cls->name,
                    "' is not what its __setstate__ takes.");
      if (auto* function = dynamic_cast<GraphFunction*>(set_state)) importer_->compile(*function);
      (*set_state)(Stack{IValue(made), std::move(state)});
    } else {
      CRESSET_CHECK(state.isGenericDict(), "archive: the attributes of an object of '", cls->name, "' are no dict.");
      for (const auto& [key, value] : state.toDictImpl().items) {
        CRESSET_CHECK(key.isString(), "archive: an attribute of an object of '", cls->name, "' has no name.");
        const auto slot = cls->findAttributeSlot(key.toStringRef());
        CRESSET_CHECK(slot, "archive: the class '", cls->name, "' has no attribute '", key.toStringRef(),
                      "', for which the file has a value.");
        made->set_slot(*slot, value);
      }
    }
    for (std::size_t i = 0; i < cls->numAttributes(); ++i) {
      const ClassAttribute& a = cls->attributes()[i];
      CRESSET_CHECK(restore_type(made->slot(i), a.type), "archive: the attribute '", a.name, "' of an object of '", cls->name,
                    "' is of type '", a.type->annotation_str(), "'; the file has a value of type '", made->slot(i).type()->annotation_str(),
                    "'.");
    }
    return IValue(std::move(made));
  }

  std::shared_ptr<const ZipReader> zip_;
  std::optional<Device> device_;
  std::string top_;
  int64_t version_ = 0;
  std::shared_ptr<CompilationUnit> unit_;
  std::shared_ptr<SourceImporter> importer_;
};

Module load_zip(std::shared_ptr<const ZipReader> zip, std::optional<Device> device, ExtraFilesMap& extra_files) {
  ArchiveReader reader(std::move(zip), device);
  Module m = reader.module();
  reader.extra_files(extra_files);
  return m;
}

}  // namespace

Module load(const std::string& path, std::optional<Device> device) {
  ExtraFilesMap none;
  return load(path, device, none);
}
Module load(const std::string& path, std::optional<Device> device, ExtraFilesMap& extra_files) {
  return load_zip(ZipReader::open(path), device, extra_files);
}
Module load(std::istream& in, std::optional<Device> device) {
  ExtraFilesMap none;
  return load(in, device, none);
}
Module load(std::istream& in, std::optional<Device> device, ExtraFilesMap& extra_files) {
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  CRESSET_CHECK(!in.bad(), "archive: the stream cannot be read.");
  return load_zip(ZipReader::of_bytes(std::move(bytes)), device, extra_files);
}
Module load(const std::shared_ptr<ReadAdapterInterface>& in, std::optional<Device> device) {
  ExtraFilesMap no_files;
  return load_from_buffer(bytes_of(*in), device, no_files);
}
Module load_from_buffer(std::string_view bytes, std::optional<Device> device, ExtraFilesMap& extra_files) {
  return load_zip(ZipReader::of_view(bytes), device, extra_files);
}
IValue pickle_load(const std::vector<char>& bytes) {
  return ArchiveReader(ZipReader::of_view({bytes.data(), bytes.size()}), std::nullopt).value();
}
IValue unpickle(const char* data, std::size_t size, std::nullptr_t, ArrayRef<Tensor> tensor_table) {
  UnpicklerHooks hooks;
  hooks.type = [](const std::string&) -> TypePtr { return nullptr; };
  hooks.object = [](const TypePtr& t, const IValue&) -> IValue { CRESSET_THROW(Error, "unpickle: no class '", t->str(), "' is known."); };
  hooks.storage = [&](const std::string& key, ScalarType dtype, const std::string&, int64_t elements) {
    std::size_t i = tensor_table.size();
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), i);
    CRESSET_CHECK(error == std::errc() && end == key.data() + key.size() && i < tensor_table.size(), "unpickle: the table of ",
                  tensor_table.size(), " tensors has no '", key, "'.");
    const Tensor& t = tensor_table[i];
    CRESSET_CHECK(t.dim() == 1 && t.scalar_type() == dtype && t.size(0) >= elements, "unpickle: tensor ", i,
                  " of the table is not the one that was pickled: one of ", elements, " elements of ", dtype, " was required.");
    return t;
  };
  return unpickle(std::string_view(data, size), "pickle", hooks);
}
IValue readArchiveAndTensors(const std::string& archive_name, const std::string& pickle_prefix, const std::string& tensor_prefix,
                             std::nullopt_t, std::nullopt_t, std::optional<Device> device, PyTorchStreamReader& stream_reader) {
  std::unordered_map<std::string, Tensor> storages;
  UnpicklerHooks hooks;
  hooks.type = [](const std::string&) -> TypePtr { return nullptr; };
  hooks.object = [&](const TypePtr& t, const IValue&) -> IValue {
    CRESSET_THROW(Error, "readArchiveAndTensors: '", archive_name, ".pkl' has an object of '", t->str(), "'; no class is known.");
  };
  hooks.storage = [&](const std::string& key, ScalarType dtype, const std::string&, int64_t elements) {
    const auto [found, added] = storages.try_emplace(key);
    if (added) {
      auto [bytes, size] = stream_reader.getRecord(tensor_prefix + key);
      CRESSET_CHECK(elements >= 0 && static_cast<uint64_t>(elements) <= size / element_size(dtype), "readArchiveAndTensors: the record '",
                    tensor_prefix, key, "' should have ", elements, " elements; its data has ", size, " bytes.");
      auto memory = std::make_shared<DataPtr>(std::move(bytes));
      const auto whole = static_cast<int64_t>(size / element_size(dtype));
      found->second = cresset::from_blob(memory->get(), {whole}, [memory](void*) {}, TensorOptions(dtype));
      if (device) found->second = found->second.to(*device);
    }
    CRESSET_CHECK(found->second.scalar_type() == dtype, "readArchiveAndTensors: the storage '", key, "' is used with two types.");
    return found->second;
  };
  const std::string name = pickle_prefix + archive_name + ".pkl";
  const auto [bytes, size] = stream_reader.getRecord(name);
  return unpickle(std::string_view(static_cast<const char*>(bytes.get()), size), name, hooks);
}
std::vector<std::string> extra_file_names(std::string_view bytes) {
  return ArchiveReader(ZipReader::of_view(bytes), std::nullopt).extra_names();
}

}  // namespace cresset::jit
