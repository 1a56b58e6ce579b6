// Modules with engines: a method is lowered, partitioned, and what an engine has becomes one.
#pragma once

#include <string>
#include <vector>

#include <cresset/engine/calibration.h>
#include <cresset/engine/partition.h>
#include <cresset/ir/lowering.h>

namespace cresset::engine {

struct CompileOptions {
  std::string backend = "cpu";  // an engine builder's name, or several with commas: each gets what those before it do not have
  jit::PipelineOptions pipeline;
  int64_t min_block_size = 3;  // not asked of a graph that the engine has as a whole
  std::vector<std::string> torch_executed_ops = {};
  bool require_full_compilation = false;
  /// What engines may compute float32 in; none: float32. ValueError for what the backend cannot, and for int8 without `data`.
  std::vector<ScalarType> enabled_precisions = {};
  /// Arguments of the method, a list of them for each call: with these engines of int8 learn the ranges of their tensors, and results are
  /// compared for the accuracy report.
  std::vector<Stack> data = {};
  CalibrationMethod calibration = {};
  /// Where the backend does not take int64 or float64, tensors are int32 and float32 inside of its engines, with a warning; else that is an
  /// error.
  bool truncate_long_and_double = false;
  /// For partition_method and partition_report: operators that the backend is taken to have.
  std::vector<std::string> assume_supported = {};
};

struct Compiled {
  jit::Module module;  // the given one where no engine came of it
  std::string report;  // of the partition, with a line for each node
  std::size_t engines = 0;
  /// How far the results for CompileOptions::data are from the given module's, in words; empty without data.
  std::string accuracy = {};
};

/// A module with the method, which calls engines (attributes engine_0, …) and leaves the rest to the interpreter; it saves and loads as any
/// other. The given module stays as it is. Raises ValueError when the whole had to be compiled and something is not the engine's (named
/// with its place), or when that is asked for together with operators or modules that the engine shall not have; lowering's errors
/// otherwise.
CRESSET_API Compiled compile(const jit::Module& module, const std::string& method = "forward", const CompileOptions& options = {});

/// A lowered graph and what would become engines of it. The last inputs of the graph are weights.
struct Partitioned {
  std::shared_ptr<jit::Graph> graph;
  Partition partition;
};
CRESSET_API Partitioned partition_method(const jit::Module& module, const std::string& method = "forward",
                                         const CompileOptions& options = {});

/// The partition alone, with the same decisions.
CRESSET_API std::string partition_report(const jit::Module& module, const std::string& method = "forward",
                                         const CompileOptions& options = {}, bool nodes = true);

/// Can the engine have the whole method? `missing` receives the operators that it does not have.
CRESSET_API bool check_method_operator_support(const jit::Module& module, const std::string& method = "forward",
                                               const CompileOptions& options = {}, std::vector<std::string>* missing = nullptr);

/// A method as one engine: bytes of an engine file (engine/file.h). Raises ValueError as compile() with require_full_compilation does.
CRESSET_API std::string convert_method_to_engine(const jit::Module& module, const std::string& method = "forward",
                                                 const CompileOptions& options = {});

/// A module whose forward takes the tensors that the engine of a file takes and gives what it gives, several as a tuple. Raises as
/// engine_from_bytes.
CRESSET_API jit::Module embed_engine_in_new_module(const std::string& bytes, const std::string& name = "Engine");

}  // namespace cresset::engine
