// Archives of scripts: PyTorch's zip files with the code of classes, the objects, and the data of tensors. Nothing here needs Python.
#pragma once

#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <cresset/dispatch/boxing.h>  // elements of the containers that pickle_load gives
#include <cresset/ir/module.h>

namespace cresset::jit {

class PyTorchStreamReader;
class ReadAdapterInterface;
/// Files of the user beside the module, by name.
using ExtraFilesMap = std::unordered_map<std::string, std::string>;

/// Reads a module. Tensors go to `device` when one is given, else to where they were saved. Names in `extra_files` receive the contents
/// of the files of that name; names without a file keep what they have. Damaged and foreign files raise an error that says what is wrong;
/// nothing in a file can call anything but what rebuilds tensors, containers and the file's own classes.
CRESSET_API Module load(const std::string& path, std::optional<Device> device = std::nullopt);
CRESSET_API Module load(const std::string& path, std::optional<Device> device, ExtraFilesMap& extra_files);
CRESSET_API Module load(std::istream& in, std::optional<Device> device = std::nullopt);
CRESSET_API Module load(std::istream& in, std::optional<Device> device, ExtraFilesMap& extra_files);
/// The same from bytes in memory.
CRESSET_API Module load_from_buffer(std::string_view bytes, std::optional<Device> device, ExtraFilesMap& extra_files);
/// The same from a source of bytes (record_file.h).
CRESSET_API Module load(const std::shared_ptr<ReadAdapterInterface>& in, std::optional<Device> device = std::nullopt);
/// Names of the extra files in an archive.
CRESSET_API std::vector<std::string> extra_file_names(std::string_view bytes);

/// Writes a module with everything its objects and code mention. A tensor's whole storage is written, once however many share it.
CRESSET_API void save(const Module& module, const std::string& path, const ExtraFilesMap& extra_files = {});
CRESSET_API void save(const Module& module, std::ostream& out, const ExtraFilesMap& extra_files = {});
/// A function is saved as the forward method of an otherwise empty module.
CRESSET_API void save(const Function& function, const std::string& path, const ExtraFilesMap& extra_files = {});
CRESSET_API void save(const Function& function, std::ostream& out, const ExtraFilesMap& extra_files = {});

/// A value alone, without code: a tensor, number, text, or containers of such. Python reads the bytes with cresset.load or torch.load.
CRESSET_API std::vector<char> pickle_save(const IValue& value);
/// The value of such bytes, or of a file that Python's save() made of tensors, numbers, texts and containers (a state_dict, say).
CRESSET_API IValue pickle_load(const std::vector<char>& bytes);

/// The pickle of a value alone: what pickle_save() writes into its file, without the file. Tensors are not in it: they are added to the
/// table, from which unpickle() takes them. Raises for tensors without a table and for objects of scripts' classes.
CRESSET_API std::vector<char> pickle(const IValue& value, std::vector<Tensor>* tensor_table = nullptr);
CRESSET_API IValue unpickle(const char* data, std::size_t size, std::nullptr_t type_resolver = nullptr, ArrayRef<Tensor> tensor_table = {});

/// A value that a file of records has beside its module: the pickle `pickle_prefix + archive_name + ".pkl"`, and the memory of its tensors
/// in the records `tensor_prefix + key`. The tensors come to `device` where one is given. Files with objects of scripts' classes raise: the
/// two arguments that would find classes and make objects take none.
CRESSET_API IValue readArchiveAndTensors(const std::string& archive_name, const std::string& pickle_prefix,
                                         const std::string& tensor_prefix, std::nullopt_t type_resolver, std::nullopt_t obj_loader,
                                         std::optional<Device> device, PyTorchStreamReader& stream_reader);

/// The source text of a function or method as archives have it. The text reads `CONSTANTS.cN` for values it cannot say.
CRESSET_API std::string code_of(const Function& function);
CRESSET_API std::pair<std::string, std::vector<IValue>> code_with_constants(const Function& function);

}  // namespace cresset::jit
