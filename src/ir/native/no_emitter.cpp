// Builds without a translation for their processor: everything is interpreted.
#include "ir/native/emitter.h"

namespace cresset::jit::native {

bool available() { return false; }
MachineCode emit(const Region&) { return {}; }

}  // namespace cresset::jit::native
