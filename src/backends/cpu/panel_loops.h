// Products of rows of floats with a weight that is packed once, in the order in which it is read; compiled for every instruction set.
#pragma once

#include <cstdint>

#include "backends/cpu/isa.h"

namespace cresset::cpu {

// y = x weight' + bias.
struct PanelProduct {
  const float* x;  // (rows, inputs), dense
  int64_t rows, inputs, outputs;
  const float* packed;
  const float* bias;  // (outputs) or null
  float* y;           // (rows, outputs), dense
};

inline constexpr int64_t kChunkOutputs = 256;  // what a call computes of y at a time: columns

struct PanelLoops {
  /// Is it quicker than oneDNN's products? Where not, the functions are null.
  bool quick;
  /// Outputs of a panel; a weight is padded to whole ones.
  int64_t panel;
  /// Floats of the packed weight.
  int64_t (*size)(int64_t outputs, int64_t inputs);
  /// weight: (outputs, inputs), dense.
  void (*pack)(const float* weight, int64_t outputs, int64_t inputs, float* packed);
  /// Columns of y of the chunk of kChunkOutputs.
  void (*run)(const PanelProduct& p, int64_t chunk);
};

CRESSET_IN_EACH_ISA(extern const PanelLoops panel_loops;)

inline const PanelLoops& find_panel_loops() { return CRESSET_FOR_THIS_PROCESSOR(panel_loops); }

}  // namespace cresset::cpu
