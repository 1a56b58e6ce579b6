// Engine files: an engine as bytes, with what a reader must know before it trusts them.
//
// "CRESSET ENGINE\n", the number of fields, each field with its length, a checksum of all that. Numbers are 64 bits, the low byte first.
// Fields: ABI tag, version of the library, backend, target, name, names of inputs, names of outputs, graph, weights. The graph is text, and
// no field is machine code: the backend of the name builds the engine where it is read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <cresset/engine/engine.h>

namespace cresset::engine {

inline constexpr const char* kEngineAbi = "1";

/// What a file says of its engine.
struct EngineFile {
  std::string abi, version, backend, target, name;
  std::vector<std::string> inputs, outputs;
  std::string graph;
  std::vector<Tensor> weights;
};

CRESSET_API std::string engine_bytes(const Engine& engine);
/// The fields, without building. Raises ValueError for what is no engine file, for another ABI, another number of fields, and where the
/// checksum or a length does not fit.
CRESSET_API EngineFile read_engine_file(std::string_view bytes);
/// The engine, built. Raises ValueError as read_engine_file, where no backend of that name builds engines here, and for another target.
CRESSET_API intrusive_ptr<Engine> engine_from_bytes(std::string_view bytes);
/// Do bytes begin as an engine file does?
CRESSET_API bool is_engine_file(std::string_view bytes);

}  // namespace cresset::engine
