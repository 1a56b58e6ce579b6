#include "backends/cpu/panel_products.h"

#include <algorithm>

#include <cresset/base/parallel.h>
#include <cresset/ops/functions_creation.h>

namespace cresset::cpu {
namespace {

constexpr int64_t kPartElements = int64_t{1} << 17;  // of a copy, worth waking a thread for

// Rows that are whole pages apart share one set of the first cache, which then holds fewer of them than a tile of a product reads (a tenth
// of the time of 128 rows of 3072).
bool share_a_set(const PanelProduct& p) {
  constexpr int64_t kPage = 1024, kRowsInSet = 8, kWorthCopy = 512;  // floats; rows; outputs
  return p.ldx % kPage == 0 && p.rows > kRowsInSet && p.outputs >= kWorthCopy;
}

Tensor copy_apart(const PanelProduct& p, int64_t pitch) {
  Tensor copy = detail::empty_cpu({p.rows, pitch}, kFloat);
  auto* const to = copy.data_ptr<float>();
  parallel_for(0, p.rows, std::max<int64_t>(1, kPartElements / p.inputs), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) std::copy_n(p.x + r * p.ldx, p.inputs, to + r * pitch);
  });
  return copy;
}

Tensor copy_turned(const PanelProduct& p) {
  const PanelLoops& loops = find_panel_loops();
  const int64_t panels = (p.rows + loops.panel - 1) / loops.panel;
  Tensor copy = detail::empty_cpu({panels * loops.panel, p.inputs}, kFloat);
  auto* const to = copy.data_ptr<float>();
  parallel_for(0, panels, std::max<int64_t>(1, kPartElements / (loops.panel * p.inputs)), [&](int64_t begin, int64_t end) {
    const int64_t first = begin * loops.panel, last = std::min(p.rows, end * loops.panel);
    loops.turn(p.x + first * p.ldx, p.ldx, last - first, p.inputs, to + first * p.inputs);
  });
  return copy;
}

}  // namespace

PanelProducts::PanelProducts(const PanelProduct& whole) : whole_(whole) {
  constexpr int64_t kFewOutputs = 16, kLine = 16;
  const PanelLoops& loops = find_panel_loops();
  const bool has_copy = whole.turned != nullptr;
  way_ = !has_copy && (loops.is_few(whole.rows, whole.ldw) || whole.outputs <= kFewOutputs) ? Way::few
         : !has_copy && loops.turns_rows(whole.rows, whole.outputs)                         ? Way::turned_rows
                                                                                            : Way::turned_weight;
  if (way_ == Way::turned_rows) {
    copy_ = copy_turned(whole);
    whole_.turned = copy_.const_data_ptr<float>();
  } else if (way_ == Way::turned_weight && share_a_set(whole)) {
    whole_.ldx = whole.inputs + kLine;
    copy_ = copy_apart(whole, whole_.ldx);
    whole_.x = copy_.const_data_ptr<float>();
  }
}

void PanelProducts::run(int64_t row, int64_t rows, int64_t output, int64_t outputs) const {
  const PanelLoops& loops = find_panel_loops();
  PanelProduct part = whole_;
  part.x += row * part.ldx;
  part.rows = rows;
  part.weight += output * part.ldw;
  part.outputs = outputs;
  if (part.turned) part.turned += (way_ == Way::turned_rows ? row : output) * part.inputs;
  if (part.bias) part.bias += output;
  part.y += row * part.ldy + output;
  (way_ == Way::few ? loops.run_few : way_ == Way::turned_rows ? loops.run_turned : loops.run)(part);
}

}  // namespace cresset::cpu
