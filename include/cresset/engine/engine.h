// Engines: graphs that a backend has compiled, as values that operators take, modules keep and archives hold.
//
// A backend registers what it can compile and how:
//
//   register_engine_builder({.name = "mine", .supports = [](const jit::Node* n) { … }, .build = [](const EngineSource& source) { … }});
//
// `cresset::execute_engine(Tensor[] inputs, Engine engine) -> Tensor[]` runs one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <cresset/dispatch/custom_class.h>
#include <cresset/engine/calibration.h>
#include <cresset/ir/ir.h>

namespace cresset::engine {

/// What a backend compiles: a graph of tensors whose last inputs are the weights.
struct EngineSource {
  std::string name;  // of the engine, in errors and reports
  std::shared_ptr<const jit::Graph> graph;
  std::vector<Tensor> weights;
  std::vector<ScalarType> precisions = {ScalarType::Float};  // in which float32 may be computed
  /// What calibration found, in the order of Program::observe; empty before.
  std::vector<Range> ranges = {};
};
/// The graph with precisions and ranges in lines of comment in front, as archives and files have it: nothing in front for float32 alone.
CRESSET_API std::string source_text(const EngineSource& source);
/// The inverse. Raises ValueError for lines that are not of that form.
CRESSET_API EngineSource source_of_text(std::string name, const std::string& text, std::vector<Tensor> weights);

/// A compiled graph. Any number of threads may run it.
/// Bytes of the memory that intermediate results of a run share, and of those results together.
struct RunMemory {
  int64_t arena = 0, blocks = 0;
};
class CRESSET_API Program {
 public:
  virtual ~Program() = default;
  /// The results for the graph's inputs without the weights.
  virtual std::vector<Tensor> run(const std::vector<Tensor>& inputs) const = 0;
  /// What runs, for people; empty where it cannot be said.
  virtual std::string describe() const { return {}; }
  /// The tensors whose ranges it needs, always the same ones, for these inputs. Engines without 8 bits have none.
  virtual std::vector<Tensor> observe(const std::vector<Tensor>&) const { return {}; }
  /// As planned for inputs like the last ones; zeros where nothing is.
  virtual RunMemory memory() const { return {}; }
};

struct EngineBuilder {
  std::string name;
  /// Can it compile the node, as far as kind, types and constants say?
  std::function<bool(const jit::Node*)> supports;
  std::function<std::unique_ptr<Program>(const EngineSource&)> build;
  /// Names of lowering's passes that do not run for it: those that take apart operators that it has as a whole.
  std::vector<std::string> without_passes = {};
  /// Dtypes that tensors may have at its border and weights may have; none: all.
  std::vector<ScalarType> dtypes = {};
  /// What it can compute float32 in; others are refused (CompileOptions::enabled_precisions).
  std::vector<ScalarType> precisions = {ScalarType::Float};
  /// What its engines run on. Files of engines for another target are refused.
  std::string target = "any";
};
/// A builder of a name that is taken replaces it, with a warning. Raises ValueError without name or functions.
CRESSET_API void register_engine_builder(EngineBuilder builder);
/// Raises ValueError with the names that there are. "cpu" is always there.
CRESSET_API const EngineBuilder& engine_builder(const std::string& name);
CRESSET_API std::vector<std::string> engine_builders();

/// An engine with its source, from which it is built again when it is loaded.
class CRESSET_API Engine : public CustomClassHolder {
 public:
  Engine(const std::string& builder, EngineSource source);
  /// Raises ValueError for another number of inputs.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const;
  const std::string& name() const { return source_.name; }
  const std::string& builder() const { return builder_; }
  const EngineSource& source() const { return source_; }
  const Program& program() const { return *program_; }
  std::size_t num_inputs() const { return source_.graph->inputs().size() - source_.weights.size(); }

  /// From here on runs are observed, until end_calibration() builds the program again with the ranges of what it was given. Nothing else
  /// may run the engine in between.
  void begin_calibration();
  /// Raises ValueError without begin_calibration(), and where nothing ran.
  void end_calibration(const CalibrationMethod& method);

 private:
  std::string builder_;
  EngineSource source_;
  std::unique_ptr<Program> program_;
  std::unique_ptr<std::vector<RangeObserver>> observers_;  // while it is calibrated
};

}  // namespace cresset::engine
