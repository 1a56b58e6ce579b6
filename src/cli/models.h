// Modules of the files that commands take.
#pragma once

#include <string>
#include <vector>

#include <cresset/ir/input_spec.h>
#include <cresset/ir/module.h>

namespace cresset::cli {

/// The module of an archive of jit.save, of a program of torch.export (.pt2), or around the engine of an engine file. Raises with the path.
jit::Module read_model(const std::string& path, Device device = Device(DeviceType::CPU));
/// The bytes of a file.
std::string read_bytes(const std::string& path);
void write_bytes(const std::string& path, const std::string& bytes);
/// Random tensors as specifications say.
std::vector<IValue> examples_of(const jit::InputSpecs& specs);
/// Tensors in order, wherever they are in a value: lists, tuples, dicts.
void collect_tensors(const IValue& v, std::vector<Tensor>& out);
/// Runs of a method in milliseconds, sorted; the first `warm_up` do not count.
std::vector<double> time_method(const jit::Module& module, const std::string& method, const std::vector<IValue>& inputs, int64_t runs,
                                int64_t warm_up);

}  // namespace cresset::cli
