// Partitioning: which nodes of a lowered graph go to an engine and which stay with the interpreter, in what segments, and why.
//
// Engines exchange only tensors. What is computed of numbers, sizes and lists without effect (aten::size, prim::ListConstruct, …) belongs
// to no side: each segment that needs it computes it from its own tensors, so that sizes stay values. Control flow stays with the
// interpreter, and what is in the arms of an If and the body of a Loop is partitioned by the same rules.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include <cresset/ir/ir.h>

namespace cresset::engine {

enum class Target : uint8_t { eager, engine };

/// Why a node is where it is.
enum class Reason : uint8_t {
  convert,      // the engine has it
  helper,       // no tensors: computed where it is needed
  unsupported,  // the engine does not have it
  forced_by_operator,
  forced_by_module,
  control_flow,
  effect,       // it writes, reads what is written, is random, or does more than give a result
  coupled,      // a value that is no tensor ties it to the interpreter
  small_block,  // fewer nodes than min_block_size would be with it
};
CRESSET_API const char* to_string(Reason reason);

struct PartitionOptions {
  /// Segments with fewer nodes of an engine stay with the interpreter.
  int64_t min_block_size = 3;
  /// Qualified names, "aten::relu": these operators stay with the interpreter.
  std::vector<std::string> torch_executed_ops = {};
  /// What the engine has.
  std::function<bool(const jit::Node*)> supports;
};

struct Decision {
  jit::Node* node;
  Target target;
  Reason reason;
};

struct Partition;
struct Segment {
  Target target;
  std::vector<jit::Node*> nodes;  // in the graph's order, without constants and helpers
  std::vector<Partition> blocks;  // of an If, its arms, of a Loop, its body; such a node is a segment of its own
};

/// Of one block. The segments in their order are an order of the block in which every value is there when it is used.
struct CRESSET_API Partition {
  std::vector<Segment> segments;
  std::vector<Decision> decisions;  // of the block's own nodes but constants
  /// Constants and helpers of the whole graph: nodes that are copied to where they are needed.
  std::shared_ptr<const std::unordered_set<const jit::Node*>> copied;

  /// How many segments are an engine's, in nested blocks too.
  std::size_t engines() const;
  /// What the segment's nodes need of others, also through what is copied, in the order of the first use: the inputs of its engine.
  std::vector<jit::Value*> inputs(const Segment& segment) const;
  /// What others use of its nodes' values, also through what is copied, in the nodes' order.
  std::vector<jit::Value*> outputs(const Segment& segment) const;
};

/// Decides and groups; the graph stays as it is. Raises ValueError for options without `supports` and names of no operator's form.
CRESSET_API Partition partition(const std::shared_ptr<jit::Graph>& graph, const PartitionOptions& options);

/// A line for each segment, and with `nodes` one for each node with its reason and source.
CRESSET_API std::string report(const Partition& partition, bool nodes = true);

}  // namespace cresset::engine
