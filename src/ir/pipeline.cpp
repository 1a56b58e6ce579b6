// The order of lowering.
#include "ir/pipeline.h"

namespace cresset::jit {

const std::vector<std::string>& built_in_order() {
  static const std::vector<std::string> order = {
      "inline",
      "constant_propagation",
      "cse",
      "dce",
  };
  return order;
}

}  // namespace cresset::jit
