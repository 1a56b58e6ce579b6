// Scripted loops of scalars as machine code: the switch.
#pragma once

#include <cstdint>

#include <cresset/base/macros.h>

namespace cresset::jit {

/// The processor that this build translates for, "x86-64", or "none": everything is interpreted.
CRESSET_API const char* native_code_target();
/// On at the start unless the environment has CRESSET_NATIVE=0. Loops that run already notice a change within some thousand rounds, native
/// ones when they end.
CRESSET_API bool native_code_enabled();
CRESSET_API void set_native_code(bool on);
/// How many rounds of a small loop are interpreted before it is translated; gives the number before.
CRESSET_API uint64_t set_native_code_rounds(uint64_t rounds);
/// Functions made of loops since the start.
CRESSET_API uint64_t native_code_functions();

}  // namespace cresset::jit
