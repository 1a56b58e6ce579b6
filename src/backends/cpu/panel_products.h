// Products of rows of floats with the rows of a weight (panel_loops.h), in the way that is quickest for their sizes.
#pragma once

#include <cresset/core/tensor.h>

#include "backends/cpu/panel_loops.h"

namespace cresset::cpu {

/// One product, of which any number of threads may compute parts.
class PanelProducts {
 public:
  /// Copies rows of x where these are read otherwise than they lie.
  explicit PanelProducts(const PanelProduct& whole);

  /// Parts begin at rows that are multiples of it.
  int64_t rows_together() const { return way_ == Way::turned_rows ? find_panel_loops().panel : 1; }
  /// The results of some rows and outputs.
  void run(int64_t row, int64_t rows, int64_t output, int64_t outputs) const;

 private:
  enum class Way { few, turned_rows, turned_weight };

  PanelProduct whole_;
  Way way_;
  Tensor copy_;  // what whole_ reads in place of x, or undefined
};

}  // namespace cresset::cpu
