// Symbols and the names that are constants.
#pragma once

#include <cresset_compat/namespaces.h>

#include <cresset/ir/symbols.h>

namespace c10 {
// Real namespaces: programs add symbols of their own.
namespace aten {
using namespace cresset::jit::aten;
}
namespace attr {
using namespace cresset::jit::attr;
}
namespace cuda {
using namespace cresset::jit::cuda;
}
namespace onnx {
using namespace cresset::jit::onnx;
}
namespace prim {
using namespace cresset::jit::prim;
}
}  // namespace c10
namespace torch::jit {
using c10::Symbol;
// The same namespaces everywhere, so that sources that use two of them find one name.
namespace aten = c10::aten;
namespace attr = c10::attr;
namespace onnx = c10::onnx;
namespace prim = c10::prim;
}  // namespace torch::jit
