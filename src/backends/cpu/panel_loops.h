// Products of rows of floats with the rows of another matrix, such as the weight of a linear layer, which are read where they lie or, of a
// small weight, from a copy in the order of use; compiled for every instruction set.
#pragma once

#include <cstdint>

#include "backends/cpu/isa.h"

namespace cresset::cpu {

// y = x weight' + bias, or y += x weight' + bias. The elements of a row are neighbours; rows begin ldx, ldw and ldy elements apart.
struct PanelProduct {
  const float* x;  // (rows, inputs)
  int64_t ldx, rows, inputs, outputs;
  const float* weight;  // (outputs, inputs); not read where there is a copy
  int64_t ldw;
  const float* turned;  // a copy by `turn`: of the weight, or null, for `run`; of x for `run_turned`
  const float* bias;    // (outputs) or null
  bool adds;
  float* y;  // (rows, outputs)
  int64_t ldy;
};

struct PanelLoops {
  /// Rows of a panel; 0 where oneDNN's products are quicker, and `turn`, `run` and `run_turned` are null.
  int64_t panel;
  /// Up to so many rows `run_few` is quicker than `run` of a weight without a copy: where rows of the weight begin at lines of the cache,
  /// and where not. 0 and null where oneDNN is.
  int64_t few_rows, few_split_rows;
  /// From few_rows up to so many rows it is quicker to turn them than the weight.
  int64_t turned_rows;
  /// Panels of n rows, which begin ld elements apart, zeros behind the last one: as many rows as fill them, times the inputs.
  void (*turn)(const float* rows, int64_t ld, int64_t n, int64_t inputs, float* turned);
  void (*run)(const PanelProduct& p);
  void (*run_turned)(const PanelProduct& p);
  void (*run_few)(const PanelProduct& p);

  bool is_few(int64_t rows, int64_t ldw) const { return rows <= (ldw % (64 / sizeof(float)) == 0 ? few_rows : few_split_rows); }
  bool turns_rows(int64_t rows, int64_t outputs) const { return rows > few_rows && rows <= turned_rows && rows < outputs; }
  bool takes(int64_t rows, int64_t ldw) const { return panel > 0 || is_few(rows, ldw); }
};

CRESSET_IN_EACH_ISA(extern const PanelLoops panel_loops;)

inline const PanelLoops& find_panel_loops() { return CRESSET_FOR_THIS_PROCESSOR(panel_loops); }

}  // namespace cresset::cpu
